import { jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import type { OpenedChangeRequest } from '../git-provider.types.js';
import { toOpenedChangeRequest } from '../opened-change-request.js';

/** One pull request of the REST API; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'number'), jsonText(value, 'html_url'));
}

/**
 * Why GitHub refused: the details of a failed validation, which have a text or a field and a code, else the message
 * (https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api).
 */
export function githubReasons(body: unknown): string[] {
  const details = jsonList(body, 'errors').map((error) => {
    const field = jsonText(error, 'field');
    const code = jsonText(error, 'code');
    return typeof error === 'string' && error !== ''
      ? error
      : (jsonText(error, 'message') ?? (field && code ? `${field}: ${code}` : null));
  });
  const texts = details.filter((text) => text !== null);
  const message = jsonText(body, 'message');
  return texts.length > 0 || message === null ? texts : [message];
}
