import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  In,
  Index,
  PrimaryColumn,
  Repository,
  Unique,
} from 'typeorm';
import { found } from '../../common/errors/domain-error.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { keyBehind } from '../owned.repository.js';
import { lockUser, UserRepository } from '../user.repository.js';
import type { Person } from './person-claims.js';
import { isRole, type RoleDecision } from './role-decision.js';
import type { Role } from '../../config/oidc-config.js';

/**
 * Who a user is at the issuer. It has no foreign key: that of a removed user stays, without data of theirs, so that no
 * token brings them back.
 */
@Entity('user_identities')
@Unique('user_identities_issuer_subject_key', ['issuer', 'subject'])
@Index('user_identities_user_id_idx', ['userId'])
export class Identity {
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') userId: string;
  @Column('text') issuer: string;
  @Column('text') subject: string;
  @Column('boolean') emailVerified: boolean;

  /** False for a program that was seen before anybody gave it a role. */
  @Column('boolean') hasRole: boolean;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;

  /** The last sign-in, renewal or token; written at most once a minute. */
  @Column('timestamptz') lastSeenAt: Date;

  /** What the issuer said at that time, as `Person.shownGroups`; null where it left them out. */
  @Column('text', { array: true, nullable: true }) groups: string[] | null;

  /** When the token was issued that decided the role: an older one, which may still be valid, does not. */
  @Column('timestamptz', { nullable: true }) roleAt: Date | null;

  /** What a GitHub App may need of the newest token; null: nothing was ever needed. */
  @Column('jsonb', { nullable: true }) git: GitClaims | null;

  /** Id of the key that it was linked by. */
  @Column('text', { nullable: true }) madeByKey: string | null;
}

export interface GitClaims {
  login: string | null;
  /** Those that the operator names alone. */
  groups: string[];
  /** ISO 8601: of the token that says so. */
  issued_at: string;
}

export interface KnownPerson {
  identity_id: string;
  user_id: string;
  last_seen_at: Date;
  /** Null: the user was removed. */
  email: string | null;
  name: string | null;
  is_admin: boolean;
  reads_only: boolean;
  has_role: boolean;
  role_at: Date;
  is_disabled: boolean;
  git: GitClaims | null;
}

const FIND = new NamedStatement<KnownPerson>(
  'identity_find',
  `SELECT i.id AS identity_id, i.user_id, i.last_seen_at, u.email, u.name, u.is_admin, u.reads_only,
    i.has_role OR u.is_admin AS has_role, coalesce(i.role_at, 'epoch') AS role_at, u.disabled_at IS NOT NULL AS is_disabled, i.git
  FROM user_identities i LEFT JOIN users u ON u.id = i.user_id AND u.removed_at IS NULL
  WHERE i.issuer = $1 AND i.subject = $2`,
);

const FIND_ENABLED = `
  SELECT i.id FROM user_identities i JOIN users u ON u.id = i.user_id
  WHERE i.id = ANY ($1::uuid[]) AND u.removed_at IS NULL AND u.disabled_at IS NULL`;

const LOCK_SUBJECT = "SELECT pg_advisory_xact_lock(hashtext('user_identities'), hashtext($1))";

/** At most once a minute. */
const SEE = `
  UPDATE user_identities SET last_seen_at = $2, email_verified = $3, groups = $4
  WHERE id = $1 AND (last_seen_at < $2::timestamptz - interval '1 minute' OR email_verified <> $3
    OR groups IS DISTINCT FROM $4::text[])`;

const NOTE_GIT = `
  UPDATE user_identities SET git = $2::jsonb
  WHERE id = $1 AND (git IS NULL OR (git ->> 'issued_at')::timestamptz <= $3::timestamptz)`;

/** An identity counts for as long as keys of its person do, and a person whose identities all have ended is no member. */
const GIT_MEMBER = `
  SELECT coalesce(jsonb_agg(i.git) FILTER (WHERE i.git IS NOT NULL AND i.last_seen_at > $3), '[]') AS claims
  FROM users u LEFT JOIN user_identities i ON i.user_id = u.id AND i.issuer = $2
  WHERE u.id = $1 AND NOT u.reads_only AND u.disabled_at IS NULL AND u.removed_at IS NULL
  GROUP BY u.id HAVING count(i.id) = 0 OR max(i.last_seen_at) > $3`;

/** The token that was issued last decides, whatever order tokens arrive in. */
const DECIDE = `
  UPDATE user_identities SET role_at = $2, has_role = coalesce($3, has_role)
  WHERE id = $1 AND coalesce(role_at, 'epoch') <= $2 RETURNING id`;

/** The last administrator stays one, to be able to mend the map. An owner who is none any more does not become one again. */
const SET_ROLE = `
  UPDATE users SET is_admin = $2, reads_only = $3, is_owner = is_owner AND is_admin AND $2
  WHERE id = $1 AND (is_admin, reads_only) IS DISTINCT FROM ($2, $3)
    AND ($2 OR NOT is_admin OR EXISTS (
      SELECT FROM users o WHERE o.is_admin AND o.id <> $1 AND o.disabled_at IS NULL))
  RETURNING id`;

