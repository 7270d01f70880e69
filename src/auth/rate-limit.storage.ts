import type { ThrottlerStorage } from '@nestjs/throttler';
import { BoundedCache } from '../common/bounded-cache.js';

/** More keys than one replica serves within a window; the one that was idle longest is forgotten first. */
const MAX_KEYS = 100_000;

/** The record of a key for @nestjs/throttler. Times are seconds. */
type RateLimitRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

interface Window {
  hits: number;
  endsAt: number;
  /** 0: not blocked. */
  blockedUntil: number;
}

/**
 * Counts requests by key, in windows that begin with the first of them. Goes by time that has passed, not by the clock of
 * the machine: when that was set back by an hour, the library's own storage refused whoever had reached the limit for that
 * hour.
 */
export class RateLimitStorage implements ThrottlerStorage {
  private readonly windows = new BoundedCache<string, Window>(MAX_KEYS);

  /** @param monotonic milliseconds since some moment */
  constructor(private readonly monotonic: () => number = () => performance.now()) {}

  /**
   * Counts one request.
   *
   * @param ttl length of a window, milliseconds
   * @param blockDuration how long a key is refused that has exceeded the limit, milliseconds
   */
  increment(key: string, ttl: number, limit: number, blockDuration: number): Promise<RateLimitRecord> {
    const now = this.monotonic();
    const window = this.windowOf(key, now, ttl);
    const isBlocked = window.blockedUntil > now;
    if (!isBlocked) {
      window.hits += 1;
      if (window.hits > limit) {
        window.blockedUntil = now + blockDuration;
        window.endsAt = window.blockedUntil;
      }
    }
    return Promise.resolve({
      totalHits: window.hits,
      timeToExpire: seconds(window.endsAt - now),
      isBlocked: window.blockedUntil > now,
      timeToBlockExpire: seconds(window.blockedUntil - now),
    });
  }

  private windowOf(key: string, now: number, ttl: number): Window {
    const known = this.windows.get(key);
    if (known && now < known.endsAt) {
      return known;
    }
    const opened: Window = { hits: 0, endsAt: now + ttl, blockedUntil: 0 };
    this.windows.set(key, opened);
    return opened;
  }
}

function seconds(milliseconds: number): number {
  // Differences of fractional milliseconds are off by a billionth.
  return Math.max(0, Math.ceil(Math.round(milliseconds) / 1000));
}
