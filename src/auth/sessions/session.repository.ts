import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  In,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import type { Scope } from '../../common/scopes.js';
import { publishAccessChange } from '../access-changes.js';
import { ApiKey } from '../api-key.repository.js';
import type { EndedSignIn } from '../oidc/oidc.issuer.js';
import { Identity } from '../oidc/identity.repository.js';
import { lockUser, OwnedRow, requirePerson } from '../user.repository.js';
import { SESSION_MAX_MS, type SessionToken } from './session-cookie.js';

/** A signed-in browser. Only the SHA-256 of the secret is stored, never the cookie. */
@Entity('sessions')
@Index('sessions_user_id_idx', ['userId'])
@Index('sessions_api_key_id_idx', ['apiKeyId'])
@Index('sessions_identity_id_idx', ['identityId'], { where: 'identity_id IS NOT NULL' })
export class Session extends OwnedRow {
  /** Part of the cookie itself (`ses_<id>_<secret>`). */
  @PrimaryColumn('text') id: string;

  /** The key that was exchanged for the session, which ends with it. */
  @Column('text', { nullable: true }) apiKeyId: string | null;

  @ManyToOne(() => ApiKey, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'api_key_id' })
  apiKey?: ApiKey | null;

  /** Who signed in by the issuer; the session ends with the link. */
  @Column('uuid', { nullable: true }) identityId: string | null;

  @ManyToOne(() => Identity, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'identity_id' })
  identity?: Identity | null;

  /** The issuer's own name for the sign-in, which a back-channel logout may name. */
  @Column('text', { nullable: true }) sid: string | null;

  /** Encrypted. */
  @Column('text', { nullable: true }) refreshToken: string | null;

  /** When the issuer was last asked whether it goes on; null where it gives no refresh tokens. */
  @Column('timestamptz', { nullable: true }) renewedAt: Date | null;

  @Column('bytea') secretHash: Buffer;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;

  /** Written at most once a minute. */
  @Column('timestamptz') lastUsedAt: Date;
}

/** What a session was begun with. */
export type SessionOrigin = Partial<
  Pick<Session, 'apiKeyId' | 'identityId' | 'sid' | 'refreshToken' | 'renewedAt'>
>;

export interface SessionWithOwner {
  secret_hash: Buffer;
  last_used_at: Date;
  ends_at: Date;
  user_id: string;
  email: string;
  name: string | null;
  is_admin: boolean;
  /** Of the key that was exchanged; null: all that the user may do. */
  scopes: Scope[] | null;
  reads_only: boolean;
  renewed_at: Date | null;
}

/** A browser that has not been used for so long is signed out. */
export const SESSION_IDLE_MS = 12 * 3_600_000;
/** Sessions of one user; the one that was used longest ago ends first. */
export const MAX_SESSIONS = 20;

/** `$1` is the time, `$2` and `$3` the ages in milliseconds. */
const IS_VALID = `
  s.last_used_at > $1::timestamptz - make_interval(secs => $2::double precision / 1000)
  AND s.created_at > $1::timestamptz - make_interval(secs => $3::double precision / 1000)
  AND (s.api_key_id IS NULL OR EXISTS (SELECT FROM api_keys k
    WHERE k.id = s.api_key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $1)))
  AND NOT EXISTS (SELECT FROM users WHERE id = s.user_id AND disabled_at IS NOT NULL)`;

const FIND_VALID = `
  SELECT s.secret_hash, s.last_used_at, u.id AS user_id, u.email, u.name, u.is_admin, u.reads_only, s.renewed_at, k.scopes,
    least(s.last_used_at + make_interval(secs => $2::double precision / 1000),
      s.created_at + make_interval(secs => $3::double precision / 1000),
      k.expires_at) AS ends_at
  FROM sessions s JOIN users u ON u.id = s.user_id LEFT JOIN api_keys k ON k.id = s.api_key_id
  WHERE s.id = $4 AND ${IS_VALID}`;

const FIND_VALID_IDS = `SELECT s.id FROM sessions s WHERE s.id = ANY ($4::text[]) AND ${IS_VALID}`;

/** Expired ones, and those beyond the newest `$5`. */
const FORGET_ENDED = `
  DELETE FROM sessions WHERE id IN (
    SELECT id FROM sessions s WHERE user_id = $4 AND NOT (${IS_VALID})
    UNION ALL
    (SELECT id FROM sessions WHERE user_id = $4 ORDER BY last_used_at DESC, id OFFSET $5))`;

