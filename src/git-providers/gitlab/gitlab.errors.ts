import { jsonAt, jsonList, jsonText } from '../../common/json-access.js';
import type { ProviderErrorCode } from '../git-provider.types.js';
import { DISCUSSION_COUNT_FIELDS } from './gitlab.documents.js';

/** GitLab gives most errors no code, so their English text decides; it is not translated by the server. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/invalid token|not authenticated/i, 'unauthorized'],
  [/rate limit|too many requests/i, 'rate_limited'],
  [/permission|insufficient[_ ]scope|access denied/i, 'insufficient_scope'],
  [/time(d )?[ -]?out/i, 'timeout'],
  [/complexity|query has depth|doesn't exist on type|doesn't accept argument/i, 'unsupported'],
];

/**
 * Why parts of a GraphQL answer are missing, each reason once, in the order of its `errors`.
 * Classes of errors: https://docs.gitlab.com/api/graphql/#errors
 */
export function mapGraphqlErrors(body: unknown): ProviderErrorCode[] {
  return [...new Set(jsonList(body, 'errors').map(mapGraphqlError))];
}

/** Whether the server refused the document because it is too old for the discussion counters. */
export function lacksDiscussionCounts(body: unknown): boolean {
  return jsonList(body, 'errors').some((error) =>
    DISCUSSION_COUNT_FIELDS.some(
      (field) =>
        jsonText(error, 'message')?.includes(`Field '${field}' doesn't exist on type`) === true ||
        (jsonAt(error, 'extensions', 'code') === 'undefinedField' &&
          jsonAt(error, 'extensions', 'fieldName') === field),
    ),
  );
}

function mapGraphqlError(error: unknown): ProviderErrorCode {
  const message = jsonText(error, 'message') ?? '';
  return MESSAGE_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 'unavailable';
}
