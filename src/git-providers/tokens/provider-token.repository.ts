import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Column,
  CreateDateColumn,
  Entity,
  type EntityManager,
  PrimaryColumn,
  Repository,
  UpdateDateColumn,
} from 'typeorm';
import { AuditRepository, type NewAuditEntry } from '../../audit/audit.repository.js';
import { lockUser, UserKeyedRow } from '../../auth/user.repository.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import type { NewRenewal, NewToken } from './plan-token-changes.js';
import { PROVIDER_TYPES, type ProviderAuth, type ProviderType } from '@slipway/git-providers/git-provider.js';

/** Binds an encrypted token: a record copied to another user or provider does not decrypt. */
export function providerTokenBinding(userId: string, provider: string): string {
  return `provider_tokens.token:${userId}:${provider}`;
}

function tokenRenewalBinding(userId: string, provider: string): string {
  return `provider_tokens.renewal:${userId}:${provider}`;
}

export const PROVIDER_TOKEN_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'provider_tokens',
    column: 'token',
    keyColumns: ['user_id', 'provider'],
    binding: ({ user_id = '', provider = '' }) => providerTokenBinding(user_id, provider),
  },
  {
    table: 'provider_tokens',
    column: 'renewal',
    keyColumns: ['user_id', 'provider'],
    binding: ({ user_id = '', provider = '' }) => tokenRenewalBinding(user_id, provider),
  },
];

@Entity('provider_tokens')
export class ProviderToken extends UserKeyedRow {
  @PrimaryColumn('text') provider: ProviderType;
  @Column('text') token: string;

  /** Canonical, see `parseGitHost`; null for the provider's default address. */
  @Column('text', { nullable: true }) host: string | null;

  /** The id that the client gave with the token. */
  @Column('text', { nullable: true }) accountId: string | null;

  /** False when the provider gave no verdict at the time of storing. */
  @Column('boolean', { default: true }) verified: boolean;

  /** Encrypted {@link StoredRenewal}. */
  @Column('text', { nullable: true }) renewal: string | null;
  @Column('timestamptz', { nullable: true }) expiresAt: Date | null;

  /** The operator's GitHub App stands in: the token is empty. */
  @Column('boolean', { default: false }) installation: boolean;

  /** Of the user, where an installation stands in. */
  @Column('text', { nullable: true }) login: string | null;

  /** Until then, one call alone uses a token that its use may replace. */
  @Column('timestamptz', { nullable: true }) claimedUntil: Date | null;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @UpdateDateColumn({ type: 'timestamptz' }) updatedAt: Date;
}

/** Decrypted: for calls to its provider only, never for a response or a log. */
export interface StoredCredential extends ProviderAuth {
  provider: ProviderType;
  /** False when the provider gave no verdict at the time of storing. */
  verified: boolean;
  /** When the user stored it; a rotation does not change this. */
  updatedAt: Date;
  /** Null where that is not known, or the token cannot be renewed. */
  expiresAt: Date | null;
  /** The token is empty, and those of the operator's GitHub App take its place: see `InstallationTokens`. */
  installation: boolean;
  /** What the user says it is at the host. */
  login: string | null;
  /** Its host has refused to renew it for good, so only another sign-in of the user brings a token. */
  hasEnded: boolean;
}

/** A release that knows nothing of renewals may have stored another token since: the digest tells. */
interface StoredRenewal {
  refresh_token: string;
  token_sha256: string;
}

export interface ClaimedRenewal {
  token: string;
  refreshToken: string;
}

export interface TokenToStore extends Omit<NewToken, 'kind'> {
  verified: boolean;
}

/** Every request for suggested tasks reads it, even if the cache serves the rest, so no entities are built. */
const LIST_TOKENS = `
  SELECT provider, token, host, verified, updated_at AS "updatedAt", expires_at AS "expiresAt", installation, login,
    renewal IS NULL AND expires_at IS NOT NULL AS "hasEnded"
  FROM provider_tokens WHERE user_id = $1`;

/** Longer than an exchange takes: a replica that has not finished by then is dead. */
const CLAIM = `
  UPDATE provider_tokens SET claimed_until = now() + interval '20 seconds'
  WHERE user_id = $1 AND provider = $2 AND (claimed_until IS NULL OR claimed_until < now())
  RETURNING token`;

