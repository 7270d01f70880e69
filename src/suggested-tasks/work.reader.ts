import { Injectable, Logger } from '@nestjs/common';
import {
  GitProviderError,
  type GitProvider,
  type ProviderCall,
  type ProviderType,
  type ProviderWork,
} from '../git-providers/git-provider.js';
import { ProviderReader } from '../git-providers/provider-reader.js';
import type { StoredCredential } from '../git-providers/tokens/provider-token.repository.js';
import type { WorkSource } from './candidate.js';
import { type CachedWork, WorkCache, workFreshFor } from './work-cache.js';

/** What came of reading one provider. */
export type ProviderOutcome = { provider: ProviderType } & (
  { source: WorkSource; read: CachedWork } | { error: GitProviderError }
);

/** Reads one user's work from one provider, through the cache. */
@Injectable()
export class WorkReader {
  private readonly logger = new Logger(WorkReader.name);

  constructor(
    private readonly providers: ProviderReader,
    private readonly cache: WorkCache,
  ) {}

  /** Never rejects for what a provider does: its failure is the outcome. */
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
