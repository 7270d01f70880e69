import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  type FindManyOptions,
  ILike,
  In,
  Index,
  IsNull,
  JoinColumn,
  LessThan,
  ManyToOne,
  MoreThan,
  PrimaryColumn,
  QueryFailedError,
  Raw,
  Repository,
  Unique,
} from 'typeorm';
import type { AuditAction } from '../audit/audit-action.js';
import { type AuditDetails, AuditRepository } from '../audit/audit.repository.js';
import { type MemberRole, roleColumns } from './access.js';
import { DomainError, found } from '../common/errors/domain-error.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { publishAccessChange } from './access-changes.js';

export const USER_KINDS = ['person', 'service'] as const;

/** A service cannot sign in. */
export type UserKind = (typeof USER_KINDS)[number];

/** A person or service that owns keys, settings, tokens and conversations. */
@Entity('users')
@Unique('users_email_key', ['email'])
@Index('users_administrators_idx', ['id'], { where: 'is_admin' })
@Index('users_disabled_idx', ['id'], { where: 'disabled_at IS NOT NULL' })
export class User {
  @PrimaryColumn('uuid') id: string;

  /** Lower case. */
  @Column('text') email: string;
  @Column('text', { nullable: true }) name: string | null;
  @Column('boolean', { default: false }) isAdmin: boolean;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;

  /** The role of a viewer. */
  @Column('boolean', { default: false }) readsOnly: boolean;

  /** The role of an owner, while the user is an administrator. */
  @Column('boolean', { default: false }) isOwner: boolean;

  /** Since when no person and no program acts in the user's name. */
  @Column('timestamptz', { nullable: true }) disabledAt: Date | null;
  @Column('text', { default: 'person' }) kind: UserKind;

  /** Set where this row stands for a removed user, whose work it keeps for a while; it has no keys. */
  @Column('timestamptz', { nullable: true }) removedAt: Date | null;
}

/** Declares the `user` of a row with a `user_id`, which is removed with that user. */
export function OwnedByUser(): PropertyDecorator {
  return (row, property) => {
    ManyToOne(() => User, { onDelete: 'CASCADE' })(row, String(property));
    JoinColumn({ name: 'user_id' })(row, String(property));
  };
}

/** A row that is removed with its user. */
export abstract class OwnedRow {
  @Column('uuid') userId: string;

  @OwnedByUser()
  user?: User;
}

/** A row whose key is, or begins with, its user. */
export abstract class UserKeyedRow {
  @PrimaryColumn('uuid') userId: string;

  @OwnedByUser()
  user?: User;
}

/** Not for the row by which the organization owns what it has (docs/adr/0080). */
const IS_SOMEONE = (removedAt: string): string => `${removedAt} IS DISTINCT FROM 'infinity'`;

/** The administrator that the first start and `npm run keys -- create --admin` make. */
export const ADMIN_EMAIL = 'admin@localhost';

@Injectable()
export class UserRepository extends Repository<User> {
  constructor(
    dataSource: DataSource,
    private readonly audit: AuditRepository,
  ) {
    super(User, dataSource.manager);
  }

  /** Case-insensitive. Not what stands for a removed user, or for the organization. */
  async findByEmail(email: string): Promise<User | null> {
    return this.findOneBy({ email: email.toLowerCase(), removedAt: IsNull() });
  }

  /** As {@link findByEmail}. */
  async findPresent(id: string): Promise<User | null> {
    return this.findOneBy({ id, removedAt: IsNull() });
  }

  /** Users in the order of their addresses, after `afterEmail`. */
  async listByEmail(afterEmail: string | null, limit: number): Promise<User[]> {
    return this.find({
      where: { removedAt: IsNull(), ...(afterEmail !== null && { email: MoreThan(afterEmail) }) },
      order: { email: 'ASC' },
      take: limit,
    });
  }

  /** In the order of their addresses, which have this part; case does not count. */
  async withAddress(
    part: string,
    more: Pick<FindManyOptions<User>, 'skip' | 'take'>,
    id?: string,
  ): Promise<User[]> {
    const email = part === '' ? undefined : ILike(`%${part.replace(/[\\%_]/g, String.raw`\$&`)}%`);
    const where = { removedAt: IsNull(), ...(email && { email }), ...(id !== undefined && { id }) };
    return this.find({ where, order: { email: 'ASC' }, ...more });
  }

  /** Adds a user. @returns its id; null when the address is taken */
  async add(
    manager: EntityManager,
    { email, ...user }: Pick<User, 'email' | 'name' | 'isAdmin' | 'kind'>,
  ): Promise<string | null> {
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(User)
      .values({ ...user, id: randomUUID(), ...addressAndRole(email, user.isAdmin) })
      .orIgnore()
      .returning('id')
      .execute();
    const [row] = raw as { id: string }[];
    if (row) {
      await this.noteCreated(manager, row.id, user.isAdmin);
    }
    return row?.id ?? null;
  }