/** The claim ends by itself: a token that could not be renewed is not tried again before. */
const CLAIM_RENEWAL = `
  UPDATE provider_tokens SET claimed_until = now() + interval '20 seconds'
  WHERE user_id = $1 AND provider = $2 AND renewal IS NOT NULL AND expires_at <= $3 AND (claimed_until IS NULL OR claimed_until < now())
  RETURNING token, renewal`;

/** Times of JavaScript have no microseconds. */
const MARK_VERIFIED = `
  UPDATE provider_tokens SET verified = true
  WHERE user_id = $1 AND provider = $2 AND date_trunc('milliseconds', updated_at) = $3`;

const RELEASE = 'UPDATE provider_tokens SET claimed_until = NULL WHERE user_id = $1 AND provider = $2';

/** Tokens are encrypted at rest and leave this class in clear. */
@Injectable()
export class ProviderTokenRepository {
  constructor(
    @InjectRepository(ProviderToken) private readonly tokens: Repository<ProviderToken>,
    private readonly cipher: SecretCipher,
    private readonly audit: AuditRepository,
  ) {}

  /** All credentials, in the order of `PROVIDER_TYPES`. @throws SecretDecryptionError for unfitting keys */
  async list(userId: string): Promise<StoredCredential[]> {
    const rows = await this.tokens.query<StoredCredential[]>(LIST_TOKENS, [userId]);
    return rows.toSorted(byProvider).map((row) => {
      const token = this.cipher.decrypt(row.token, providerTokenBinding(userId, row.provider));
      // A release that knows nothing of installations may have stored a token in its place.
      return { ...row, token, installation: row.installation && token === '' };
    });
  }

  /** Canonical hosts of the stored tokens (null: default address), in the order of `PROVIDER_TYPES`. */
  async hosts(userId: string): Promise<Map<ProviderType, string | null>> {
    const rows = await this.tokens.find({ select: { provider: true, host: true }, where: { userId } });
    return new Map(rows.toSorted(byProvider).map(({ provider, host }) => [provider, host]));
  }

  /** Does nothing where another token was stored since. */
  async markVerified(userId: string, provider: ProviderType, updatedAt: Date): Promise<void> {
    await this.tokens.query(MARK_VERIFIED, [userId, provider, updatedAt]);
  }

  /** Stores a token in place of the one that the user may have for the provider. */
  async store(manager: EntityManager, userId: string, newToken: TokenToStore): Promise<void> {
    const { provider, token, host, accountId, verified, renewal, installation = null } = newToken;
    const encrypted = this.cipher.encrypt(token, providerTokenBinding(userId, provider));
    await manager.upsert(
      ProviderToken,
      {
        userId,
        provider,
        token: encrypted,
        host,
        accountId,
        verified,
        ...this.renewalColumns(userId, provider, token, renewal),
        installation: installation !== null,
        login: installation?.login ?? null,
        claimedUntil: null,
        updatedAt: () => 'now()',
      },
      { conflictPaths: ['userId', 'provider'] },
    );
    await this.audit.append(manager, {
      ...tokenEntry('git_token.store', userId, provider),
      ...(host !== null && { details: { host } }),
    });
  }

  /** Stores the account id for a stored token; does nothing without one. */
  async setAccountId(
    manager: EntityManager,
    userId: string,
    provider: ProviderType,
    accountId: string,
  ): Promise<void> {
    const { affected } = await manager.update(ProviderToken, { userId, provider }, { accountId });
    if (affected === 1) {
      await this.audit.append(manager, {
        ...tokenEntry('git_token.update', userId, provider),
        details: { members: ['account_id'] },
      });
    }
  }

  async remove(manager: EntityManager, userId: string, provider: ProviderType): Promise<void> {
    const { affected } = await manager.delete(ProviderToken, { userId, provider });
    if (affected === 1) {
      await this.audit.append(manager, tokenEntry('git_token.delete', userId, provider));
    }
  }

