import { UpstreamError } from '../common/http/upstream-error.js';
import { GitProviderError } from './git-provider.error.js';
import { retryAfterSeconds } from './retry-after.js';

/** What the classification reads of an answer; `Response` fits. */
export interface ProviderResponseHead {
  status: number;
  headers: Headers;
}

/** Seconds to wait when a provider says "too many requests" without saying how long. */
const DEFAULT_WAIT_SECONDS = 60;

/** How far a chain of causes is followed; it could be a circle. */
const MAX_CAUSES = 5;

/** Requests per hour that GitHub grants an anonymous caller. */
const GITHUB_ANONYMOUS_LIMIT = '60';

/**
 * What a status means, in the words of `X-Provider-Status`; null for 1xx to 3xx, and for 404 and other 4xx, whose meaning
 * depends on what was asked (a 404 on a sub-resource is an ordinary "absent").
 *
 * - 401 is `unauthorized`, except GitHub's 401 that counts the caller as anonymous (`x-ratelimit-limit: 60`):
 *   GitHub answers so for good tokens while it is in trouble (seen by Renovate, `lib/util/http/github.ts`), so `unavailable`.
 * - 429, and 403 with an exhausted limit, `Retry-After` or "secondary rate limit" in the body: `rate_limited`
 *   (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 * - Other 403: `insufficient_scope`; 410: `unsupported` (Bitbucket's removed endpoints); 408: `timeout`; 5xx: `unavailable`.
 *
 * @param nowMs Epoch milliseconds.
 * @param bodyText Body of the answer, searched for GitHub's wording only; never part of the error.
 */
export function providerErrorFromResponse(
  response: ProviderResponseHead,
  nowMs: number,
  bodyText = '',
): GitProviderError | null {
  const { status, headers } = response;
  switch (status) {
    case 401:
      return new GitProviderError(
        headers.get('x-ratelimit-limit') === GITHUB_ANONYMOUS_LIMIT ? 'unavailable' : 'unauthorized',
      );
    case 403:
      return isRateLimited(headers, bodyText)
        ? rateLimited(headers, nowMs)
        : new GitProviderError('insufficient_scope');
    case 408:
      return new GitProviderError('timeout');
    case 410:
      return new GitProviderError('unsupported');
    case 429:
      return rateLimited(headers, nowMs);
    default:
      return status >= 500
        ? new GitProviderError('unavailable', { retryAfterSeconds: retryAfterSeconds(headers, nowMs) })
        : null;
  }
}

/**
 * What a failed call means: `timeout` for a deadline or an abort, `unavailable` for everything else. A
 * `GitProviderError` is handed back as it is. Libraries wrap the errors of the fetch they were given, so the
 * chain of causes is searched; an `UpstreamError` found there becomes the cause instead of its wrapper, which
 * can hold the request.
 */
export function providerErrorFromUpstream(error: unknown): GitProviderError {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && isErrorLike(current); depth += 1) {
    if (current instanceof GitProviderError) {
      return current;
    }
    if (current instanceof UpstreamError) {
      return new GitProviderError(current.reason === 'timeout' ? 'timeout' : 'unavailable', {
        cause: current,
      });
    }
    if (current.name === 'AbortError' || current.name === 'TimeoutError') {
      return new GitProviderError('timeout', { cause: current });
    }
    current = current.cause;
  }
  return new GitProviderError('unavailable', { cause: error });
}

/** By shape: a `DOMException` and errors of another realm are not always `instanceof Error`. */
function isErrorLike(value: unknown): value is { name: unknown; cause?: unknown } {
  return typeof value === 'object' && value !== null && 'name' in value;
}

function isRateLimited(headers: Headers, bodyText: string): boolean {
  return (
    headers.get('x-ratelimit-remaining') === '0' ||
    headers.has('retry-after') ||
    /secondary rate limit/i.test(bodyText)
  );
}

function rateLimited(headers: Headers, nowMs: number): GitProviderError {
  return new GitProviderError('rate_limited', {
    retryAfterSeconds: retryAfterSeconds(headers, nowMs) ?? DEFAULT_WAIT_SECONDS,
  });
}
