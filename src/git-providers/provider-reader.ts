import { Injectable, Logger } from '@nestjs/common';
import { hash, randomBytes } from 'node:crypto';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import {
  boundedCall,
  type CallBounds,
  type ProviderCall,
  type ProviderType,
  GitProviderError,
} from '@slipway/git-providers/git-provider.js';
import { InstallationsReader } from './installations.reader.js';
import { InstallationTokens } from './tokens/installation-tokens.js';
import { ProviderTokenRepository, type StoredCredential } from './tokens/provider-token.repository.js';
import { AppConfig } from '../config/app-config.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import {
  type Answer,
  type Cached,
  type FreshFor,
  type GitReader,
  type ProviderCache,
  settled,
} from './provider-cache.js';

/** The bounds of calls with stored tokens, and with those that are not stored yet. */
@Injectable()
export class ProviderCalls {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly clock: Clock,
  ) {}

  /** Bounds, in milliseconds, for a token that is not stored yet. */
  within(milliseconds: number): CallBounds {
    return boundedCall(milliseconds, this.clock.now());
  }

  /** Bounds, in milliseconds, for a stored token. @throws GitProviderError `reauth_required` for one that has ended */
  withStored(milliseconds: number, userId: string, credential: StoredCredential): StoredTokenCall {
    if (credential.hasEnded) {
      throw new GitProviderError('reauth_required');
    }
    return new StoredTokenCall(this.tokens, userId, credential, this.within(milliseconds));
  }
}

/** Stores the successor of a token that rotates during the call. */
export class StoredTokenCall implements ProviderCall {
  readonly signal: AbortSignal;
  readonly deadlineAt: number;
  readonly host: string | null;
  readonly token: string;
  readonly provider: ProviderType;
  private current: string;

  constructor(
    private readonly tokens: ProviderTokenRepository,
    readonly userId: string,
    { provider, host, token }: StoredCredential,
    { signal, deadlineAt }: CallBounds,
  ) {
    this.provider = provider;
    this.host = host;
    this.token = token;
    this.current = token;
    this.signal = signal;
    this.deadlineAt = deadlineAt;
  }

  /** The token that is stored now, as far as this call knows. */
  get latestToken(): string {
    return this.current;
  }

  async claimToken(): Promise<string | null> {
    const claimed = await this.tokens.claimToken(this.userId, this.provider);
    this.current = claimed ?? this.current;
    return claimed;
  }

  async releaseToken(): Promise<void> {
    await this.tokens.releaseToken(this.userId, this.provider);
  }

  async replaceToken(successor: string): Promise<void> {
    await this.tokens.replaceToken(this.userId, this.provider, this.current, successor);
    this.current = successor;
  }
}

interface Question {
  userId: string;
  credential: StoredCredential;
  /** Distinguishes the question from others in the same cache. */
  subject: string;
}

/** Asks a user's git provider with the stored token, through a cache. Logs failures. */
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
    private readonly installations: InstallationTokens,
  ) {}

  /**
   * What the cache has, else the answer of the provider, for which it waits no longer than the endpoint. An answer is kept
   * before anything else is awaited. @throws GitProviderError for failures of the provider
   */
  async read<Value extends {}>(
    question: Question,
    cache: ProviderCache<Value>,
    ask: (adapter: GitReader, call: ProviderCall) => Promise<FreshFor<Value>>,
  ): Promise<Cached<Value>> {
    const { userId, credential } = question;
    const adapter = await this.readerFor(userId, credential);
    // What was read for who may be stood in for there is not for who may no more.
    const standIn = credential.installation ? await this.installations.standInOf(userId) : null;
    const keyOf = (token: string): string => this.keyOf(question, standIn ?? token);
    const key = keyOf(credential.token);
    const known = cache.find(key);
    let refresh = cache.running(key);
    const waitMs = this.config.git.tasksTimeoutMs;
    if (known.isDue && !refresh) {
      const call = this.calls.withStored(waitMs, userId, credential);
      refresh = cache.refresh(key, this.answerOf(call, ask(adapter, call), keyOf));
    }
    return await settled(known, refresh, waitMs);
  }

  /** @throws GitProviderError */
  async readerFor(
    userId: string,
    { provider, host, installation, login }: StoredCredential,
  ): Promise<GitReader> {
    try {
      const adapter = await this.registry.providerFor(provider, host);
      const known = installation ? ((await this.installations.loginOf(userId)) ?? login) : null;
      return installation ? new InstallationsReader(adapter, this.installations, userId, known) : adapter;
    } catch (error) {
      throw this.logged(provider, error);
    }
  }

  private async answerOf<Value extends {}>(
    call: StoredTokenCall,
    answer: Promise<FreshFor<Value>>,
    keyOf: (token: string) => string,
  ): Promise<Answer<Value>> {
    const { provider } = call;
    const startedAt = this.clock.now();
    try {
      const { value, freshMs } = await answer;
      this.logger.debug('git provider read', { provider, ms: this.clock.now() - startedAt });
      // The call may have replaced the token, and the next reader has its successor.
      return { value, freshMs, key: keyOf(call.latestToken) };
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

  /**
   * Contains the time of storing: a user who stores the same token again wants it tried again.
   * @param token or, of an installation, for what it stands in
   */
  private keyOf({ userId, credential, subject }: Question, token: string): string {
    const { provider, host, updatedAt } = credential;
    const fingerprint = hash('sha256', `${this.fingerprintSalt} ${token}`, 'base64url');
    return [userId, provider, host ?? '', updatedAt.getTime(), fingerprint, subject].join(' ');
  }
}
