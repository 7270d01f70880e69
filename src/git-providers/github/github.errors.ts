import { jsonAt, jsonText } from '../../common/json-access.js';
import type { ProviderErrorCode } from '../git-provider.types.js';

/** Types of GraphQL errors; GitHub has been seen to use both names for an exhausted limit. */
const TYPE_CODES: ReadonlyMap<string, ProviderErrorCode> = new Map([
  ['RATE_LIMITED', 'rate_limited'],
  ['RATE_LIMIT', 'rate_limited'],
  ['FORBIDDEN', 'insufficient_scope'],
  ['INSUFFICIENT_SCOPES', 'insufficient_scope'],
]);

/** Errors without a known type; the text is not translated by the server. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/rate limit/i, 'rate_limited'],
  [/resource not accessible/i, 'insufficient_scope'],
];

/**
 * What one element of a GraphQL answer's `errors` means; null for NOT_FOUND, which only says that something is
 * gone (https://docs.github.com/en/graphql/guides). A field or argument that the server does not know is
 * `unsupported`; whatever cannot be recognised, "Something went wrong while executing your query" included, is
 * `unavailable`.
 */
export function mapGraphqlError(error: unknown): ProviderErrorCode | null {
  const type = jsonText(error, 'type') ?? '';
  if (jsonAt(error, 'extensions', 'saml_failure') === true) {
    return 'sso_required';
  }
  if (isUnknownToServer(error)) {
    return 'unsupported';
  }
  if (type === 'NOT_FOUND') {
    return null;
  }
  const message = jsonText(error, 'message') ?? '';
  return (
    TYPE_CODES.get(type) ?? MESSAGE_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 'unavailable'
  );
}

/** Whether the server refused the whole document because it is too old for a field or argument in it. */
export function lacksFields(errors: readonly unknown[]): boolean {
  return errors.some(isUnknownToServer);
}

function isUnknownToServer(error: unknown): boolean {
  const code = jsonText(error, 'extensions', 'code');
  return code === 'undefinedField' || code === 'argumentNotAccepted';
}