  /** Has no effect on one who is that already. */
  async setAdministrator(manager: EntityManager, id: string, isAdmin: boolean): Promise<void> {
    // A replica of version 0.2.0 takes the one role and leaves the other.
    const columns = { isAdmin, isOwner: false, ...(isAdmin && { readsOnly: false }) };
    const { affected } = await manager.update(User, { id, isAdmin: !isAdmin }, columns);
    if (affected === 1) {
      await this.note(manager, isAdmin ? 'user.make_admin' : 'user.unmake_admin', id);
    }
  }

  async setRole(manager: EntityManager, id: string, role: MemberRole): Promise<void> {
    await manager.update(User, { id }, roleColumns(role));
    await this.note(manager, 'user.set_role', id, { role });
  }

  /**
   * Where no owner is enabled, each administrator may do what owners may. Within {@link change}, of two who do this to each
   * other the second is none any more.
   * @throws DomainError forbidden
   */
  async requireOwner(manager: EntityManager, id: string): Promise<void> {
    const administrators = await manager.findBy(User, { isAdmin: true, disabledAt: IsNull() });
    const owners = administrators.filter(({ isOwner }) => isOwner);
    if (!(owners.length > 0 ? owners : administrators).some((each) => each.id === id)) {
      throw ownersOnly();
    }
  }

  /**
   * Administrators do nothing to owners that would make them less, or act in their name. Throws as {@link requireOwner} and
   * {@link requireAdministrator}.
   */
  async requireRank(manager: EntityManager, by: string, { id, isOwner }: User): Promise<void> {
    if (id === by) {
      return;
    }
    if (isOwner) {
      await this.requireOwner(manager, by);
    } else {
      await this.requireAdministrator(manager, by);
    }
  }

  /** Who is none any more, since the request was let in, does nothing to others. @throws DomainError forbidden */
  async requireAdministrator(manager: EntityManager, id: string): Promise<void> {
    if (!(await manager.existsBy(User, { id, isAdmin: true, disabledAt: IsNull() }))) {
      throw administratorsOnly();
    }
  }

  /** @param since null: enables. Has no effect on one who is that already. */
  async setDisabled(manager: EntityManager, { id, disabledAt }: User, since: Date | null): Promise<void> {
    if ((disabledAt === null) !== (since === null)) {
      await manager.update(User, { id }, { disabledAt: since });
      await this.note(manager, since === null ? 'user.enable' : 'user.disable', id);
    }
  }

  /** Returns the id of {@link ADMIN_EMAIL}, and adds that user when missing. */
  async ensureAdministrator(manager: EntityManager): Promise<string> {
    const known = await manager.findOneBy(User, { email: ADMIN_EMAIL });
    if (known) {
      return known.id;
    }
    const id = randomUUID();
    await manager.insert(User, { id, ...addressAndRole(ADMIN_EMAIL, true), name: 'admin', isAdmin: true });
    await this.noteCreated(manager, id, true);
    return id;
  }

  /** Whether another user's work can be given to it. */
  async isPresent(manager: EntityManager, id: string): Promise<boolean> {
    return manager.existsBy(User, { id, removedAt: IsNull() });
  }

  /** Those of the users in whose name a person or program may act now. */
  async acting(ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.find({
      select: { id: true },
      where: { id: In([...ids]), disabledAt: IsNull(), removedAt: IsNull(), readsOnly: false },
    });
    return new Set(rows.map(({ id }) => id));
  }

  /** Those of the users who are administrators now. */
  async administrators(ids: readonly string[]): Promise<Set<string>> {
    const where = { id: In([...ids]), isAdmin: true };
    const rows = ids.length === 0 ? [] : await this.find({ select: { id: true }, where });
    return new Set(rows.map(({ id }) => id));
  }

  /** Adds a row that stands for a removed user. @returns its id */
  async addRemoved(manager: EntityManager, { email }: User, removedAt: Date): Promise<string> {
    const id = randomUUID();
    await manager.insert(User, {
      id,
      email: `${id}@removed.invalid`,
      name: email,
      isAdmin: false,
      removedAt,
    });
    return id;
  }

  /** Removes what is kept of users who were removed before. */
  async forgetRemoved(before: Date): Promise<void> {
    await this.delete({ removedAt: LessThan(before) });
  }

  /** Removes a user and, by foreign keys, all their data. */
  async removeWithin(manager: EntityManager, id: string): Promise<void> {
    await manager.delete(User, { id });
    await this.note(manager, 'user.delete', id);
  }

