import type { Clock } from '../../../common/clock.js';

const FIRST_MS = 2_000;
const MOST_MS = 5 * 60_000;
/** A failure after a longer time without one is the first again. */
const FORGET_MS = 15 * 60_000;

interface Failures {
  count: number;
  lastAt: number;
  retryAt: number;
}

/** How long to wait before another warm sandbox is started where the last one failed, or ended by itself. */
export class WarmBackOff {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  allows(fingerprint: string): boolean {
    return this.clock.now() >= (this.failures.get(fingerprint)?.retryAt ?? 0);
  }

  /** @returns how long to wait, milliseconds */
  failed(fingerprint: string): number {
    const now = this.clock.now();
    const known = this.failures.get(fingerprint);
    const before = known !== undefined && now - known.lastAt < FORGET_MS ? known.count : 0;
    const delayMs = Math.min(FIRST_MS * 2 ** before, MOST_MS);
    this.failures.set(fingerprint, { count: before + 1, lastAt: now, retryAt: now + delayMs });
    return delayMs;
  }

  /** One of them was of use. */
  succeeded(fingerprint: string): void {
    this.failures.delete(fingerprint);
  }
}
