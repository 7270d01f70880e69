import { BoundedCache } from '../common/bounded-cache.js';

const WINDOW_MS = 60_000;
/** More callers than one replica serves within a window; the one that was idle longest is forgotten first. */
const MAX_CALLERS = 100_000;

/** What is left to a caller. */
export interface RateLimitState {
  isExceeded: boolean;
  /** Requests that are left in the window. */
  remaining: number;
  /** Seconds until the next window. */
  resetSeconds: number;
}

/**
 * Counts the requests of each caller in windows of a minute that begin with the first of them. Goes by time that has
 * passed, not by the clock of the machine, which may be set back.
 */
export class RateLimit {
  private readonly windows = new BoundedCache<string, { hits: number; endsAt: number }>(MAX_CALLERS);

  /**
   * @param limit requests of a caller in a minute; 0: any number
   * @param monotonic milliseconds since some moment
   */
  constructor(
    readonly limit: number,
    private readonly monotonic: () => number = () => performance.now(),
  ) {}

  /** Counts a request. */
  count(caller: string): RateLimitState {
    const now = this.monotonic();
    const known = this.windows.get(caller);
    const window = known && now < known.endsAt ? known : { hits: 0, endsAt: now + WINDOW_MS };
    if (window !== known) {
      this.windows.set(caller, window);
    }
    window.hits += 1;
    return {
      isExceeded: this.limit > 0 && window.hits > this.limit,
      remaining: Math.max(0, this.limit - window.hits),
      // Differences of fractional milliseconds are off by a billionth.
      resetSeconds: Math.ceil(Math.round(window.endsAt - now) / 1000),
    };
  }
}
