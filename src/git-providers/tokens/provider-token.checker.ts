import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { GitProviderRegistry } from '../git-provider.registry.js';
import type { ProviderCall, TokenCheck } from '../git-provider.types.js';
import type { NewToken } from './plan-token-changes.js';

/** A new token after its provider was asked. */
export interface CheckedToken {
  /** Holds the successor when the check itself made the provider rotate the token. */
  token: NewToken;
  verdict: TokenCheck;
}

/** For all checks together; a single request to a provider has the HTTP client's own, shorter deadline. */
const DEADLINE_MS = 12_000;

/** Asks providers about new tokens: each its own and only at the host that came with the token. */
@Injectable()
export class ProviderTokenChecker {
  constructor(
    private readonly registry: GitProviderRegistry,
    private readonly clock: Clock,
  ) {}

  /** Side by side; the answers come in the order of the tokens. */
  async checkAll(tokens: readonly NewToken[]): Promise<CheckedToken[]> {
    const call: ProviderCall = {
      signal: AbortSignal.timeout(DEADLINE_MS),
      deadlineAt: this.clock.now() + DEADLINE_MS,
    };
    return Promise.all(tokens.map((token) => this.check(token, call)));
  }

  private async check(token: NewToken, call: ProviderCall): Promise<CheckedToken> {
    let current = token.token;
    const verdict = await this.registry.providerFor(token.provider, token.host).checkToken(
      { token: token.token, host: token.host },
      {
        ...call,
        replaceToken: (successor) => {
          current = successor;
          return Promise.resolve();
        },
      },
    );
    return { token: { ...token, token: current }, verdict };
  }
}
