import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import {
  type GapReasons,
  GitProviderError,
  type ProviderCall,
  type ProviderErrorCode,
  type ProviderType,
  type ProviderWork,
  type WorkPolicy,
} from '@slipway/git-providers/git-provider.js';
import { workPage } from '@slipway/git-providers/git-servers.js';
import type { GitReader } from '../git-providers/provider-cache.js';
import { type Cached, type FreshFor, ProviderCache } from '../git-providers/provider-cache.js';
import { orFailure } from '@slipway/git-providers/provider-errors.js';
import { ProviderReader } from '../git-providers/provider-reader.js';
import type { StoredCredential } from '../git-providers/tokens/provider-token.repository.js';
import { type CollectedCandidates, collectCandidates, type WorkSource } from './collect-candidates.js';

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
const MAX_CANDIDATES = 200_000;

/** What one provider has to suggest, and why parts are missing. */
export interface FoundWork extends CollectedCandidates {
  gaps: readonly ProviderErrorCode[];
  gapReasons: GapReasons;
}

export type ProviderOutcome = { provider: ProviderType } & (
  { read: Cached<FoundWork> } | { error: GitProviderError }
);

/** Reads the open work of a user at one provider, and keeps it for a minute or two by the provider's policy. */
@Injectable()
export class WorkReader {
  private readonly logger = new Logger(WorkReader.name);
  private readonly cache: ProviderCache<FoundWork>;

  constructor(
    private readonly providers: ProviderReader,
    clock: Clock,
  ) {
    this.cache = new ProviderCache(clock, {
      maxEntries: MAX_ENTRIES,
      maxItems: MAX_CANDIDATES,
      countItems: ({ candidates }) => candidates.length,
    });
  }

  /** Never rejects for a failure of the provider, which is an outcome. */
  async read(userId: string, credential: StoredCredential): Promise<ProviderOutcome> {
    const { provider } = credential;
    const question = { userId, credential, subject: 'work' };
    const read = await orFailure(
      this.providers.read(question, this.cache, (adapter, call) => this.findWork(adapter, provider, call)),
    );
    return read instanceof GitProviderError ? { provider, error: read } : { provider, read };
  }

  private async findWork(
    adapter: GitReader,
    provider: ProviderType,
    call: ProviderCall,
  ): Promise<FreshFor<FoundWork>> {
    const { kind, workPolicy: policy } = adapter;
    const work = await adapter.findWork(call);
    for (const code of work.gaps) {
      this.logger.warn('failed to read part of a git provider', { provider, code });
    }
    const { host } = call;
    const pageOf: WorkSource['pageOf'] = (repository, item, number) =>
      workPage(adapter, { host, repository, item, number });
    const found = collectCandidates({ provider, kind, server: adapter.serverOf(host), policy, pageOf }, work);
    const { gaps, gapReasons = {} } = work;
    return { value: { ...found, gaps, gapReasons }, freshMs: workFreshFor(policy, work) };
  }
}

/** How long work is served from the cache, in milliseconds. */
export function workFreshFor(policy: WorkPolicy, work: ProviderWork): number {
  const isComputing = work.changeRequests.some(({ conflicts }) => conflicts === 'unknown');
  const usual = isComputing ? policy.freshWhileComputingMs : policy.freshMs;
  const isMissingForNow = work.gaps.some((code) => !LASTING_GAPS.includes(code));
  return isMissingForNow ? Math.min(usual, FRESH_PARTIAL_MS) : usual;
}