const FIND_SERVICE =
  "SELECT id FROM users WHERE kind = 'service' AND name = $1 AND removed_at IS NULL ORDER BY created_at LIMIT 1";

/**
 * Whether the user can get in without this identity: by a key, or by another one. Who was made by it stays the issuer's
 * affair: a key that they made would outlast all that the issuer says of them.
 */
const HAS_ANOTHER_WAY = `
  SELECT NOT EXISTS (SELECT FROM users u JOIN user_identities i ON i.id = $2 AND i.created_at = u.created_at
    WHERE u.id = $1) AND (EXISTS (SELECT FROM user_identities WHERE user_id = $1 AND id <> $2)
    OR EXISTS (SELECT FROM api_keys WHERE user_id = $1 AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > $3))) AS found`;

/** Keys of a sign-in that is unlinked stand and fall with the key that linked it. */
const GIVE_KEYS = 'UPDATE api_keys SET made_by_key = $2 WHERE identity_id = $1';

type IssuedIdentity = Pick<Person, 'issuer' | 'subject' | 'emailVerified'> &
  Partial<Pick<Person, 'issuedAt' | 'shownGroups'>>;

export type PersonRefusal = 'groups_overage' | 'no_role' | 'address_taken';

@Injectable()
export class IdentityRepository extends Repository<Identity> {
  constructor(
    dataSource: DataSource,
    private readonly users: UserRepository,
  ) {
    super(Identity, dataSource.manager);
  }

  async findPerson({ issuer, subject }: Pick<Person, 'issuer' | 'subject'>): Promise<KnownPerson | null> {
    const [row] = await FIND.run(this.manager.connection, [issuer, subject]);
    return row ?? null;
  }

  /** Which of the identities have users that may act now. */
  async findEnabled(ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.query<{ id: string }[]>(FIND_ENABLED, [ids]);
    return new Set(rows.map(({ id }) => id));
  }

  async listOf(userId: string): Promise<Identity[]> {
    return this.find({ where: { userId }, order: { createdAt: 'ASC', id: 'ASC' } });
  }

  /** Whether the user is a person of an issuer. */
  async areOf(manager: EntityManager, userId: string): Promise<boolean> {
    return manager.existsBy(Identity, { userId });
  }

  /** By the users' ids, of each the one that was seen last. */
  async lastSeenOf(userIds: readonly string[]): Promise<Map<string, Identity>> {
    const rows = await this.find({
      where: { userId: In([...userIds]) },
      order: { lastSeenAt: 'ASC', id: 'ASC' },
    });
    return new Map(rows.map((row) => [row.userId, row]));
  }

  /** Nothing that the issuer said of a removed user is kept, but who is not to come back. */
  async forgetSaid(manager: EntityManager, userId: string): Promise<void> {
    await manager.update(Identity, { userId }, { groups: null, git: null });
  }

  /** Adds a user for a new person, once, however many tokens of theirs arrive at a time. */
  async addPerson(person: Person, role: RoleDecision, now: Date): Promise<KnownPerson | PersonRefusal> {
    const added = await this.manager.transaction(async (manager) => {
      await manager.query(LOCK_SUBJECT, [`${person.issuer} ${person.subject}`]);
      if (await manager.existsBy(Identity, { issuer: person.issuer, subject: person.subject })) {
        return 'known';
      }
      if (role === 'groups_overage' || (role === 'no_role' && person.client === null)) {
        return role;
      }
      if (isRole(role)) {
        // Before any user, as in all changes of users: who locks a user first may wait for one who waits for that user.
        await this.users.lockAdministrators(manager);
      }
      const { email, name, client } = person;
      const kind = client === null ? 'person' : 'service';
      const service = client === null ? null : await this.serviceOf(manager, client);
      // An address proves no identity.
      const user = service ?? (await this.users.add(manager, { email, name, isAdmin: false, kind }));
      if (user === null) {
        return 'address_taken';
      }
      const hasRole = service !== null || role !== 'no_role';
      await this.addIdentity(manager, user, person, now, { hasRole });
      if (isRole(role)) {
        await this.giveRole(manager, user, role);
      }
      return 'known';
    });
    return added === 'known' ? found(await this.findPerson(person), 'identity') : added;
  }

  /** Notes that a known person was seen. */
  async see(
    { identity_id: id }: KnownPerson,
    { emailVerified, shownGroups }: Person,
    now: Date,
  ): Promise<void> {
    await this.query(SEE, [id, now, emailVerified, shownGroups]);
  }

  /** Keeps what a GitHub App may need of a known person, unless a newer token has said it meanwhile. */
  async noteGit({ identity_id: id }: KnownPerson, git: GitClaims): Promise<void> {
    await this.query(NOTE_GIT, [id, git, git.issued_at]);
  }

  /**
   * What the issuer says of a user who may start something; null for everybody else.
   * @param since when an identity must have been seen to count
   */
  async gitMember(
    userId: string,
    issuer: string | null,
    since: Date,
  ): Promise<Omit<GitClaims, 'issued_at'> | null> {
    const [row] = await this.query<{ claims: GitClaims[] }[]>(GIT_MEMBER, [userId, issuer, since]);
    return row === undefined
      ? null
      : {
          login: row.claims.find(({ login }) => login !== null)?.login ?? null,
          groups: row.claims.flatMap(({ groups }) => groups),
        };
  }

