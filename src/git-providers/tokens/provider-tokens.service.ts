import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { lockUser } from '../../auth/lock-user.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { InvalidInputError } from '../../common/errors/invalid-input.error.js';
import { HostAllowlist } from '../../common/http/host-allowlist.js';
import { GitProviderRegistry } from '../git-provider.registry.js';
import { invalidGitToken } from './invalid-git-token.js';

import { planTokenChanges, type NewToken, type TokenChange } from './plan-token-changes.js';
import { providerTokenBinding } from './provider-token-binding.js';
import { ProviderTokenChecker, type CheckedToken } from './provider-token.checker.js';
import { ProviderToken } from './provider-token.entity.js';
import type { ProviderTokenInputs, ProviderTokenWarning } from './provider-token-input.js';
import { unverifiedTokenWarning } from './unverified-token-warning.js';

/** Changes that have passed every check and can be stored; made by `prepare` only. */
export interface PreparedTokens {
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
