import { UpstreamError } from '../common/http/upstream-error.js';
import { GitProviderError, type ProviderErrorCode } from './git-provider.js';

/** What the classification reads of a response; `Response` fits. */
export interface ProviderResponseHead {
  status: number;
  headers: Headers;
}

/** Seconds to wait when a provider says "too many requests" without saying how long. */
const DEFAULT_WAIT_SECONDS = 60;

/** How far a chain of causes is followed; it could be a circle. */
const MAX_CAUSES = 5;

/**
 * What a status means, in the words of `X-Provider-Status`; null for 1xx to 3xx, and for 404 and other 4xx, whose meaning
 * depends on what was asked (a 404 on a sub-resource is an ordinary "absent").
 *
 * - 401: `unauthorized`.
 * - 429, and 403 with an exhausted limit, `Retry-After` or "secondary rate limit" in the body: `rate_limited`
 *   (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
 * - Other 403: `insufficient_scope`; 410: `unsupported` (Bitbucket's removed endpoints); 408: `timeout`; 5xx: `unavailable`.
 *
 * @param nowMs epoch milliseconds
 * @param bodyText body of the response, searched for GitHub's wording only; never part of the error
 */
export function providerErrorFromResponse(
  response: ProviderResponseHead,
  nowMs: number,
  bodyText = '',
): GitProviderError | null {
  const { status, headers } = response;
  switch (status) {
    case 401:
      return new GitProviderError('unauthorized');
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
 * `GitProviderError` is returned as it is. Libraries wrap the errors of the fetch they were given, so the chain of
 * causes is searched; an `UpstreamError` found there becomes the cause instead of its wrapper, which can hold the
 * request.
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

/**
 * One error for a question none of whose parts could be read. A rejection of the token says most, else the first part
 * speaks; all stay in the cause.
 *
 * @param reasons why each part failed, the most important part first; at least one
 */
export function combinedError(reasons: readonly unknown[]): GitProviderError {
  const errors = reasons.map(providerErrorFromUpstream);
  const main = errors.find(({ code }) => code === 'unauthorized') ?? errors[0];
  return new GitProviderError(main?.code ?? 'unavailable', {
    cause: new AggregateError(errors, 'every request failed'),
    retryAfterSeconds: main?.retryAfterSeconds ?? null,
  });
}

/**
 * Whole seconds until trying again makes sense, or null when the headers do not tell. `Retry-After` (seconds
 * or an HTTP date, RFC 9110 section 10.2.3) comes first; otherwise an exhausted limit's reset time, one second
 * later: GitHub's `x-ratelimit-reset`, GitLab's `ratelimit-reset` (both epoch seconds,
 * https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/). Moments that have passed give 1.
 *
 * @param nowMs epoch milliseconds
 */
export function retryAfterSeconds(headers: Headers, nowMs: number): number | null {
  const retryAfter = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(retryAfter)) {
    return Math.max(1, Number(retryAfter));
  }
  const moment = retryAfter === '' ? Number.NaN : Date.parse(retryAfter);
  if (!Number.isNaN(moment)) {
    return secondsUntil(moment, nowMs);
  }
  for (const prefix of ['x-ratelimit', 'ratelimit']) {
    const reset = headers.get(`${prefix}-reset`) ?? '';
    if (headers.get(`${prefix}-remaining`) === '0' && /^\d{1,12}$/.test(reset)) {
      return secondsUntil((Number(reset) + 1) * 1000, nowMs);
    }
  }
  return null;
}

/** What is asked about is not there, or not for this token: providers do not tell these apart. */
export function notFound(what: string): GitProviderError {
  return new GitProviderError('unsupported', {
    reason: `there is no such ${what}, or the token cannot see it`,
  });
}

/** Whether a failure says that what was asked about is not there, in words for people. */
export function isNotFound(error: unknown): error is GitProviderError & { reason: string } {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}

/** Collects why parts of a result are missing, each reason once, in the order in which they came. */
export class GapLog {
  private readonly found = new Set<ProviderErrorCode>();

  /**
   * Notes why a part is missing.
   *
   * @throws the error itself when it is a defect of ours and no failure of the provider
   */
  note(error: unknown): GitProviderError {
    if (!(error instanceof GitProviderError)) {
      throw error;
    }
    this.found.add(error.code);
    return error;
  }

  codes(): ProviderErrorCode[] {
    return [...this.found];
  }
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

function secondsUntil(moment: number, nowMs: number): number {
  return Math.max(1, Math.ceil((moment - nowMs) / 1000));
}