  /**
   * Changes a user, who is locked: nothing of the user's is made meanwhile. Throws as `change`.
   * @throws DomainError not_found; conflict where no enabled administrator would be left
   */
  async change<T>(id: string, change: (manager: EntityManager, user: User) => Promise<T>): Promise<T> {
    return this.manager.transaction(async (manager) => {
      const administrators = await this.lockAdministrators(manager);
      const where = { id, removedAt: Raw(IS_SOMEONE) };
      const user = await manager.findOne(User, { where, lock: { mode: 'pessimistic_write' } });
      const changed = await change(manager, found(user, 'user'));
      const isLast = administrators.length === 1 && administrators[0]?.id === id;
      if (isLast && !(await manager.existsBy(User, { id, isAdmin: true, disabledAt: IsNull() }))) {
        throw lastAdministrator();
      }
      return changed;
    });
  }

  /**
   * Those who are enabled: until the transaction ends, no other transaction takes the role from one of them.
   * @param by who must be one; throws as {@link requireAdministrator}
   */
  async lockAdministrators(manager: EntityManager, by?: string): Promise<User[]> {
    const administrators = await manager.find(User, {
      where: { isAdmin: true, disabledAt: IsNull() },
      order: { id: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
    if (by !== undefined) {
      await this.requireAdministrator(manager, by);
    }
    return administrators;
  }

  private async noteCreated(manager: EntityManager, id: string, admin: boolean): Promise<void> {
    const entry = { action: 'user.create' as const, resourceId: id, ownerId: id, details: { admin } };
    await this.audit.append(manager, entry);
  }

  /** Tells the audit and, once the transaction is committed, all replicas what has become of a user. */
  async note(manager: EntityManager, action: AuditAction, id: string, details?: AuditDetails): Promise<void> {
    await this.audit.append(manager, { action, resourceId: id, ownerId: id, ...(details && { details }) });
    await publishAccessChange(manager, id);
  }
}

function addressAndRole(address: string, isAdmin: boolean): Pick<User, 'email' | 'isOwner'> {
  const email = address.toLowerCase();
  return { email, isOwner: isAdmin && email === ADMIN_EMAIL };
}

/**
 * SQL: whether anything may be done in the name of the user whose id is in the column. Whatever takes up work of users by
 * itself has it in its condition, so that the work of a disabled user waits, of one who may only read now, and what is kept
 * of a removed one.
 */
export function mayAct(column: string): string {
  return `NOT EXISTS (SELECT FROM users
    WHERE id = ${column} AND (disabled_at IS NOT NULL OR reads_only OR removed_at IS NOT NULL))`;
}

/** The organization's row is locked for its settings: it was removed never. */
const LOCK_USER = new NamedStatement<{ disabled: boolean; removed: boolean }>(
  'user_lock',
  `SELECT disabled_at IS NOT NULL AS disabled, coalesce(removed_at < 'infinity', false) AS removed
  FROM users WHERE id = $1 FOR NO KEY UPDATE`,
);

/**
 * Makes transactions on one user's rows take turns. Locking the user's row covers rows that do not exist yet, avoids
 * deadlocks, and still allows foreign keys to it.
 * @throws DomainError unauthorized when the user has been removed, conflict when disabled, and for what is kept of a
 *   removed user
 */
export async function lockUser(manager: EntityManager, userId: string): Promise<void> {
  const [user] = await LOCK_USER.within(manager, [userId]);
  if (user === undefined) {
    throw new DomainError('unauthorized', 'Unauthorized');
  }
  if (user.disabled) {
    throw new DomainError('conflict', 'This user is disabled.');
  }
  if (user.removed) {
    throw new DomainError('conflict', 'This user has been removed, so nothing is done in their name.');
  }
}

/** Before other rows are locked by what adds rows of the user: who changes the user locks the user first. */
export async function lockUserShared(manager: EntityManager, userId: string): Promise<void> {
  await manager.query('SELECT FROM users WHERE id = $1 FOR KEY SHARE', [userId]);
}

/** @throws DomainError forbidden for a service */
export async function requirePerson(manager: EntityManager, userId: string): Promise<void> {
  if (await manager.existsBy(User, { id: userId, kind: 'service' })) {
    throw serviceSignsIn();
  }
}

export function serviceSignsIn(): DomainError {
  return new DomainError('forbidden', 'This key is of a service, and nobody signs in as one.');
}

export function roleOfMap(): DomainError {
  return new DomainError(
    'conflict',
    'The groups of this person decide at the identity provider (OIDC_ROLE_MAP).',
  );
}

export function ownersOnly(): DomainError {
  return new DomainError('forbidden', 'Only an owner of the organization may do this.');
}

export function administratorsOnly(): DomainError {
  return new DomainError('forbidden', 'Only administrators may do this.');
}

export function lastAdministrator(): DomainError {
  return new DomainError('conflict', 'Nobody else who is enabled is an administrator.');
}

/** Foreign key violation, and NOT NULL violation where the id is looked up in the statement itself. */
const USER_MISSING: readonly unknown[] = ['23503', '23502'];

/** Whether writing a row of a user failed because the user has been removed since the request was let in. */
export function userIsGone(error: unknown): boolean {
  return (
    error instanceof QueryFailedError &&
    'code' in error.driverError &&
    USER_MISSING.includes(error.driverError.code)
  );
}
