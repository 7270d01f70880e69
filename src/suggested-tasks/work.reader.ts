import { createHmac, randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { errorStack } from '../common/errors/error-message.js';
import { AppConfig } from '../config/app-config.js';
import {
  GitProviderError,
  type GitProvider,
  type ProviderType,
  type ProviderWork,
} from '../git-providers/git-provider.js';
import { GitProviderRegistry } from '../git-providers/git-provider.registry.js';
import { ProviderCalls } from '../git-providers/provider-calls.js';
import type { StoredCredential } from '../git-providers/tokens/provider-token.repository.js';
import type { WorkSource } from './candidate.js';
import { type CachedWork, WorkCache } from './work-cache.js';

/** What came of reading one provider. */
export type ProviderOutcome = { provider: ProviderType } & (
  { source: WorkSource; read: CachedWork } | { error: GitProviderError }
);

/** Reads one user's work from one provider, through the cache, and logs what went wrong. */
@Injectable()
export class WorkReader {
  private readonly logger = new Logger(WorkReader.name);
  /** Keys of the cache contain hashes of tokens with this key: the cache tells nothing about a token. */
  private readonly fingerprintKey = randomBytes(32);

  constructor(
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
    private readonly cache: WorkCache,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {}

  /** Never rejects for what a provider does: its failure is the outcome. */
  async read(userId: string, credential: StoredCredential): Promise<ProviderOutcome> {
    const { provider } = credential;
    try {
      const adapter = await this.adapterFor(credential);
      const { kind, workPolicy: policy } = adapter;
      const read = await this.cache.read(
        this.cacheKey(userId, credential),
        policy,
        () => this.refresh(userId, credential, adapter),
        this.config.git.tasksTimeoutMs,
      );
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

  private async adapterFor({ provider, host }: StoredCredential): Promise<GitProvider> {
    try {
      return await this.registry.providerFor(provider, host);
    } catch (error) {
      throw this.logged(provider, error);
    }
  }

  private async refresh(
    userId: string,
    credential: StoredCredential,
    adapter: GitProvider,
  ): Promise<ProviderWork> {
    const { provider } = credential;
    const startedAt = this.clock.now();
    const call = this.calls.withStored(this.config.git.tasksTimeoutMs, userId, credential, (successor) => {
      this.cache.alias(
        this.cacheKey(userId, credential),
        this.cacheKey(userId, { ...credential, token: successor }),
      );
    });
    try {
      const work = await adapter.findWork(credential, call);
      for (const code of work.gaps) {
        this.logger.warn('failed to read part of a git provider', { provider, code });
      }
      this.logger.debug('git provider read', { provider, ms: this.clock.now() - startedAt });
      return work;
    } catch (error) {
      throw this.logged(provider, error);
    }
  }

  private logged(provider: ProviderType, error: unknown): GitProviderError {
    const failure =
      error instanceof GitProviderError ? error : new GitProviderError('unavailable', { cause: error });
    this.logger.warn('failed to read a git provider', {
      provider,
      code: failure.code,
      retry_after: failure.retryAfterSeconds,
      // A defect of ours and no failure of the provider: worth its stack.
      ...(failure !== error && { stack: errorStack(error) }),
    });
    return failure;
  }

  /** Contains the time of storing too: whoever stores a token anew, even the same one, wants it tried again. */
  private cacheKey(userId: string, { provider, host, updatedAt, token }: StoredCredential): string {
    const fingerprint = createHmac('sha256', this.fingerprintKey).update(token).digest('base64url');
    return [userId, provider, host ?? '', updatedAt.getTime(), fingerprint].join(' ');
  }
}
