import { LRUCache } from 'lru-cache';
import type { Clock } from '../common/clock.js';
import { GitProviderError, type ProviderErrorCode } from './git-provider.js';

const STALE_WHILE_REVALIDATE_MS = 10 * 60_000;
const STALE_IF_ERROR_MS = 60 * 60_000;
const MAX_REFUSAL_MS = 30_000;

interface Entry<Value> {
  kept?: { value: Value; readAt: number };
  failure?: { error: GitProviderError; at: number; until: number };
}

export interface Cached<Value> {
  value: Value;
  /** Seconds since it was read. */
  age: number;
  /** Past its fresh time, and not refreshed for this request. */
  stale: boolean;
}

export interface ProviderCacheLimits<Value> {
  maxEntries: number;
  maxItems: number;
  countItems: (value: Value) => number;
}

type Refresh<Value> = () => Promise<Value>;

/**
 * Keeps answers per credential: fresh as long as the reader says, then served while a refresh runs in the background,
 * then kept only for the case that the provider is down. Concurrent readers of one key share one refresh.
 */
export class ProviderCache<Value extends {}> {
  private readonly entries: LRUCache<string, Entry<Value>>;
  private readonly refreshes = new Map<string, Promise<Value>>();
  private readonly successors = new Map<string, string>();

  constructor(
    private readonly clock: Clock,
    { maxEntries, maxItems, countItems }: ProviderCacheLimits<Value>,
  ) {
    this.entries = new LRUCache({
      max: maxEntries,
      maxSize: maxItems,
      sizeCalculation: ({ kept }) => 1 + (kept ? countItems(kept.value) : 0),
    });
  }

  /** Reads a value; `freshFor` and `waitMs` are milliseconds. @throws GitProviderError without anything to serve */
  async read(
    key: string,
    freshFor: (value: Value) => number,
    refresh: Refresh<Value>,
    waitMs: number,
  ): Promise<Cached<Value>> {
    const now = this.clock.now();
    const { kept, failure } = this.entries.get(key) ?? {};
    if (kept && kept.readAt > now) {
      // The clock was set back, so the age is unknown: treat as not fresh, and as older from now on.
      kept.readAt = now - freshFor(kept.value);
    }
    const age = kept ? now - kept.readAt : Infinity;
    if (kept && age < freshFor(kept.value)) {
      return served(kept.value, age, false);
    }
    const isRemembered = failure !== undefined && failure.at <= now && now < failure.until;
    const known = isRemembered ? remaining(failure.error, now - failure.at) : null;
    if (kept && !known && age < STALE_WHILE_REVALIDATE_MS) {
      // The result lands in the cache; the refresh logs its own failures.
      this.refresh(key, refresh).catch(() => undefined);
      return served(kept.value, age, true);
    }
    try {
      if (known) {
        throw known;
      }
      return served(await within(this.refresh(key, refresh), waitMs), 0, false);
    } catch (error) {
      if (kept && age < STALE_IF_ERROR_MS && error instanceof GitProviderError && mayServeStale(error.code)) {
        return served(kept.value, age, true);
      }
      throw error;
    }
  }

  /** The token behind a running refresh was replaced: its result is kept under the successor's key. */
  alias(from: string, to: string): void {
    this.successors.set(from, to);
  }

  private async refresh(key: string, refresh: Refresh<Value>): Promise<Value> {
    const running = this.refreshes.get(key);
    if (running) {
      return running;
    }
    const started = refresh().then(
      (value) => {
        this.entries.set(this.successors.get(key) ?? key, { kept: { value, readAt: this.clock.now() } });
        return value;
      },
      (error: unknown) => {
        this.rememberFailure(key, error);
        throw error;
      },
    );
    this.refreshes.set(key, started);
    try {
      return await started;
    } finally {
      this.refreshes.delete(key);
      this.successors.delete(key);
    }
  }

  private rememberFailure(key: string, error: unknown): void {
    if (!(error instanceof GitProviderError)) {
      return;
    }
    const at = this.clock.now();
    const ms = rememberFailureFor(error);
    const { kept } = this.entries.get(key) ?? {};
    const stillKept = kept && mayServeStale(error.code) ? kept : undefined;
    if (ms === 0 && !stillKept) {
      this.entries.delete(key);
      return;
    }
    this.entries.set(key, {
      ...(stillKept && { kept: stillKept }),
      ...(ms > 0 && { failure: { error, at, until: at + ms } }),
    });
  }
}

/** Milliseconds; passing failures are not remembered. */
function rememberFailureFor({ code, retryAfterSeconds }: GitProviderError): number {
  switch (code) {
    case 'unavailable':
    case 'timeout':
      return 0;
    case 'rate_limited':
      return Math.min((retryAfterSeconds ?? 60) * 1000, MAX_REFUSAL_MS);
    default:
      return MAX_REFUSAL_MS;
  }
}

/** Only when the failure says nothing about the token's rights. */
function mayServeStale(code: ProviderErrorCode): boolean {
  return code === 'unavailable' || code === 'timeout' || code === 'rate_limited';
}

function served<Value>(value: Value, ageMs: number, stale: boolean): Cached<Value> {
  return { value, age: Math.floor(ageMs / 1000), stale };
}

function remaining(error: GitProviderError, elapsedMs: number): GitProviderError {
  const left =
    error.retryAfterSeconds === null
      ? null
      : Math.max(1, error.retryAfterSeconds - Math.floor(elapsedMs / 1000));
  const { reason, said } = error;
  return new GitProviderError(error.code, { cause: error, retryAfterSeconds: left, reason, said });
}

/** Stops waiting; the work goes on for other readers and the cache. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GitProviderError('timeout'));
    }, ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
