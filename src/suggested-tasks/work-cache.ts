import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Clock } from '../common/clock.js';
import {
  GitProviderError,
  type ProviderErrorCode,
  type ProviderWork,
  type WorkPolicy,
} from '../git-providers/git-provider.js';

/** Parts that a passing failure hid are asked for again as soon as after a refusal of everything. */
const FRESH_PARTIAL_MS = 30_000;
/** Gaps that stay until somebody changes the token's rights. */
const LASTING_GAPS: readonly ProviderErrorCode[] = ['sso_required', 'insufficient_scope', 'unsupported'];
const STALE_WHILE_REVALIDATE_MS = 10 * 60_000;
const STALE_IF_ERROR_MS = 60 * 60_000;
const MAX_REFUSAL_MS = 30_000;

/** Together about 100 MB. */
const MAX_ENTRIES = 5_000;
const MAX_ITEMS = 200_000;

interface Entry {
  work?: { value: ProviderWork; readAt: number };
  failure?: { error: GitProviderError; at: number; until: number };
}

/** A provider's work from the cache. */
export interface CachedWork {
  work: ProviderWork;
  /** Seconds since it was read. */
  age: number;
  /** Older than it should be, and not refreshed for this request. */
  stale: boolean;
}

/** Reads a provider's work anew; rejects with `GitProviderError` only. */
type RefreshWork = () => Promise<ProviderWork>;

/**
 * Keeps providers' work per credential: fresh for a minute or two, then served while it is refreshed in the background,
 * then kept only for the case that the provider is down. Concurrent readers of one key share one refresh.
 */
@Injectable()
export class WorkCache {
  private readonly entries = new LRUCache<string, Entry>({
    max: MAX_ENTRIES,
    maxSize: MAX_ITEMS,
    sizeCalculation: ({ work }) => 1 + (work ? countItems(work.value) : 0),
  });
  private readonly refreshes = new Map<string, Promise<ProviderWork>>();
  private readonly successors = new Map<string, string>();

  constructor(private readonly clock: Clock) {}

  /**
   * @param waitMs how long this reader waits for a refresh, in milliseconds
   * @throws GitProviderError when there is nothing to serve
   */
  async read(key: string, policy: WorkPolicy, refresh: RefreshWork, waitMs: number): Promise<CachedWork> {
    const now = this.clock.now();
    const { work, failure } = this.entries.get(key) ?? {};
    const age = work ? now - work.readAt : Infinity;
    if (work && age < freshFor(policy, work.value)) {
      return served(work.value, age, false);
    }
    const known = failure && now < failure.until ? remaining(failure.error, now - failure.at) : null;
    if (work && !known && age < STALE_WHILE_REVALIDATE_MS) {
      // Its result lands in the cache; the refresh itself logs what went wrong.
      this.refresh(key, refresh).catch(() => undefined);
      return served(work.value, age, true);
    }
    try {
      if (known) {
        throw known;
      }
      return served(await within(this.refresh(key, refresh), waitMs), 0, false);
    } catch (error) {
      if (work && age < STALE_IF_ERROR_MS && error instanceof GitProviderError && mayServeStale(error.code)) {
        return served(work.value, age, true);
      }
      throw error;
    }
  }

  /** The token behind a running refresh was replaced: what the refresh reads is kept under the successor's key. */
  alias(from: string, to: string): void {
    this.successors.set(from, to);
  }

  private async refresh(key: string, refresh: RefreshWork): Promise<ProviderWork> {
    const running = this.refreshes.get(key);
    if (running) {
      return running;
    }
    const started = refresh().then(
      (value) => {
        this.entries.set(this.successors.get(key) ?? key, { work: { value, readAt: this.clock.now() } });
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
    const ms = rememberFailureFor(error.code, error.retryAfterSeconds);
    const { work } = this.entries.get(key) ?? {};
    const keptWork = work && mayServeStale(error.code) ? work : undefined;
    if (ms === 0 && !keptWork) {
      this.entries.delete(key);
      return;
    }
    this.entries.set(key, {
      ...(keptWork && { work: keptWork }),
      ...(ms > 0 && { failure: { error, at, until: at + ms } }),
    });
  }
}

/** How long a provider's work is served without asking again, in milliseconds. */
function freshFor(policy: WorkPolicy, work: ProviderWork): number {
  const isComputing = work.changeRequests.some(({ conflicts }) => conflicts === 'unknown');
  const usual = isComputing ? policy.freshWhileComputingMs : policy.freshMs;
  const isMissingForNow = work.gaps.some((code) => !LASTING_GAPS.includes(code));
  return isMissingForNow ? Math.min(usual, FRESH_PARTIAL_MS) : usual;
}

/** How long a failure is remembered, in milliseconds: refusals briefly, passing failures not at all. */
function rememberFailureFor(code: ProviderErrorCode, retryAfterSeconds: number | null): number {
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

/** Whether older data may stand in for a failed refresh: only when the failure says nothing about the token's rights. */
function mayServeStale(code: ProviderErrorCode): boolean {
  return code === 'unavailable' || code === 'timeout' || code === 'rate_limited';
}

function served(work: ProviderWork, ageMs: number, stale: boolean): CachedWork {
  return { work, age: Math.floor(ageMs / 1000), stale };
}

function remaining(error: GitProviderError, elapsedMs: number): GitProviderError {
  const left =
    error.retryAfterSeconds === null
      ? null
      : Math.max(1, error.retryAfterSeconds - Math.floor(elapsedMs / 1000));
  return new GitProviderError(error.code, { cause: error, retryAfterSeconds: left });
}

/** Stops waiting after a while; the work itself goes on for other readers and the cache. */
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

function countItems(work: ProviderWork): number {
  return (
    work.changeRequests.length +
    work.issues.length +
    work.recentRepositories.length +
    work.probedRepositories.length
  );
}
