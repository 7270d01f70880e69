import { setTimeout } from 'node:timers/promises';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import type { GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { UpstreamError, type UpstreamReason } from '@slipway/common/http/upstream-error.js';
import { GitProviderError, type CallBounds } from './git-provider.js';
import { providerErrorFromUpstream } from './provider-errors.js';

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

/** Servers without a field that newer ones have: forgotten after a while, since they get updated. */
export function oldServers({ now }: RetryTiming): BoundedCache<string, true> {
  return new BoundedCache(MAX_OLD_SERVERS, { ttl: OLD_SERVER_TTL_MS, perf: { now } });
}

const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** Milliseconds kept before the caller's deadline, so that what was read still reaches the caller. */
const RESERVED_MS = 250;

const MIN_WAIT_MS = 250;
const JITTER_MS = 500;
/** A call fails instead of waiting longer than this. */
const MAX_RETRY_AFTER_SECONDS = 2;
/** A refused address or an oversized response would fail again. */
const TRANSIENT_REASONS: readonly UpstreamReason[] = ['network', 'malformed'];

/** Repeats an attempt once, after {@link pauseBeforeRetry}. @throws GitProviderError of the last attempt */
export async function retryOnce<T>(
  attempt: () => Promise<T>,
  call: CallBounds,
  timing: RetryTiming,
): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    await pauseBeforeRetry(error, call, timing);
    try {
      return await attempt();
    } catch (second) {
      throw providerErrorFromUpstream(second);
    }
  }
}

/**
 * Waits 250 to 750 ms before another attempt, if it can help and the caller still waits then.
 * @returns why the first one failed
 * @throws GitProviderError, the same, when there should be no other
 */
export async function pauseBeforeRetry(
  error: unknown,
  call: CallBounds,
  timing: RetryTiming,
): Promise<GitProviderError> {
  const first = providerErrorFromUpstream(error);
  const waitMs = MIN_WAIT_MS + timing.random() * JITTER_MS;
  if (!isTransient(first) || timing.now() + waitMs >= call.deadlineAt) {
    throw first;
  }
  try {
    await timing.delay(waitMs, call.signal);
  } catch (aborted) {
    throw providerErrorFromUpstream(aborted);
  }
  return first;
}

function timeLeft(call: CallBounds, nowMs: number): number {
  const left = call.deadlineAt - RESERVED_MS - nowMs;
  if (left <= 0) {
    throw new GitProviderError('timeout');
  }
  return left;
}

/** Bounds one more request; `nowMs` is epoch milliseconds. @throws GitProviderError `timeout` without time left */
export function requestBounds(
  call: CallBounds,
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

function isTransient(error: GitProviderError): boolean {
  if (error.code !== 'unavailable' || (error.retryAfterSeconds ?? 0) > MAX_RETRY_AFTER_SECONDS) {
    return false;
  }
  return error.cause instanceof UpstreamError
    ? TRANSIENT_REASONS.includes(error.cause.reason)
    : error.cause === undefined;
}
