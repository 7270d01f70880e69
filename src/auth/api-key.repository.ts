import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  In,
  Index,
  IsNull,
  Not,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { AppConfig } from '../config/app-config.js';
import { lockFree } from '@slipway/database/leased-rows.js';
import { publishAccessChange } from './access-changes.js';
import type { Scope } from '../common/scopes.js';
import type { ParsedApiKey } from './api-key-format.js';
import type { StoredCaller } from './auth.decorators.js';
import { endMadeWith, giveMadeWith, holdMade } from './made-with-key.js';
import { makerOf } from './owned.repository.js';
import { lockUser, OwnedRow } from './user.repository.js';

/** Reserved for the key from `BOOTSTRAP_API_KEY`. */
export const BOOTSTRAP_KEY_NAME = 'bootstrap';

/** Only the SHA-256 of the secret is stored, never the key. */
@Entity('api_keys')
@Index('api_keys_user_id_idx', ['userId'])
@Index('api_keys_made_by_key_idx', ['madeByKey'])
@Index('api_keys_identity_id_idx', ['identityId'], { where: 'identity_id IS NOT NULL' })
export class ApiKey extends OwnedRow {
  /** Eight base62 characters; part of the key itself (`slw_<id>_<secret>`). */
  @PrimaryColumn('text') id: string;
  @Column('text') name: string;
  @Column('bytea') secretHash: Buffer;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @Column('timestamptz', { nullable: true }) expiresAt: Date | null;

  @Column('timestamptz', { nullable: true }) notBefore: Date | null;

  /** Null: all that its user may do. */
  @Column('text', { array: true, nullable: true }) scopes: Scope[] | null;

  /** Null: all that its user has. */
  @Column('text', { array: true, nullable: true }) repositories: string[] | null;

  /** Made for a device that a person let in. */
  @Column('boolean', { default: false }) ofDevice: boolean;

  /** Written at most once a minute. */
  @Column('timestamptz', { nullable: true }) lastUsedAt: Date | null;
  @Column('timestamptz', { nullable: true }) revokedAt: Date | null;

  /** Id of the key that it was made with. */
  @Column('text', { nullable: true }) madeByKey: string | null;

  /** The sign-in and session that made this key; the session may end long before the issuer ends the sign-in. */
  @Column('uuid', { nullable: true }) identityId: string | null;
  @Column('text', { nullable: true }) sid: string | null;
}

export type NewApiKey = Pick<ApiKey, 'userId' | 'name' | 'expiresAt'> &
  Partial<Pick<ApiKey, 'notBefore' | 'scopes' | 'repositories' | 'ofDevice'>>;

/** What the verifier needs: hash, state and user. */
export interface ApiKeyWithOwner extends StoredCaller {
  secret_hash: Buffer;
  expires_at: Date | null;
  revoked_at: Date | null;
  not_before: Date | null;
  last_used_at: Date | null;
}

/** What a change of a key does besides, in its transaction; where one throws, nothing is changed. */
export interface Besides {
  before?: (manager: EntityManager) => Promise<void>;
  after?: ((manager: EntityManager, keyId: string) => Promise<void>) | undefined;
}

/** When the keys of a person of the issuer stop, until the person is seen there again; null for others. */
const personEnd = (userId: string, days: string): string => `
  (SELECT max(last_seen_at) + make_interval(days => ${days}::integer) FROM user_identities WHERE user_id = ${userId})`;

/** When a key ends by itself; null: never. */
export const keyEnd = (key: string, days: string): string =>
  `least(${key}.expires_at, ${personEnd(`${key}.user_id`, days)})`;

const FIND_PERSON_END = `SELECT ${personEnd('$1', '$2')} AS ends_at`;

const FIND_WITH_OWNER = `
  SELECT k.secret_hash, ${keyEnd('k', '$2')} AS expires_at, k.revoked_at, k.not_before,
    k.scopes, k.repositories, k.last_used_at, u.id AS user_id, u.email, u.is_admin, u.reads_only
  FROM api_keys k JOIN users u ON u.id = k.user_id
  WHERE k.id = $1 AND u.disabled_at IS NULL`;

const FIND_VALID = `
  SELECT k.id FROM api_keys k JOIN users u ON u.id = k.user_id
  WHERE k.id = ANY ($1::text[]) AND k.revoked_at IS NULL AND u.disabled_at IS NULL
    AND coalesce(${keyEnd('k', '$3')}, 'infinity') > $2
    AND coalesce(k.not_before, '-infinity') <= $2`;

const FIND_END = `
  SELECT expires_at FROM api_keys WHERE id = $1 OR id = (SELECT api_key_id FROM sessions WHERE id = $1)`;

const TOUCH = `
  UPDATE api_keys SET last_used_at = $2
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)`;

/** Active keys of one user. */
export const MAX_KEYS = 50;
/** Revoked and expired keys of a user that are kept for the record. */
const MAX_ENDED = 100;

const LOCK_OWNER = 'SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE';

const COUNT_VALID = `
  SELECT count(*)::integer AS count FROM api_keys
  WHERE user_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`;

