import { hash, randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { Clock } from '../common/clock.js';
import { AppConfig } from '../config/app-config.js';
import { GitProviderError, type GitProvider, type ProviderCall, type ProviderType } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { Cached, ProviderCache } from './provider-cache.js';
import { ProviderCalls } from './provider-calls.js';
import type { StoredCredential } from './tokens/provider-token.repository.js';

export interface ProviderQuestion<Value extends {}> {
  cache: ProviderCache<Value>;
  /** Distinguishes the question from others in the same cache. */
  subject: string;
  ask: (adapter: GitProvider, call: ProviderCall) => Promise<Value>;
  /** Milliseconds for which the answer is served without asking again. */
  freshFor: (adapter: GitProvider, value: Value) => number;
}

export interface ProviderRead<Value> {
  adapter: GitProvider;
  read: Cached<Value>;
}

/** Asks a user's git provider with the stored token, through a cache, and logs failures. */
@Injectable()
export class ProviderReader {
  private readonly logger = new Logger(ProviderReader.name);
  /** Salt of the token hashes in cache keys, never stored: a cache reveals nothing about a token. */
  private readonly fingerprintSalt = randomBytes(32).toString('base64url');

  constructor(
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {}

  /** Answers a question, from the cache if possible. @throws GitProviderError only, for failures of the provider */
  async read<Value extends {}>(
    userId: string,
    credential: StoredCredential,
    question: ProviderQuestion<Value>,
  ): Promise<ProviderRead<Value>> {
    const adapter = await this.adapterFor(credential);
    const read = await question.cache.read(
      this.cacheKey(userId, credential, question.subject),
      (value) => question.freshFor(adapter, value),
      () => this.ask(userId, credential, adapter, question),
      this.config.git.tasksTimeoutMs,
    );
    return { adapter, read };
  }

  private async adapterFor({ provider, host }: StoredCredential): Promise<GitProvider> {
    try {
      return await this.registry.providerFor(provider, host);
    } catch (error) {
      throw this.logged(provider, error);
    }
  }

  private async ask<Value extends {}>(
    userId: string,
    credential: StoredCredential,
    adapter: GitProvider,
    { cache, subject, ask }: ProviderQuestion<Value>,
  ): Promise<Value> {
    const { provider } = credential;
    const startedAt = this.clock.now();
    const call = this.calls.withStored(this.config.git.tasksTimeoutMs, userId, credential, (successor) => {
      cache.alias(
        this.cacheKey(userId, credential, subject),
        this.cacheKey(userId, { ...credential, token: successor }, subject),
      );
    });
    try {
      const value = await ask(adapter, call);
      this.logger.debug('git provider read', { provider, ms: this.clock.now() - startedAt });
      return value;
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
      // A defect of ours, not a failure of the provider: worth its stack.
      ...(failure !== error && { stack: errorStack(error) }),
    });
    return failure;
  }

  /** Contains the time of storing: a user who stores the same token again wants it tried again. */
  private cacheKey(
    userId: string,
    { provider, host, updatedAt, token }: StoredCredential,
    subject: string,
  ): string {
    const fingerprint = hash('sha256', `${this.fingerprintSalt} ${token}`, 'base64url');
    return [userId, provider, host ?? '', updatedAt.getTime(), fingerprint, subject].join(' ');
  }
}
