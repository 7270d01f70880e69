import { setTimeout } from 'node:timers/promises';
import type { OnApplicationShutdown } from '@nestjs/common';
import {
  GuardedHttpClient,
  type GuardedHttpOptions,
  type GuardedRequestInit,
} from '../common/http/guarded-http.client.js';
import { readJson } from '../common/http/response-body.js';
import { UpstreamError, type UpstreamReason } from '../common/http/upstream-error.js';
import { GitProviderError, type ProviderCall } from './git-provider.js';
import type { ProviderMetrics } from './provider.metrics.js';
import { providerErrorFromResponse, providerErrorFromUpstream } from './provider-errors.js';

/** The one client for calls to git servers and to their identity provider; closes its connections at shutdown. */
export class GitHttpClient extends GuardedHttpClient implements OnApplicationShutdown {
  constructor(
    options: GuardedHttpOptions,
    private readonly metrics: ProviderMetrics,
  ) {
    super(options);
  }

  override async fetch(url: string | URL, init?: GuardedRequestInit): Promise<Response> {
    return this.metrics.measure(url, () => super.fetch(url, init));
  }

  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}

/** Base address of a canonical host, such as `https://gitlab.example.com`, without a trailing slash. */
export function gitHostBaseUrl(host: string): string {
  return host.startsWith('http://') ? host : `https://${host}`;
}

export interface RetryTiming {
  /** Waits for milliseconds; rejects when the signal aborts. */
  delay: (ms: number, signal: AbortSignal) => Promise<void>;
  /** At least 0, below 1. */
  random: () => number;
  now: () => number;
}

export const SYSTEM_RETRY_TIMING: RetryTiming = {
  delay: async (ms, signal) => {
    await setTimeout(ms, undefined, { signal });
  },
  random: () => Math.random(),
  now: () => Date.now(),
};

interface JsonRequest {
  url: string;
  headers: Record<string, string>;
  /** Is removed from what a refusal shows. */
  token: string;
  body?: unknown;
}

export interface JsonResponse {
  headers: Headers;
  /** Null for 404, which often only means "there is none". */
  body: unknown;
}

/** Milliseconds kept before the caller's deadline, so that what was read still reaches the caller. */
const RESERVED_MS = 250;

const MIN_WAIT_MS = 250;
const JITTER_MS = 500;
/** For a longer pause the call fails instead of waiting. */
const MAX_RETRY_AFTER_SECONDS = 2;
/** A refused address or an oversized response would fail again. */
const TRANSIENT_REASONS: readonly UpstreamReason[] = ['network', 'malformed'];

/**
 * Sends one reading request and returns its JSON; a server in trouble is asked once more.
 * @throws GitProviderError for every response but success and 404, and when none came in time
 */
export async function exchangeJson(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonResponse> {
  return await retryOnce(() => exchangeOnce(http, request, call, timing), call, timing);
}

/**
 * Repeats an attempt once, after 250 to 750 ms, when it failed for a reason that may pass and the caller still waits.
 * @throws GitProviderError of the last attempt
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

function timeLeft(call: ProviderCall, nowMs: number): number {
  const left = call.deadlineAt - RESERVED_MS - nowMs;
  if (left <= 0) {
    throw new GitProviderError('timeout');
  }
  return left;
}

/** Bounds one more request; `nowMs` is epoch milliseconds. @throws GitProviderError `timeout` without time left */
export function requestBounds(
  call: ProviderCall,
  nowMs: number,
): Pick<GuardedRequestInit, 'signal' | 'timeoutMs' | 'holder' | 'work'> {
  const { signal, userId } = call;
  return {
    signal,
    timeoutMs: timeLeft(call, nowMs),
    work: signal,
    ...(userId !== undefined && { holder: userId }),
  };
}

async function exchangeOnce(
  http: GuardedHttpClient,
  request: JsonRequest,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<JsonResponse> {
  const response = await http.fetch(request.url, {
    headers: {
      accept: 'application/json',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { method: 'POST', body: JSON.stringify(request.body) }),
    ...requestBounds(call, timing.now()),
  });
  if (response.status >= 400 && response.status !== 404) {
    const body = { text: await response.text(), token: request.token };
    const failure = providerErrorFromResponse(response, timing.now(), body);
    if (failure) {
      throw failure;
    }
  }
  if (response.status === 404) {
    return { headers: response.headers, body: null };
  }
  if (!response.ok) {
    // The server understood the request and refuses it, so a retry changes nothing.
    throw new GitProviderError('unsupported');
  }
  return { headers: response.headers, body: await readJson(response, new URL(request.url).origin) };
}

function isTransient(error: GitProviderError): boolean {
  if (error.code !== 'unavailable' || (error.retryAfterSeconds ?? 0) > MAX_RETRY_AFTER_SECONDS) {
    return false;
  }
  return error.cause instanceof UpstreamError
    ? TRANSIENT_REASONS.includes(error.cause.reason)
    : error.cause === undefined;
}
