import { LRUCache } from 'lru-cache';
import { inTime } from '@slipway/common/async.js';
import type { Clock } from '@slipway/common/clock.js';
import {
  type GitProvider,
  GitProviderError,
  type ProviderErrorCode,
} from '@slipway/git-providers/git-provider.js';

const STALE_WHILE_REVALIDATE_MS = 10 * 60_000;
const STALE_IF_ERROR_MS = 60 * 60_000;
const MAX_REFUSAL_MS = 30_000;

/** What is read of a provider and kept for a while. */
export type GitReader = Pick<
  GitProvider,
  | 'kind'
  | 'workPolicy'
  | 'serverOf'
  | 'cloneUrl'
  | 'findWork'
  | 'getUser'
  | 'searchRepositories'
  | 'searchBranches'
  | 'listInstallations'
>;

interface Entry<Value> {
  kept?: { value: Value; freshMs: number; readAt: number };
  failure?: { error: GitProviderError; at: number; until: number };
}

export interface Cached<Value> {
  value: Value;
  /** Seconds since it was read. */
  age: number;
  /** Past its fresh time, and not refreshed for this request. */
  stale: boolean;
}

/** What a provider said, and for how many milliseconds it is fresh. */
export interface FreshFor<Value> {
  value: Value;
  freshMs: number;
}

/** An answer and the key that finds it from now on. */
export interface Answer<Value> extends FreshFor<Value> {
  key: string;
}

/** What is known of a key at one moment. */
export interface Known<Value> {
  /** Null: a caller has to wait for the provider. */
  served: Cached<Value> | null;
  /** Whether to ask the provider, for this caller or behind its back. */
  isDue: boolean;
  /** Older, for a provider that is down. */
  fallback: Cached<Value> | null;
}

export interface ProviderCacheLimits<Value> {
  maxEntries: number;
  maxItems: number;
  countItems: (value: Value) => number;
}

/**
 * Keeps answers per credential: fresh as long as they say, then served while a refresh runs in the background, then
 * kept only for the case that the provider is down. Concurrent readers of one key share one refresh.
 */
export class ProviderCache<Value extends {}> {
  private readonly entries: LRUCache<string, Entry<Value>>;
  private readonly refreshes = new Map<string, Promise<Value>>();

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

  /** @throws GitProviderError, a refusal that is remembered, without anything to serve */
  find(key: string): Known<Value> {
    const entry = this.entries.get(key) ?? {};
    const now = this.clock.now();
    if (entry.kept && entry.kept.readAt > now) {
      // The clock was set back, so the age is unknown: treat as not fresh, and as older from now on.
      entry.kept.readAt = now - entry.kept.freshMs;
    }
    return knownOf(entry, now);
  }

  /** The refresh that another reader has begun. */
  running(key: string): Promise<Value> | null {
    return this.refreshes.get(key) ?? null;
  }

  /** Keeps what the provider answers, or why it does not. */
  refresh(key: string, answer: Promise<Answer<Value>>): Promise<Value> {
    const refresh = this.keep(key, answer);
    this.refreshes.set(key, refresh);
    // Those who wait for it hear of a failure, and it may be that no reader does.
    refresh.catch(() => undefined);
    return refresh;
  }

  private async keep(key: string, answer: Promise<Answer<Value>>): Promise<Value> {
    try {
      const { key: from, value, freshMs } = await answer;
      this.entries.set(from, { kept: { value, freshMs, readAt: this.clock.now() } });
      return value;
    } catch (error) {
      this.rememberFailure(key, error);
      throw error;
    } finally {
      this.refreshes.delete(key);
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

function knownOf<Value>({ kept, failure }: Entry<Value>, now: number): Known<Value> {
  const age = kept ? now - kept.readAt : Infinity;
  const served = kept ? { value: kept.value, age: Math.floor(age / 1000), stale: age >= kept.freshMs } : null;
  if (served?.stale === false) {
    return { served, isDue: false, fallback: null };
  }
  const fallback = age < STALE_IF_ERROR_MS ? served : null;
  if (failure && failure.at <= now && now < failure.until) {
    if (fallback && mayServeStale(failure.error.code)) {
      return { served: fallback, isDue: false, fallback };
    }
    throw remaining(failure.error, now - failure.at);
  }
  return { served: age < STALE_WHILE_REVALIDATE_MS ? served : null, isDue: true, fallback };
}

/** Waits for a refresh, for milliseconds, unless something can be served without. @throws GitProviderError */
export async function settled<Value>(
  { served, fallback }: Known<Value>,
  refresh: Promise<Value> | null,
  waitMs: number,
): Promise<Cached<Value>> {
  if (served) {
    return served;
  }
  if (!refresh) {
    throw new Error('what is due was not asked for');
  }
  try {
    // The work goes on for other readers and the cache.
    const value = await inTime(waitMs, refresh, () => new GitProviderError('timeout'));
    return { value, age: 0, stale: false };
  } catch (error) {
    if (fallback && error instanceof GitProviderError && mayServeStale(error.code)) {
      return fallback;
    }
    throw error;
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

function remaining(error: GitProviderError, elapsedMs: number): GitProviderError {
  const left =
    error.retryAfterSeconds === null
      ? null
      : Math.max(1, error.retryAfterSeconds - Math.floor(elapsedMs / 1000));
  const { reason, said } = error;
  return new GitProviderError(error.code, { cause: error, retryAfterSeconds: left, reason, said });
}
