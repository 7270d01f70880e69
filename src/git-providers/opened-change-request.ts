import { UpstreamError } from '../common/http/upstream-error.js';
import { GitProviderError } from './git-provider.error.js';
import type { OpenedChangeRequest } from './git-provider.types.js';

/** A change request out of its number and page; null when an answer lacks one of them. */
export function toOpenedChangeRequest(number: number | null, url: string | null): OpenedChangeRequest | null {
  const isUsable =
    number !== null &&
    Number.isInteger(number) &&
    url !== null &&
    /^https?:\/\//.test(url) &&
    URL.canParse(url);
  return isUsable ? { number, url } : null;
}

/**
 * The change request that an answer to its creation tells of.
 *
 * @throws GitProviderError `unavailable` when it tells of none
 */
export function requireOpened(opened: OpenedChangeRequest | null, origin: string): OpenedChangeRequest {
  if (!opened) {
    throw new GitProviderError('unavailable', { cause: new UpstreamError('malformed', origin) });
  }
  return opened;
}

/**
 * What was read about a repository; null is the 404 of one that is not there.
 *
 * @throws GitProviderError with a reason for null
 */
export function requireRepository<T>(answer: T | null): T {
  if (answer === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository does not exist, or the token may not see it',
    });
  }
  return answer;
}
