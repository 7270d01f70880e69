import { setTimeout as wait } from 'node:timers/promises';

const SHORTEST_MS = 50;
const LONGEST_MS = 5_000;

/** Waits before another attempt: longer with each failure in a row (50 ms to 5 s), not at all once `signal` aborts. */
export async function reconnectDelay(failures: number, signal: AbortSignal): Promise<void> {
  const delay = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** Math.min(failures - 1, 10));
  try {
    await wait(delay, undefined, { signal, ref: false });
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}
