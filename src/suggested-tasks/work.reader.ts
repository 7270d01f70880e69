import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import {
  type GitProvider,
  GitProviderError,
  type ProviderCall,
  type ProviderErrorCode,
  type ProviderType,
  type ProviderWork,
  type WorkPolicy,
} from '../git-providers/git-provider.js';
import { type Cached, ProviderCache } from '../git-providers/provider-cache.js';
import { ProviderReader } from '../git-providers/provider-reader.js';
import type { StoredCredential } from '../git-providers/tokens/provider-token.repository.js';
import type { WorkSource } from './candidate.js';

/** Milliseconds: after a temporary partial failure, as soon as after a complete one. */
const FRESH_PARTIAL_MS = 30_000;
/** Gaps that remain until the token's rights change. */
const LASTING_GAPS: readonly ProviderErrorCode[] = [
  'sso_required',
  'insufficient_scope',
  'query_too_large',
  'blocked_by_policy',
  'unsupported',
];

/** About 100 MB. */
const MAX_ENTRIES = 5_000;
const MAX_ITEMS = 200_000;

/** Keeps providers' work per credential, for a minute or two by the provider's policy. */
@Injectable()
export class WorkCache extends ProviderCache<ProviderWork> {
  constructor(clock: Clock) {
    super(clock, { maxEntries: MAX_ENTRIES, maxItems: MAX_ITEMS, countItems });
  }
}

export type CachedWork = Cached<ProviderWork>;

/** How long work is served from the cache, in milliseconds. */
export function workFreshFor(policy: WorkPolicy, work: ProviderWork): number {
  const isComputing = work.changeRequests.some(({ conflicts }) => conflicts === 'unknown');
  const usual = isComputing ? policy.freshWhileComputingMs : policy.freshMs;
  const isMissingForNow = work.gaps.some((code) => !LASTING_GAPS.includes(code));
  return isMissingForNow ? Math.min(usual, FRESH_PARTIAL_MS) : usual;
}

function countItems(work: ProviderWork): number {
  return (
    work.changeRequests.length +
    work.issues.length +
    work.recentRepositories.length +
    work.probedRepositories.length
  );
}

export type ProviderOutcome = { provider: ProviderType } & (
  { source: WorkSource; read: CachedWork } | { error: GitProviderError }
);

@Injectable()
export class WorkReader {
  private readonly logger = new Logger(WorkReader.name);

  constructor(
    private readonly providers: ProviderReader,
    private readonly cache: WorkCache,
  ) {}

  /** Reads a provider's work. Never rejects for a failure of the provider, which is an outcome. */
  async read(userId: string, credential: StoredCredential): Promise<ProviderOutcome> {
    const { provider } = credential;
    try {
      const { adapter, read } = await this.providers.read(userId, credential, {
        cache: this.cache,
        subject: 'work',
        ask: (git, call) => this.findWork(git, credential, call),
        freshFor: ({ workPolicy }, work) => workFreshFor(workPolicy, work),
      });
      const { kind, workPolicy: policy } = adapter;
      return {
        provider,
        source: { provider, kind, server: adapter.serverOf(credential.host), policy },
        read,
      };
    } catch (error) {
      if (error instanceof GitProviderError) {
        return { provider, error };
      }
      throw error;
    }
  }

  private async findWork(
    adapter: GitProvider,
    credential: StoredCredential,
    call: ProviderCall,
  ): Promise<ProviderWork> {
    const work = await adapter.findWork(credential, call);
    for (const code of work.gaps) {
      this.logger.warn('failed to read part of a git provider', { provider: credential.provider, code });
    }
    return work;
  }
}
