import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { Clock } from '../../common/clock.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';
import { HostAllowlist } from '../../common/http/host-allowlist.js';
import { invalidGitToken } from '../git-provider-problem.js';
import type { ProviderCall, ProviderErrorCode, ProviderType, TokenCheck } from '../git-provider.js';
import { GitProviderRegistry } from '../git-provider.registry.js';
import {
  type NewToken,
  planTokenChanges,
  type ProviderTokenInputs,
  type ProviderTokenWarning,
  type TokenChange,
} from './plan-token-changes.js';
import { ProviderToken, providerTokenBinding } from './provider-token.entity.js';

/** A new token after its provider was asked. */
interface CheckedToken {
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

/** Changes that have passed every check and can be stored; made by `prepare` only. */
interface PreparedTokens {
  readonly changes: readonly PreparedChange[];
  /** Tokens that will be stored without a verdict of their provider. */
  readonly warnings: ProviderTokenWarning[];
}

type PreparedChange = Exclude<TokenChange, NewToken> | (NewToken & { verified: boolean });

const UPSERT = `
  INSERT INTO provider_tokens (user_id, provider, token, host, account_id, verified)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (user_id, provider) DO UPDATE
  SET token = excluded.token, host = excluded.host, account_id = excluded.account_id,
      verified = excluded.verified, updated_at = now()`;

/**
 * Stores users' provider tokens, in two steps: `prepare` makes every check (providers are asked, so outside of any
 * transaction), `store` writes. What is kept is not written, so it cannot undo what another request does in between.
 */
@Injectable()
export class ProviderTokensService {
  private readonly logger = new Logger(ProviderTokensService.name);

  constructor(
    @InjectRepository(ProviderToken) private readonly tokens: Repository<ProviderToken>,
    private readonly registry: GitProviderRegistry,
    private readonly allowlist: HostAllowlist,
    private readonly checker: ProviderTokenChecker,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * Makes every check of a `provider_tokens` map. Takes up to 12 seconds: new tokens are shown to their providers.
   *
   * @param loc location of the map in the request, such as `['body', 'provider_tokens']`
   * @throws InvalidInputError every broken rule of hosts and tokens
   * @throws DomainError invalid_git_token when a provider rejects its token
   */
  async prepare(
    userId: string,
    inputs: ProviderTokenInputs,
    loc: readonly string[],
  ): Promise<PreparedTokens> {
    const stored = await this.tokens.find({ select: { provider: true, host: true }, where: { userId } });
    const plan = planTokenChanges(inputs, {
      allowlist: this.allowlist,
      storedHosts: new Map(stored.map(({ provider, host }) => [provider, host])),
      ssoConfigured: this.registry.enterpriseSsoConfigured,
      loc,
    });
    if (plan.problems.length > 0) {
      throw new InvalidInputError(plan.problems);
    }
    const checked = await this.checker.checkAll(plan.changes.filter((change) => change.kind === 'set'));
    const rejected = checked.find(({ verdict }) => verdict.status === 'invalid');
    if (rejected) {
      throw invalidGitToken(rejected.token.provider);
    }
    return {
      changes: [
        ...plan.changes.filter((change) => change.kind !== 'set'),
        ...checked.map(({ token, verdict }) => ({ ...token, verified: verdict.status === 'valid' })),
      ],
      warnings: this.warningsOf(checked),
    };
  }

  /**
   * Writes prepared changes within the caller's transaction.
   *
   * @throws DomainError unauthorized when the user is gone by now
   */
  async store(manager: EntityManager, userId: string, prepared: PreparedTokens): Promise<void> {
    if (prepared.changes.length === 0) {
      return;
    }
    await lockUser(manager, userId);
    for (const change of prepared.changes) {
      await this.apply(manager, userId, change);
    }
  }

  /** Removes all tokens of a user. */
  async removeAll(userId: string): Promise<void> {
    await this.tokens.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      await manager.delete(ProviderToken, { userId });
    });
  }

  private async apply(manager: EntityManager, userId: string, change: PreparedChange): Promise<void> {
    const { provider } = change;
    switch (change.kind) {
      case 'remove':
        await manager.delete(ProviderToken, { userId, provider });
        return;
      case 'account':
        await manager.update(ProviderToken, { userId, provider }, { accountId: change.accountId });
        return;
      case 'set':
        await manager.query(UPSERT, [
          userId,
          provider,
          this.cipher.encrypt(change.token, providerTokenBinding(userId, provider)),
          change.host,
          change.accountId,
          change.verified,
        ]);
    }
  }

  private warningsOf(checked: readonly CheckedToken[]): ProviderTokenWarning[] {
    return checked.flatMap(({ token: { provider }, verdict }) => {
      if (verdict.status !== 'unverified') {
        return [];
      }
      this.logger.warn('token stored without a verdict', { provider, code: verdict.code });
      return [unverifiedTokenWarning(provider, verdict.code)];
    });
  }
}

const REASONS: Record<ProviderErrorCode, string> = {
  unauthorized: 'the provider did not accept the credentials behind it',
  rate_limited: 'the provider limits requests at the moment',
  insufficient_scope: 'it may not read the account',
  sso_required: 'an organisation wants it authorised for single sign-on',
  unsupported: 'the provider cannot check it',
  unavailable: 'the provider could not be reached',
  timeout: 'the provider did not answer in time',
  not_linked: 'the account is not linked to the git host',
  reauth_required: 'the git host wants a new sign-in',
};

/** Tells the client that a token was stored without a verdict of its provider. */
function unverifiedTokenWarning(provider: ProviderType, code: ProviderErrorCode): ProviderTokenWarning {
  return { provider, code, detail: `The ${provider} token was stored but not verified: ${REASONS[code]}.` };
}
