import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { ProviderCall } from './git-provider.types.js';
import { ProviderTokensReader, type StoredCredential } from './tokens/provider-tokens.reader.js';

/** Bounds calls that are made for a user, and keeps a token whose successor comes to light in one of them. */
@Injectable()
export class ProviderCalls {
  constructor(
    private readonly reader: ProviderTokensReader,
    private readonly clock: Clock,
  ) {}

  /** @param milliseconds from now on */
  within(milliseconds: number, userId: string, { provider, token }: StoredCredential): ProviderCall {
    let current = token;
    return {
      signal: AbortSignal.timeout(milliseconds),
      deadlineAt: this.clock.now() + milliseconds,
      replaceToken: async (successor) => {
        await this.reader.replaceToken(userId, provider, current, successor);
        current = successor;
      },
    };
  }
}
