import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { boundedCall, type CallBounds, type ProviderCall, type ProviderType } from './git-provider.js';
import { ProviderTokenRepository, type StoredCredential } from './tokens/provider-token.repository.js';

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

  /** Bounds, in milliseconds, for a stored token. */
  withStored(milliseconds: number, userId: string, credential: StoredCredential): StoredTokenCall {
    return new StoredTokenCall(this.tokens, userId, credential, this.within(milliseconds));
  }
}

/** Stores the successor of a token that rotates during the call. */
export class StoredTokenCall implements ProviderCall {
  readonly signal: AbortSignal;
  readonly deadlineAt: number;
  readonly host: string | null;
  readonly token: string;
  private readonly provider: ProviderType;
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
