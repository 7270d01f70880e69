import { GitProviderError } from './git-provider.error.js';
import type { ProviderCall } from './git-provider.types.js';

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
