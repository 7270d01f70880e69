import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, Repository } from 'typeorm';
import { lockUser } from '../../auth/user.repository.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import { PROVIDER_TYPES, type ProviderAuth, type ProviderType } from '../git-provider.js';
import { providerTokenBinding, ProviderToken } from './provider-token.entity.js';

/** A user's token, decrypted: for calls to its provider only, never for an answer or a log. */
export interface StoredCredential extends ProviderAuth {
  provider: ProviderType;
  /** False when the provider gave no verdict at the time of storing. */
  verified: boolean;
  /** When the user stored it; a rotation changes nothing about that. */
  updatedAt: Date;
}

interface TokenRow {
  provider: ProviderType;
  token: string;
  host: string | null;
  verified: boolean;
  updated_at: Date;
}

/** Each answer of suggested tasks begins with it, also the many that come out of the cache. */
const LIST_TOKENS = new NamedStatement<TokenRow>(
  'provider_tokens_list',
  'SELECT provider, token, host, verified, updated_at FROM provider_tokens WHERE user_id = $1',
);

/** Hands stored tokens to the code that calls providers. */
@Injectable()
export class ProviderTokenRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @InjectRepository(ProviderToken) private readonly tokens: Repository<ProviderToken>,
    private readonly cipher: SecretCipher,
  ) {}

  /**
   * All credentials of a user, in the order of `PROVIDER_TYPES`.
   *
   * @throws SecretDecryptionError when a stored token is not readable with the configured keys
   */
  async list(userId: string): Promise<StoredCredential[]> {
    const rows = await LIST_TOKENS.run(this.dataSource, [userId]);
    return rows
      .toSorted((a, b) => PROVIDER_TYPES.indexOf(a.provider) - PROVIDER_TYPES.indexOf(b.provider))
      .map(({ provider, token, host, verified, updated_at }) => ({
        provider,
        token: this.cipher.decrypt(token, providerTokenBinding(userId, provider)),
        host,
        verified,
        updatedAt: updated_at,
      }));
  }

  /** Providers that a user has a token for, with the canonical host of each (null: the default address). */
  async hosts(userId: string): Promise<Map<ProviderType, string | null>> {
    const rows = await this.tokens.find({ select: { provider: true, host: true }, where: { userId } });
    return new Map(
      PROVIDER_TYPES.flatMap((provider) =>
        rows.filter((row) => row.provider === provider).map(({ host }) => [provider, host] as const),
      ),
    );
  }

  /**
   * Puts the successor of a rotated token in its place, unless the user has stored another one meanwhile.
   *
   * @returns whether the successor was stored
   */
  async replaceToken(
    userId: string,
    provider: ProviderType,
    oldToken: string,
    newToken: string,
  ): Promise<boolean> {
    const binding = providerTokenBinding(userId, provider);
    return this.tokens.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const row = await manager.findOneBy(ProviderToken, { userId, provider });
      if (!row || this.cipher.decrypt(row.token, binding) !== oldToken) {
        return false;
      }
      const token = this.cipher.encrypt(newToken, binding);
      // A rotation is nothing the user did, so the time of storing stays.
      await manager.update(ProviderToken, { userId, provider }, { token, updatedAt: row.updatedAt });
      return true;
    });
  }
}