/** Skips keys that are being ended: they are forgotten with the next new one. */
const FIND_SURPLUS = `
  SELECT id FROM api_keys WHERE id IN (
    SELECT id FROM api_keys WHERE user_id = $1 AND (revoked_at IS NOT NULL OR expires_at <= $2)
    ORDER BY created_at DESC OFFSET $3)
  ${lockFree()}`;

const REVOKE = 'UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING user_id';

/** The key or session itself, keys that were made with it or by the sign-ins of `$2`, those that were made with these, and so on. */
const WITH_MADE_KEYS = `
  WITH RECURSIVE made AS (
    (SELECT $1::text AS id UNION SELECT id FROM api_keys WHERE identity_id = ANY ($2::uuid[]))
    UNION SELECT k.id FROM api_keys k JOIN made ON k.made_by_key = made.id)
  SELECT id FROM made`;

/** A device gets a secret that was never shown before. */
const REPLACE_SECRET = `
  UPDATE api_keys SET secret_hash = $2
  WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) RETURNING expires_at`;

/** What the key of the operator has. */
const UNLIMITED = { expiresAt: null, revokedAt: null, notBefore: null, scopes: null, repositories: null };

/** An arbitrary constant for the lock that replicas take when they start together. */
const BOOTSTRAP_LOCK = 7_240_815_554;

@Injectable()
export class ApiKeyRepository extends Repository<ApiKey> {
  constructor(
    dataSource: DataSource,
    private readonly audit: AuditRepository,
    private readonly config: AppConfig,
  ) {
    super(ApiKey, dataSource.manager);
  }

  /** Null: without an issuer, keys do not depend on one. */
  get personKeyDays(): number | null {
    return this.config.oidc?.keyMaxDays ?? null;
  }

  async findWithOwner(id: string): Promise<ApiKeyWithOwner | null> {
    const [row] = await this.query<ApiKeyWithOwner[]>(FIND_WITH_OWNER, [id, this.personKeyDays]);
    return row ?? null;
  }

  /** Filters the ids to those whose keys are valid, and whose users exist and are enabled. */
  async findValid(ids: readonly string[], now: Date): Promise<string[]> {
    const rows = await this.query<{ id: string }[]>(FIND_VALID, [ids, now, this.personKeyDays]);
    return rows.map(({ id }) => id);
  }

  /** When a key ends by itself, or that of a session. */
  async endOf(keyOrSessionId: string): Promise<Date | null> {
    const [row] = await this.query<{ expires_at: Date | null }[]>(FIND_END, [keyOrSessionId]);
    return row?.expires_at ?? null;
  }

  /** Newest first; with the end that a person's keys have in any case. */
  async listOf(userId: string): Promise<ApiKey[]> {
    const [person] = await this.query<{ ends_at: Date | null }[]>(FIND_PERSON_END, [
      userId,
      this.personKeyDays,
    ]);
    const keys = await this.find({ where: { userId }, order: { createdAt: 'DESC', id: 'ASC' } });
    const end = person?.ends_at ?? null;
    return end === null
      ? keys
      : keys.map((key) => Object.assign(key, { expiresAt: earlier(key.expiresAt, end) }));
  }

  /** The keys of one user, or with null of all users; by user, newest first. */
  async listWithOwners(userId: string | null): Promise<ApiKey[]> {
    return this.find({
      where: userId === null ? {} : { userId },
      relations: { user: true },
      order: { user: { email: 'ASC' }, createdAt: 'DESC', id: 'ASC' },
    });
  }

  /**
   * Stores a key and removes the oldest ended keys. Returns null when the user has {@link MAX_KEYS} keys. Throws as `besides`.
   */
  async add(
    { id, secretHash }: ParsedApiKey,
    key: NewApiKey,
    now: Date,
    { before, after }: Besides = {},
  ): Promise<ApiKey | null> {
    return this.manager.transaction(async (manager) => {
      await before?.(manager);
      await (key.ofDevice ? lockUser(manager, key.userId) : manager.query(LOCK_OWNER, [key.userId]));
      const [found] = await manager.query<{ count: number }[]>(COUNT_VALID, [key.userId, now]);
      if ((found?.count ?? 0) >= MAX_KEYS) {
        return null;
      }
      const { userId: ownerId, name, scopes, repositories } = key;
      await manager.insert(ApiKey, { id, secretHash, ...key, ...(await makerOf(manager)) });
      await this.forgetEnded(manager, ownerId, now);
      await this.audit.append(manager, {
        action: 'api_key.create',
        resourceId: id,
        ownerId,
        details: { name, ...(scopes && { scopes }), ...(repositories && { repositories }) },
      });
      await after?.(manager, id);
      return manager.findOneByOrFail(ApiKey, { id });
    });
  }

