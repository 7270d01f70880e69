import { setTimeout } from 'node:timers/promises';
import { UpstreamError, type UpstreamReason } from '../common/http/upstream-error.js';
import type { GitProviderError } from './git-provider.error.js';
import type { ProviderCall } from './git-provider.types.js';
import { providerErrorFromUpstream } from './provider-response.js';

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
