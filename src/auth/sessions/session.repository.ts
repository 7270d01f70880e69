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
  LessThan,
  ManyToOne,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { publishAccessChange } from '../access-changes.js';
import { ApiKey, ApiKeyRepository, keyEnd } from '../api-key.repository.js';
import type { StoredCaller } from '../auth.decorators.js';
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

/** A logout of the issuer, for as long as a sign-in of before it may still become a session. */
@Entity('issuer_logouts')
export class IssuerLogout {
  /** The token's own. */
  @PrimaryColumn('text') id: string;
  @Column('text') issuer: string;
  @Column('text', { nullable: true }) subject: string | null;
  @Column('text', { nullable: true }) sid: string | null;
  @Column('timestamptz') issuedAt: Date;
  @Column('timestamptz') receivedAt: Date;
}

/** What a session was begun with. */
export type SessionOrigin = Partial<
  Pick<Session, 'apiKeyId' | 'identityId' | 'sid' | 'refreshToken' | 'renewedAt'>
> & {
  /** When the issuer signed the person in. */
  signedInAt?: Date;
};

/** Scopes and repositories are those of the exchanged key. */
export interface SessionWithOwner extends StoredCaller {
  secret_hash: Buffer;
  last_used_at: Date;
  ends_at: Date;
  name: string | null;
  renewed_at: Date | null;
}

/** A browser that has not been used for so long is signed out. */
export const SESSION_IDLE_MS = 12 * 3_600_000;
/** Sessions of one user; the one that was used longest ago ends first. */
export const MAX_SESSIONS = 20;

/** `$1` is the time, `$2` and `$3` the ages in milliseconds, `$4` the days of a person's keys. */
const IS_VALID = `
  s.last_used_at > $1::timestamptz - make_interval(secs => $2::double precision / 1000)
  AND s.created_at > $1::timestamptz - make_interval(secs => $3::double precision / 1000)
  AND (s.api_key_id IS NULL OR EXISTS (SELECT FROM api_keys k
    WHERE k.id = s.api_key_id AND k.revoked_at IS NULL AND coalesce(${keyEnd('k', '$4')}, 'infinity') > $1))
  AND NOT EXISTS (SELECT FROM users WHERE id = s.user_id AND disabled_at IS NOT NULL)`;

const FIND_VALID = `
  SELECT s.secret_hash, s.last_used_at, u.id AS user_id, u.email, u.name, u.is_admin, u.reads_only, s.renewed_at, k.scopes,
    k.repositories,
    least(s.last_used_at + make_interval(secs => $2::double precision / 1000),
      s.created_at + make_interval(secs => $3::double precision / 1000),
      ${keyEnd('k', '$4')}) AS ends_at
  FROM sessions s JOIN users u ON u.id = s.user_id LEFT JOIN api_keys k ON k.id = s.api_key_id
  WHERE s.id = $5 AND ${IS_VALID}`;

const FIND_STILL_VALID = `SELECT s.id, s.renewed_at FROM sessions s WHERE s.id = ANY ($5::text[]) AND ${IS_VALID}`;

/** Expired ones, and those beyond the newest `$6`. */
const FORGET_ENDED = `
  DELETE FROM sessions WHERE id IN (
    SELECT id FROM sessions s WHERE user_id = $5 AND NOT (${IS_VALID})
    UNION ALL
    (SELECT id FROM sessions WHERE user_id = $5 ORDER BY last_used_at DESC, id OFFSET $6))`;

/** One request at a time asks the issuer. */
const BEGIN_RENEWAL = `
  UPDATE sessions SET renewed_at = $2 WHERE id = $1 AND renewed_at <= $3
  RETURNING refresh_token`;

/** Finds the sessions of a subject or of one sign-in; sessions that began after `$4` belong to later sign-ins. */
const FIND_OF_SIGN_IN = `
  SELECT s.id, s.user_id FROM sessions s JOIN user_identities i ON i.id = s.identity_id
  WHERE i.issuer = $1 AND ($2::text IS NULL OR i.subject = $2) AND ($3::text IS NULL OR s.sid = $3)
    AND s.created_at <= $4
  FOR UPDATE OF s`;

/** Keys outlive the sessions that they were made by. */
const FIND_KEYS_OF_SIGN_IN = `
  SELECT k.id FROM api_keys k JOIN user_identities i ON i.id = k.identity_id
  WHERE i.issuer = $1 AND ($2::text IS NULL OR i.subject = $2) AND ($3::text IS NULL OR k.sid = $3)
    AND k.created_at <= $4`;

/** A sign-in becomes a session before a logout looks for sessions, or finds the logout. */
const LOCK_LOGOUTS = "SELECT pg_advisory_xact_lock(hashtext('issuer_logouts'))";
const LOCK_LOGOUTS_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtext('issuer_logouts'))";

