import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { boundedCall, type ProviderCall } from './git-provider.js';
import { ProviderTokenRepository, type StoredCredential } from './tokens/provider-token.repository.js';

/** Makes the bounds of calls, and stores the successor of a token that rotates in one of them. */
@Injectable()
export class ProviderCalls {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly clock: Clock,
  ) {}

  /** Bounds, in milliseconds, for a token that is not stored yet. */
  within(milliseconds: number): ProviderCall {
    return boundedCall(milliseconds, this.clock.now());
  }

  /** Bounds, in milliseconds, for a stored token. `onReplaced` gets each successor that has been stored. */
  withStored(
    milliseconds: number,
    userId: string,
    { provider, token }: StoredCredential,
    onReplaced?: (successor: string) => void,
  ): ProviderCall {
    let current = token;
    return {
      ...this.within(milliseconds),
      userId,
      storedToken: async () => {
        const stored = await this.tokens.list(userId);
        const found = stored.find((credential) => credential.provider === provider)?.token ?? null;
        current = found ?? current;
        return found;
      },
      replaceToken: async (successor) => {
        await this.tokens.replaceToken(userId, provider, current, successor);
        onReplaced?.(successor);
        current = successor;
      },
    };
  }
}