  async removeAll(userId: string): Promise<void> {
    await this.tokens.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const stored = await manager.find(ProviderToken, { select: { provider: true }, where: { userId } });
      await manager.delete(ProviderToken, { userId });
      await this.audit.append(
        manager,
        ...stored.map(({ provider }) => tokenEntry('git_token.delete', userId, provider)),
      );
    });
  }

  /** The token, for one call at a time of all replicas; null while another one has it. */
  async claimToken(userId: string, provider: ProviderType): Promise<string | null> {
    const [[row]] = await this.tokens.query<[{ token: string }[], number]>(CLAIM, [userId, provider]);
    return row ? this.cipher.decrypt(row.token, providerTokenBinding(userId, provider)) : null;
  }

  async releaseToken(userId: string, provider: ProviderType): Promise<void> {
    await this.tokens.query(RELEASE, [userId, provider]);
  }

  /**
   * The refresh token of a token that ends before a time, for one call at a time of all replicas; null where another has
   * it, or there is none to be renewed any more.
   */
  async claimRenewal(userId: string, provider: ProviderType, before: Date): Promise<ClaimedRenewal | null> {
    type Claimed = [{ token: string; renewal: string | null }[], number];
    const [[row]] = await this.tokens.query<Claimed>(CLAIM_RENEWAL, [userId, provider, before]);
    if (row === undefined) {
      return null;
    }
    const token = this.cipher.decrypt(row.token, providerTokenBinding(userId, provider));
    const clear = row.renewal && this.cipher.decrypt(row.renewal, tokenRenewalBinding(userId, provider));
    const renewal = clear ? (JSON.parse(clear) as StoredRenewal) : null;
    if (renewal?.token_sha256 !== hash('sha256', token)) {
      await this.dropRenewal(userId, provider, token);
      return null;
    }
    return { token, refreshToken: renewal.refresh_token };
  }

  /** Stores what a renewal brought, unless the user has stored another token. */
  async storeRenewed(
    userId: string,
    provider: ProviderType,
    oldToken: string,
    { token, renewal }: { token: string; renewal: NewRenewal },
  ): Promise<void> {
    await this.changeToken(userId, provider, oldToken, {
      token: this.cipher.encrypt(token, providerTokenBinding(userId, provider)),
      ...this.renewalColumns(userId, provider, token, renewal),
      claimedUntil: null,
    });
  }

  /** The token is of no use any more: only its time is left in the row, which says so. */
  async end(userId: string, provider: ProviderType, token: string, at: Date): Promise<void> {
    await this.changeToken(userId, provider, token, { renewal: null, expiresAt: at, claimedUntil: null });
  }

  /** The token stays as it is, for as long as it lasts. */
  private async dropRenewal(userId: string, provider: ProviderType, token: string): Promise<void> {
    await this.changeToken(userId, provider, token, { renewal: null, expiresAt: null, claimedUntil: null });
  }

  private renewalColumns(
    userId: string,
    provider: ProviderType,
    token: string,
    renewal: NewRenewal | null,
  ): Pick<ProviderToken, 'renewal' | 'expiresAt'> {
    if (renewal === null) {
      return { renewal: null, expiresAt: null };
    }
    const stored: StoredRenewal = {
      refresh_token: renewal.refreshToken,
      token_sha256: hash('sha256', token),
    };
    return {
      renewal: this.cipher.encrypt(JSON.stringify(stored), tokenRenewalBinding(userId, provider)),
      expiresAt: renewal.expiresAt,
    };
  }

  /** Stores a rotated token unless the user has stored another one; returns whether it did. */
  async replaceToken(
    userId: string,
    provider: ProviderType,
    oldToken: string,
    newToken: string,
  ): Promise<boolean> {
    return await this.changeToken(userId, provider, oldToken, {
      token: this.cipher.encrypt(newToken, providerTokenBinding(userId, provider)),
    });
  }

  /** Returns whether it did: the user may have stored another one. */
  private async changeToken(
    userId: string,
    provider: ProviderType,
    oldToken: string,
    changes: Partial<Pick<ProviderToken, 'token' | 'renewal' | 'expiresAt' | 'claimedUntil'>>,
  ): Promise<boolean> {
    const binding = providerTokenBinding(userId, provider);
    return this.tokens.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const row = await manager.findOneBy(ProviderToken, { userId, provider });
      if (!row || this.cipher.decrypt(row.token, binding) !== oldToken) {
        return false;
      }
      // The user did not cause the change, so the time of storing stays.
      await manager.update(ProviderToken, { userId, provider }, { ...changes, updatedAt: row.updatedAt });
      if (changes.token !== undefined) {
        await this.audit.append(manager, {
          ...tokenEntry('git_token.rotate', userId, provider),
          by: 'service',
        });
      }
      return true;
    });
  }
}

function tokenEntry(
  action: NewAuditEntry['action'] & `git_token.${string}`,
  ownerId: string,
  provider: ProviderType,
): NewAuditEntry {
  return { action, resourceId: provider, ownerId };
}

function byProvider(a: { provider: ProviderType }, b: { provider: ProviderType }): number {
  return PROVIDER_TYPES.indexOf(a.provider) - PROVIDER_TYPES.indexOf(b.provider);
}
