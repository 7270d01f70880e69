import { setTimeout } from 'node:timers/promises';
import type { OnApplicationShutdown } from '@nestjs/common';
import { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import { readJson } from '../common/http/response-body.js';
import { UpstreamError, type UpstreamReason } from '../common/http/upstream-error.js';
import { GitProviderError, type ProviderCall, type ProviderErrorCode } from './git-provider.js';

/** Time and chance, replaceable in tests. */
export interface RetryTiming {
  /** Waits, in milliseconds; rejects when the signal aborts. */
  delay: (ms: number, signal: AbortSignal) => Promise<void>;
  /** At least 0, below 1. */
  random: () => number;
  /** Epoch milliseconds. */
  now: () => number;
}

export const SYSTEM_RETRY_TIMING: RetryTiming = {
  delay: async (ms, signal) => {
    await setTimeout(ms, undefined, { signal });
  },
  random: () => Math.random(),
  now: () => Date.now(),
};

const MIN_WAIT_MS = 250;
const JITTER_MS = 500;
/** A server that wants a longer pause is not asked again within the call. */
const MAX_RETRY_AFTER_SECONDS = 2;
/** Failures of the moment; a refused address or an oversized answer would fail again. */
const TRANSIENT_REASONS: readonly UpstreamReason[] = ['network', 'malformed'];

/**
 * Runs an attempt, and once more after 250 to 750 ms when it failed for a reason that may pass: a 5xx, a broken
 * connection or a broken body. Not when the caller would have stopped waiting by then.
 *
 * @throws GitProviderError of the last attempt.
 */
export async function retryOnce<T>(
  attempt: () => Promise<T>,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    const first = providerErrorFromUpstream(error);
    const waitMs = MIN_WAIT_MS + timing.random() * JITTER_MS;
    if (!isTransient(first) || timing.now() + waitMs >= call.deadlineAt) {
      throw first;
    }
    try {
      await timing.delay(waitMs, call.signal);
      return await attempt();
    } catch (second) {
      throw providerErrorFromUpstream(second);
    }
  }
}

function isTransient(error: GitProviderError): boolean {
  if (error.code !== 'unavailable' || (error.retryAfterSeconds ?? 0) > MAX_RETRY_AFTER_SECONDS) {
    return false;
  }
  return error.cause instanceof UpstreamError
    ? TRANSIENT_REASONS.includes(error.cause.reason)
    : error.cause === undefined;
}

/** Collects why parts of an answer are missing, each reason once, in the order they came. */
export class GapLog {
  private readonly found = new Set<ProviderErrorCode>();

  /**
   * Notes why a part is missing.
   *
   * @throws the error itself when it is no provider's failure but a defect of ours
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

/** The one client for calls to git hosts and to their identity provider; closes its connections at shutdown. */
export class GitHttpClient extends GuardedHttpClient implements OnApplicationShutdown {
  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}

/**
 * Whole seconds until trying again makes sense, or null when the headers do not tell. `Retry-After` (seconds
 * or an HTTP date, RFC 9110 section 10.2.3) comes first; otherwise an exhausted limit's reset time, one second
 * later: GitHub's `x-ratelimit-reset`, GitLab's `ratelimit-reset` (both epoch seconds,
 * https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/). Moments that have passed give 1.
 *
 * @param nowMs Epoch milliseconds.
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

function secondsUntil(moment: number, nowMs: number): number {
  return Math.max(1, Math.ceil((moment - nowMs) / 1000));
}

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

/**
 * One error for an answer none of whose parts could be read. A rejection of the token says most, else the first
 * part speaks; all stay in the cause.
 *
 * @param reasons Why each part failed, the most important part first; at least one
 */
export function combinedError(reasons: readonly unknown[]): GitProviderError {
  const errors = reasons.map(providerErrorFromUpstream);
  const main = errors.find(({ code }) => code === 'unauthorized') ?? errors[0];
  return new GitProviderError(main?.code ?? 'unavailable', {
    cause: new AggregateError(errors, 'every request failed'),
    retryAfterSeconds: main?.retryAfterSeconds ?? null,
  });
}

/** Kept before the caller's deadline, so that what was read still reaches it. */
const SPARE_MS = 250;

/**
 * How long one more request of a call may take, in milliseconds.
 *
 * @param nowMs Epoch milliseconds
 * @throws GitProviderError `timeout` when there is no time left
 */
export function timeLeft(call: ProviderCall, nowMs: number): number {
  const left = call.deadlineAt - SPARE_MS - nowMs;
  if (left <= 0) {
    throw new GitProviderError('timeout');
  }
  return left;
}

interface JsonRequest {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST; without it the request is a GET. */
  body?: unknown;
}

export interface JsonAnswer {
  headers: Headers;
  /** Unparsed wire data; null for 404, which often just means "there is none". */
  body: unknown;
}

/**
 * Sends one reading request and answers with its JSON. A server in trouble is asked once more.
 *
 * @throws GitProviderError for every other answer than success and 404, and when none came in time
 */
export async function exchangeJson(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonAnswer> {
  return await retryOnce(() => exchangeOnce(http, request, call, timing), call, timing);
}

async function exchangeOnce(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonAnswer> {
  const timeoutMs = timeLeft(call, timing.now());
  const response = await http.fetch(request.url, {
    headers: {
      accept: 'application/json',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { method: 'POST', body: JSON.stringify(request.body) }),
    signal: call.signal,
    timeoutMs,
  });
  const failure = providerErrorFromResponse(response, timing.now());
  if (failure) {
    throw failure;
  }
  if (response.status === 404) {
    return { headers: response.headers, body: null };
  }
  if (!response.ok) {
    // The server understood and will not: asking again changes nothing.
    throw new GitProviderError('unsupported');
  }
  return { headers: response.headers, body: await readJson(response, new URL(request.url).origin) };
}

const MAX_LENGTH = 300;
const HIDDEN = '***';

/**
 * One line out of what a provider said, fit to show: without the token, control characters and anything beyond 300
 * characters; null when it said nothing.
 */
export function providerReason(texts: readonly string[], token: string): string | null {
  const parts = texts.map((text) => text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim());
  const line = [...new Set(parts.filter((part) => part !== ''))].join('; ');
  const masked = secretFormsOf(token).reduce((text, form) => text.replaceAll(form, HIDDEN), line);
  if (masked === '') {
    return null;
  }
  const characters = Array.from(masked);
  return characters.length <= MAX_LENGTH ? masked : `${characters.slice(0, MAX_LENGTH - 1).join('')}…`;
}

/** The token, the secret of `email:secret`, and both as they travel; longest first. */
function secretFormsOf(token: string): string[] {
  const secret = token.slice(token.indexOf(':') + 1);
  return [token, secret]
    .filter((text) => text !== '')
    .flatMap((text) => [text, Buffer.from(text, 'utf8').toString('base64'), encodeURIComponent(text)])
    .toSorted((a, b) => b.length - a.length);
}
