import { jsonAt, jsonNumber, jsonText } from '../../common/json-access.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.types.js';
import { toOpenedChangeRequest } from '../opened-change-request.js';

/** The body of the request that opens a pull request. */
export function newPullRequest(request: NewChangeRequest, targetBranch: string): Record<string, unknown> {
  const { sourceBranch, title, body, draft } = request;
  return {
    title,
    description: body,
    source: { branch: { name: sourceBranch } },
    destination: { branch: { name: targetBranch } },
    draft,
  };
}

/**
 * The filter for the open pull request between two branches of a repository
 * (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#filtering).
 */
export function openBetween(repository: string, sourceBranch: string, targetBranch: string): string {
  return [
    'state = "OPEN"',
    `source.repository.full_name = ${quoted(repository)}`,
    `source.branch.name = ${quoted(sourceBranch)}`,
    `destination.branch.name = ${quoted(targetBranch)}`,
  ].join(' AND ');
}

/** One pull request; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'id'), jsonText(value, 'links', 'html', 'href'));
}

/** Why Bitbucket refused: a message, sometimes a detail, and texts by field. */
export function bitbucketReasons(body: unknown): string[] {
  const fields: unknown = jsonAt(body, 'error', 'fields');
  return [
    jsonText(body, 'error', 'message'),
    jsonText(body, 'error', 'detail'),
    ...Object.entries(typeof fields === 'object' && fields !== null ? fields : {}).flatMap(
      ([name, texts]: [string, unknown]) =>
        [texts].flat().map((text) => (typeof text === 'string' ? `${name}: ${text}` : null)),
    ),
  ].filter((text) => text !== null);
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