  /** Removes the oldest ended keys; what they made counts as made by what made them. */
  private async forgetEnded(manager: EntityManager, userId: string, now: Date): Promise<void> {
    const surplus = await manager.query<Pick<ApiKey, 'id'>[]>(FIND_SURPLUS, [userId, now, MAX_ENDED]);
    if (surplus.length === 0 || !(await holdMade(manager))) {
      return;
    }
    for (const { id } of surplus) {
      const key = await manager.findOneByOrFail(ApiKey, { id });
      const { madeByKey, identityId, sid } = key;
      await manager.update(ApiKey, { madeByKey: id }, { madeByKey, ...(identityId && { identityId, sid }) });
      await giveMadeWith(manager, key);
      await manager.delete(ApiKey, { id });
      const entry = { action: 'api_key.forget', resourceId: id, ownerId: userId, by: 'service' } as const;
      await this.audit.append(manager, entry);
    }
  }

  /** Gives a valid key another secret, and tells when it ends; undefined where it has ended. */
  async replaceSecret(
    manager: EntityManager,
    { id, secretHash }: ParsedApiKey,
    now: Date,
  ): Promise<{ expires_at: Date | null } | undefined> {
    const parameters = [id, secretHash, now];
    const [[row]] = await manager.query<[{ expires_at: Date | null }[], number]>(REPLACE_SECRET, parameters);
    return row;
  }

  /**
   * Revokes a key; has no effect on a revoked one. With what it made: pauses or removes that, and revokes keys among it.
   * Throws as `besides`.
   */
  async revoke(id: string, now: Date, withWhatItMade = false, { before }: Besides = {}): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await before?.(manager);
      if (withWhatItMade) {
        await endMadeWith(manager, this.audit, (links) => this.revokeWithin(manager, id, now, links));
      } else {
        await this.revokeEach(manager, [{ id }], now);
      }
    });
  }

  /**
   * Ends a key, and those that were made with it or by a session.
   * @param links sign-ins whose keys end too
   * @returns their ids, and that of the session
   */
  async revokeWithin(
    manager: EntityManager,
    madeBy: string,
    now: Date,
    links: readonly string[] = [],
  ): Promise<string[]> {
    const ended = new Set<string>();
    for (;;) {
      // A key whose end waits for one that it is about to make is followed by that at the next look.
      const made = await manager.query<{ id: string }[]>(WITH_MADE_KEYS, [madeBy, links]);
      const news = made.filter(({ id }) => !ended.has(id));
      if (news.length === 0) {
        return [...ended];
      }
      await this.revokeEach(manager, news, now);
      news.forEach(({ id }) => ended.add(id));
    }
  }

  /** Ends what devices of a user got, for good. */
  async revokeOfDevices(manager: EntityManager, userId: string, now: Date): Promise<void> {
    const where = { userId, ofDevice: true, revokedAt: IsNull() };
    await this.revokeEach(manager, await manager.find(ApiKey, { select: { id: true }, where }), now);
  }

  private async revokeEach(
    manager: EntityManager,
    keys: readonly Pick<ApiKey, 'id'>[],
    now: Date,
  ): Promise<void> {
    for (const { id: resourceId } of keys) {
      const [[revoked]] = await manager.query<[{ user_id: string }[], number]>(REVOKE, [resourceId, now]);
      if (revoked) {
        const entry = { action: 'api_key.revoke' as const, resourceId, ownerId: revoked.user_id };
        await this.audit.append(manager, entry);
        await publishAccessChange(manager, revoked.user_id);
      }
    }
  }

  /** Stores the last use of a key, unless a use since `unlessSince` is stored already. */
  async touch(id: string, now: Date, unlessSince: Date): Promise<void> {
    await this.query(TOUCH, [id, now, unlessSince]);
  }

  /** Runs a transaction that replicas which start together execute one after the other. */
  async bootstrapTransaction(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await manager.query('SELECT pg_advisory_xact_lock($1)', [BOOTSTRAP_LOCK]);
      await work(manager);
    });
  }

  /** Makes this the user's one key of that name, without expiry. */
  async putOnly(
    manager: EntityManager,
    { id, secretHash }: ParsedApiKey,
    { userId, name }: Pick<ApiKey, 'userId' | 'name'>,
  ): Promise<void> {
    const known = await manager.findOneBy(ApiKey, { id });
    const others = await manager.findBy(ApiKey, { userId, name, id: Not(id) });
    if (others.length > 0) {
      await manager.delete(ApiKey, { id: In(others.map((other) => other.id)) });
      await publishAccessChange(manager, userId);
    }
    await manager.upsert(
      ApiKey,
      { id, userId, name, secretHash, ...UNLIMITED },
      { conflictPaths: ['id'], skipUpdateIfNoValuesChanged: true },
    );
    const isUnchanged =
      known?.userId === userId &&
      known.name === name &&
      known.secretHash.equals(secretHash) &&
      Object.keys(UNLIMITED).every((column) => known[column as keyof typeof UNLIMITED] === null);
    const details = { name };
    await this.audit.append(
      manager,
      ...others.map((other) => ({
        action: 'api_key.revoke' as const,
        resourceId: other.id,
        ownerId: userId,
        details,
      })),
      ...(isUnchanged
        ? []
        : [{ action: 'api_key.create' as const, resourceId: id, ownerId: userId, details }]),
    );
  }
}

function earlier(one: Date | null, other: Date): Date {
  return one === null || other < one ? other : one;
}