/** One request at a time asks the issuer. */
const BEGIN_RENEWAL = `
  UPDATE sessions SET renewed_at = $2 WHERE id = $1 AND renewed_at <= $3
  RETURNING refresh_token`;

/** Of a subject, or of one sign-in; those that began later are others. */
const FIND_OF_SIGN_IN = `
  SELECT s.id, s.user_id FROM sessions s JOIN user_identities i ON i.id = s.identity_id
  WHERE i.issuer = $1 AND ($2::text IS NULL OR i.subject = $2) AND ($3::text IS NULL OR s.sid = $3)
    AND s.created_at <= $4
  FOR UPDATE OF s`;

const TOUCH = 'UPDATE sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $3';

type EndKeys = (manager: EntityManager, madeBy: string) => Promise<void>;

@Injectable()
export class SessionRepository extends Repository<Session> {
  constructor(
    dataSource: DataSource,
    private readonly audit: AuditRepository,
  ) {
    super(Session, dataSource.manager);
  }

  async findValid(id: string, now: Date): Promise<SessionWithOwner | null> {
    const [row] = await this.query<SessionWithOwner[]>(FIND_VALID, [...ages(now), id]);
    return row ?? null;
  }

  async findValidIds(ids: readonly string[], now: Date): Promise<string[]> {
    const rows = await this.query<{ id: string }[]>(FIND_VALID_IDS, [...ages(now), ids]);
    return rows.map(({ id }) => id);
  }

  /** Stores a session, and forgets ended ones of its user. @throws DomainError unauthorized for a removed or disabled user, forbidden for a service */
  async add(
    { id, secretHash }: SessionToken,
    { userId, ...origin }: SessionOrigin & Pick<Session, 'userId'>,
    now: Date,
  ): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      await requirePerson(manager, userId);
      await manager.query(FORGET_ENDED, [...ages(now), userId, MAX_SESSIONS - 1]);
      await manager.insert(Session, { id, userId, ...origin, secretHash, createdAt: now, lastUsedAt: now });
      await this.audit.append(manager, { action: 'session.create', resourceId: id, ownerId: userId });
    });
  }

  /** Has no effect on a session that has ended. */
  async end(id: string, userId: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(Session, { id, userId });
      if (affected === 1) {
        await this.audit.append(manager, { action: 'session.end', resourceId: id, ownerId: userId });
        await publishAccessChange(manager, userId);
      }
    });
  }

  /** Signs out all browsers of a user. */
  async endAll(manager: EntityManager, userId: string): Promise<void> {
    const sessions = await manager.find(Session, { select: { id: true }, where: { userId } });
    await manager.delete(Session, { userId });
    const entry = { action: 'session.end' as const, ownerId: userId };
    await this.audit.append(manager, ...sessions.map(({ id }) => ({ ...entry, resourceId: id })));
  }

  /** Takes the turn to renew a session. @returns its refresh token; null where another request has the turn */
  async beginRenewal(id: string, now: Date, unlessSince: Date): Promise<string | null> {
    const parameters = [id, now, unlessSince];
    const [[row]] = await this.query<[{ refresh_token: string }[], number]>(BEGIN_RENEWAL, parameters);
    return row?.refresh_token ?? null;
  }

  /** Ends sessions that the issuer has ended, with the keys that were made by them. */
  async endByIssuer(which: { id: string } | EndedSignIn, endKeys: EndKeys): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const sessions: { id: string; user_id: string }[] = await ('id' in which
        ? manager.query('SELECT id, user_id FROM sessions WHERE id = $1 FOR UPDATE', [which.id])
        : manager.query(FIND_OF_SIGN_IN, [which.issuer, which.subject, which.sid, which.at]));
      await manager.delete(Session, { id: In(sessions.map(({ id }) => id)) });
      for (const { id, user_id: ownerId } of sessions) {
        await this.audit.append(manager, { action: 'session.end', resourceId: id, ownerId, by: 'service' });
        await endKeys(manager, id);
        await publishAccessChange(manager, ownerId);
      }
    });
  }

  /** Stores the last use, unless one since `unlessSince` is stored already. */
  async touch(id: string, now: Date, unlessSince: Date): Promise<void> {
    await this.query(TOUCH, [id, now, unlessSince]);
  }
}

function ages(now: Date): unknown[] {
  return [now, SESSION_IDLE_MS, SESSION_MAX_MS];
}
