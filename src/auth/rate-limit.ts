import { BoundedCache } from '@slipway/common/bounded-cache.js';

const MINUTE_MS = 60_000;
/** More than one replica serves in a window; the longest idle caller is forgotten first. */
const MAX_CALLERS = 100_000;

export interface RateLimitState {
  isExceeded: boolean;
  remaining: number;
  resetSeconds: number;
}

/** Counts requests in windows, of a minute by default, from a caller's first one, by elapsed time: the clock may be set back. */
export class RateLimit {
  private readonly windows = new BoundedCache<string, { hits: number; endsAt: number }>(MAX_CALLERS);

  /** `limit` 0 is unlimited; `monotonic` returns milliseconds. */
  constructor(
    readonly limit: number,
    private readonly monotonic: () => number = () => performance.now(),
    private readonly windowMs = MINUTE_MS,
  ) {}

  count(caller: string): RateLimitState {
    const now = this.monotonic();
    const known = this.windows.get(caller);
    const window = known && now < known.endsAt ? known : { hits: 0, endsAt: now + this.windowMs };
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
