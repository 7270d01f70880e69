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
import {
  ProviderTokenRepository,
  type StoredCredential,
} from '../git-providers/tokens/provider-token.repository.js';
import { WorkCache, type CachedWork } from './work-cache.js';
import type { WorkSource } from './candidate.js';

/** One provider's part of the answer. */
export type ProviderOutcome = { provider: ProviderType } & (
  { source: WorkSource; read: CachedWork } | { error: GitProviderError }
);

/** Reads one user's work from one provider, through the cache, and reports what went wrong. */
@Injectable()
export class WorkReader {
  private readonly logger = new Logger(WorkReader.name);
  /** Tokens appear in cache keys only through this: the cache tells nothing about them. */
  private readonly fingerprintKey = randomBytes(32);

  constructor(
    private readonly registry: GitProviderRegistry,
    private readonly tokens: ProviderTokenRepository,
    private readonly cache: WorkCache,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {}

  /** Never rejects for what a provider does: its failure is the outcome. */
  async read(userId: string, credential: StoredCredential): Promise<ProviderOutcome> {
    const { provider } = credential;
    try {
      const adapter = this.adapterFor(credential);
      const read = await this.cache.read(
        this.cacheKey(userId, credential, credential.token),
        adapter.kind,
        () => this.refresh(userId, credential, adapter),
        this.config.git.tasksTimeoutMs,
      );
      return {
        provider,
        source: { provider, kind: adapter.kind, server: adapter.serverOf(credential.host) },
        read,
      };
    } catch (error) {
      if (error instanceof GitProviderError) {
        return { provider, error };
      }
      throw error;
    }
  }

  private adapterFor({ provider, host }: StoredCredential): GitProvider {
    try {
      return this.registry.providerFor(provider, host);
    } catch (error) {
      throw this.reported(provider, error);
    }
  }

  private async refresh(
    userId: string,
    credential: StoredCredential,
    adapter: GitProvider,
  ): Promise<ProviderWork> {
    const { provider, host } = credential;
    const { tasksTimeoutMs } = this.config.git;
    const startedAt = this.clock.now();
    let { token } = credential;
    try {
      const work = await adapter.findWork(
        { token, host },
        {
          signal: AbortSignal.timeout(tasksTimeoutMs),
          deadlineAt: startedAt + tasksTimeoutMs,
          replaceToken: async (successor) => {
            await this.tokens.replaceToken(userId, provider, token, successor);
            this.cache.alias(
              this.cacheKey(userId, credential, credential.token),
              this.cacheKey(userId, credential, successor),
            );
            token = successor;
          },
        },
      );
      for (const code of work.gaps) {
        this.logger.warn('git provider gave part of its data', { provider, code });
      }
      this.logger.debug('git provider read', { provider, ms: this.clock.now() - startedAt });
      return work;
    } catch (error) {
      throw this.reported(provider, error);
    }
  }

  private reported(provider: ProviderType, error: unknown): GitProviderError {
    const failure =
      error instanceof GitProviderError ? error : new GitProviderError('unavailable', { cause: error });
    this.logger.warn('git provider failed', {
      provider,
      code: failure.code,
      retry_after: failure.retryAfterSeconds,
      // A defect of ours rather than the provider's failure: worth its stack.
      ...(failure !== error && { stack: errorStack(error) }),
    });
    return failure;
  }

  /** Holds the moment of storing too: whoever stores a token anew, be it the same, wants it tried again. */
  private cacheKey(userId: string, { provider, host, updatedAt }: StoredCredential, token: string): string {
    const fingerprint = createHmac('sha256', this.fingerprintKey).update(token).digest('base64url');
    return [userId, provider, host ?? '', updatedAt.getTime(), fingerprint].join(' ');
  }
}