/** Compares the issuer's times only, so that a person who signs in after a logout is let in. */
const IS_LOGGED_OUT = `
  SELECT FROM issuer_logouts l JOIN user_identities i ON i.issuer = l.issuer AND i.id = $1
  WHERE (l.subject IS NULL OR l.subject = i.subject) AND (l.sid IS NULL OR l.sid = $2)
    AND l.issued_at >= $3`;
const KEEP_LOGOUTS_MS = 600_000;

const TOUCH = 'UPDATE sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $3';

const FIND_TO_END = 'SELECT id, user_id FROM sessions WHERE id = $1 FOR UPDATE';

export const LOGGED_OUT = 'The identity provider has ended this sign-in meanwhile. Begin again.';

interface EndingSession {
  id: string;
  user_id: string;
}

@Injectable()
export class SessionRepository extends Repository<Session> {
  constructor(
    dataSource: DataSource,
    private readonly audit: AuditRepository,
    private readonly keys: ApiKeyRepository,
  ) {
    super(Session, dataSource.manager);
  }

  async findValid(id: string, now: Date): Promise<SessionWithOwner | null> {
    const [row] = await this.query<SessionWithOwner[]>(FIND_VALID, [...this.ages(now), id]);
    return row ?? null;
  }

  async findStillValid(
    ids: readonly string[],
    now: Date,
  ): Promise<{ id: string; renewed_at: Date | null }[]> {
    return this.query(FIND_STILL_VALID, [...this.ages(now), ids]);
  }

  /**
   * Stores a session, and forgets ended ones of its user.
   * @throws DomainError unauthorized for a removed user, and where the issuer has ended the sign-in meanwhile; conflict for a
   *   disabled one; forbidden for a service
   */
  async add(
    { id, secretHash }: SessionToken,
    { userId, signedInAt, ...origin }: SessionOrigin & Pick<Session, 'userId'>,
    now: Date,
  ): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      await requirePerson(manager, userId);
      if (origin.identityId) {
        await manager.query(LOCK_LOGOUTS_SHARED);
        const { identityId, sid } = origin;
        const ended = await manager.query<unknown[]>(IS_LOGGED_OUT, [identityId, sid, signedInAt]);
        if (ended.length > 0) {
          throw new DomainError('unauthorized', LOGGED_OUT);
        }
      }
      await manager.query(FORGET_ENDED, [...this.ages(now), userId, MAX_SESSIONS - 1]);
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

  /** Ends a session that the issuer does not renew, with the keys that were made by it. */
  async endByIssuer(id: string, now: Date): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await this.endEach(manager, await manager.query(FIND_TO_END, [id]), now);
    });
  }

  /** Ends what the issuer logs out: sessions, also those about to begin, and the keys that were made by them at any time. */
  async logOut({ tokenId, issuer, subject, sid, issuedAt, at }: EndedSignIn, now: Date): Promise<void> {
    await this.manager.transaction(async (manager) => {
      await manager.query(LOCK_LOGOUTS);
      await manager.delete(IssuerLogout, { receivedAt: LessThan(new Date(now.getTime() - KEEP_LOGOUTS_MS)) });
      const logout = { id: tokenId, issuer, subject, sid, issuedAt, receivedAt: now };
      await manager.createQueryBuilder().insert().into(IssuerLogout).values(logout).orIgnore().execute();
      const which = [issuer, subject, sid, at];
      await this.endEach(manager, await manager.query(FIND_OF_SIGN_IN, which), now);
      for (const { id } of await manager.query<{ id: string }[]>(FIND_KEYS_OF_SIGN_IN, which)) {
        await this.keys.revokeWithin(manager, id, now);
      }
    });
  }

  private async endEach(
    manager: EntityManager,
    sessions: readonly EndingSession[],
    now: Date,
  ): Promise<void> {
    await manager.delete(Session, { id: In(sessions.map(({ id }) => id)) });
    for (const { id, user_id: ownerId } of sessions) {
      await this.audit.append(manager, { action: 'session.end', resourceId: id, ownerId, by: 'service' });
      await this.keys.revokeWithin(manager, id, now);
      await publishAccessChange(manager, ownerId);
    }
  }

  /** Stores the last use, unless one since `unlessSince` is stored already. */
  async touch(id: string, now: Date, unlessSince: Date): Promise<void> {
    await this.query(TOUCH, [id, now, unlessSince]);
  }

  private ages(now: Date): unknown[] {
    return [now, SESSION_IDLE_MS, SESSION_MAX_MS, this.keys.personKeyDays];
  }
}