  /**
   * Gives a known person the role of a token; none is the least that there is, and refuses the sign-in.
   * @returns whether what is known of the person has changed, by this token or by a newer one
   */
  async decide(known: KnownPerson, { issuedAt, client }: Person, role: Role | 'no_role'): Promise<boolean> {
    const { is_admin: isAdmin, reads_only: readsOnly, user_id: userId } = known;
    const least = role === 'no_role' ? 'viewer' : role;
    const isAsBefore = isAdmin === (least === 'admin') && readsOnly === (least === 'viewer');
    // A program that had a role keeps it without one.
    const hasRole = client === null ? role !== 'no_role' : null;
    const decision = [known.identity_id, issuedAt, hasRole];
    if (isAsBefore) {
      const isNews = issuedAt > known.role_at || (hasRole !== null && known.has_role !== hasRole);
      return isNews && !(await this.isNewest(this.manager, decision));
    }
    return this.manager.transaction(async (manager) => {
      if (isAdmin) {
        await this.users.lockAdministrators(manager);
      }
      await lockUser(manager, userId);
      return !(await this.isNewest(manager, decision)) || (await this.giveRole(manager, userId, least));
    });
  }

  /** @returns false where the person is linked already @throws DomainError unauthorized where the key has ended meanwhile */
  async link(userId: string, person: IssuedIdentity, now: Date): Promise<boolean> {
    return this.manager.transaction(async (manager) => {
      await manager.query(LOCK_SUBJECT, [`${person.issuer} ${person.subject}`]);
      if (await manager.existsBy(Identity, { issuer: person.issuer, subject: person.subject })) {
        return false;
      }
      await lockUser(manager, userId);
      await this.addIdentity(manager, userId, person, now, { madeByKey: await keyBehind(manager) });
      await this.users.note(manager, 'user.link', userId, { issuer: person.issuer, subject: person.subject });
      return true;
    });
  }

  /** @param anyway also the only way in of a user, for operators */
  async unlink(
    userId: string,
    id: string,
    now: Date,
    anyway = false,
  ): Promise<'unlinked' | 'unknown' | 'only_way_in'> {
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, userId);
      const known = await manager.findOneBy(Identity, { id, userId });
      if (known === null) {
        return 'unknown';
      }
      const [other] = await manager.query<{ found: boolean }[]>(HAS_ANOTHER_WAY, [userId, id, now]);
      if (!anyway && other?.found !== true) {
        return 'only_way_in';
      }
      await manager.delete(Identity, { id });
      if (known.madeByKey !== null) {
        await manager.query(GIVE_KEYS, [id, known.madeByKey]);
      }
      await this.users.note(manager, 'user.unlink', userId, { issuer: known.issuer, subject: known.subject });
      return 'unlinked';
    });
  }

  /**
   * Lets a removed person in again, as a new user. @returns false where no removed user of that id is kept out
   * @param by the administrator who asks; throws as `UserRepository.requireAdministrator`
   */
  async letIn(userId: string, by: string): Promise<boolean> {
    return this.manager.transaction(async (manager) => {
      await this.users.lockAdministrators(manager, by);
      if (await this.users.isPresent(manager, userId)) {
        return false;
      }
      const { affected } = await manager.delete(Identity, { userId });
      if (affected === 0) {
        return false;
      }
      await this.users.note(manager, 'user.restore', userId);
      return true;
    });
  }

  private async addIdentity(
    manager: EntityManager,
    userId: string,
    person: IssuedIdentity,
    now: Date,
    { hasRole = true, madeByKey = null }: Partial<Pick<Identity, 'hasRole' | 'madeByKey'>>,
  ): Promise<void> {
    const { issuer, subject, emailVerified, issuedAt: roleAt = null, shownGroups: groups = null } = person;
    const seen = { emailVerified, hasRole, lastSeenAt: now, roleAt, groups };
    await manager.insert(Identity, { id: randomUUID(), userId, issuer, subject, madeByKey, ...seen });
  }

  /** What an administrator made for the client before. */
  private async serviceOf(manager: EntityManager, client: string): Promise<string | null> {
    const [service] = await manager.query<{ id: string }[]>(FIND_SERVICE, [client]);
    return service?.id ?? null;
  }

  private async isNewest(manager: EntityManager, decision: readonly unknown[]): Promise<boolean> {
    const [decided] = await manager.query<[unknown[], number]>(DECIDE, [...decision]);
    return decided.length > 0;
  }

  private async giveRole(manager: EntityManager, userId: string, role: Role): Promise<boolean> {
    const [changed] = await manager.query<[unknown[], number]>(SET_ROLE, [
      userId,
      role === 'admin',
      role === 'viewer',
    ]);
    if (changed.length > 0) {
      await this.users.note(manager, 'user.set_role', userId, { role });
    }
    return changed.length > 0;
  }
}
