import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  IsNull,
  JoinColumn,
  LessThan,
  ManyToOne,
  MoreThan,
  PrimaryColumn,
  QueryFailedError,
  Repository,
  Unique,
} from 'typeorm';
import { AuditRepository } from '../audit/audit.repository.js';
import { DomainError } from '../common/errors/domain-error.js';
import { NamedStatement } from '../database/named-statement.js';

/** A person or service that owns keys, settings, tokens and conversations. */
@Entity('users')
@Unique('users_email_key', ['email'])
@Index('users_administrators_idx', ['id'], { where: 'is_admin' })
export class User {
  @PrimaryColumn('uuid') id: string;

  /** Lower case. */
  @Column('text') email: string;
  @Column('text', { nullable: true }) name: string | null;
  @Column('boolean', { default: false }) isAdmin: boolean;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;

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

  /** Case-insensitive. */
  async findByEmail(email: string): Promise<User | null> {
    return this.findOneBy({ email: email.toLowerCase() });
  }

  /** Users in the order of their addresses, after `afterEmail`. */
  async listByEmail(afterEmail: string | null, limit: number): Promise<User[]> {
    return this.find({
      where: { removedAt: IsNull(), ...(afterEmail !== null && { email: MoreThan(afterEmail) }) },
      order: { email: 'ASC' },
      take: limit,
    });
  }

  /** Adds a user; null when the address is taken. */
  async add(email: string, name: string | null, isAdmin: boolean): Promise<User | null> {
    return this.manager.transaction(async (manager) => {
      const { raw } = await manager
        .createQueryBuilder()
        .insert()
        .into(User)
        .values({ id: randomUUID(), email: email.toLowerCase(), name, isAdmin })
        .orIgnore()
        .returning('*')
        .execute();
      const [row] = raw as { id: string }[];
      if (!row) {
        return null;
      }
      await this.noteCreated(manager, row.id, isAdmin);
      return manager.findOneByOrFail(User, { id: row.id });
    });
  }

  async makeAdministrator(id: string): Promise<void> {
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.update(User, { id, isAdmin: false }, { isAdmin: true });
      if (affected === 1) {
        await this.audit.append(manager, { action: 'user.make_admin', resourceId: id, ownerId: id });
      }
    });
  }

  /** Returns the id of {@link ADMIN_EMAIL}, and adds that user when missing. */
  async ensureAdministrator(manager: EntityManager): Promise<string> {
    const known = await manager.findOneBy(User, { email: ADMIN_EMAIL });
    if (known) {
      return known.id;
    }
    const id = randomUUID();
    await manager.insert(User, { id, email: ADMIN_EMAIL, name: 'admin', isAdmin: true });
    await this.noteCreated(manager, id, true);
    return id;
  }

  /** Whether another user's work can be given to it. */
  async isPresent(manager: EntityManager, id: string): Promise<boolean> {
    return manager.existsBy(User, { id, removedAt: IsNull() });
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

  /**
   * Removes a user and, by foreign keys, all their data. The last administrator stays.
   * @param keep is called before, in the same transaction; nothing of the user's is made meanwhile
   */
  async removeUnlessLastAdministrator(
    id: string,
    keep: (manager: EntityManager, user: User) => Promise<void> = () => Promise.resolve(),
  ): Promise<'removed' | 'unknown' | 'last_administrator'> {
    return this.manager.transaction(async (manager) => {
      const administrators = await manager.find(User, {
        where: { isAdmin: true },
        lock: { mode: 'pessimistic_write' },
      });
      if (administrators.length === 1 && administrators[0]?.id === id) {
        return 'last_administrator';
      }
      const user = await manager.findOne(User, { where: { id }, lock: { mode: 'pessimistic_write' } });
      if (user === null) {
        return 'unknown';
      }
      await keep(manager, user);
      await manager.delete(User, { id });
      await this.audit.append(manager, { action: 'user.delete', resourceId: id, ownerId: id });
      return 'removed';
    });
  }

  private async noteCreated(manager: EntityManager, id: string, isAdmin: boolean): Promise<void> {
    const details = { admin: isAdmin };
    await this.audit.append(manager, { action: 'user.create', resourceId: id, ownerId: id, details });
  }
}

const LOCK_USER = new NamedStatement('user_lock', 'SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE');

/**
 * Makes transactions on one user's rows take turns. Locking the user's row covers rows that do not exist yet, avoids
 * deadlocks, and still allows foreign keys to it.
 * @throws DomainError unauthorized when the user has been removed
 */
export async function lockUser(manager: EntityManager, userId: string): Promise<void> {
  const rows = await LOCK_USER.within(manager, [userId]);
  if (rows.length === 0) {
    throw new DomainError('unauthorized', 'Unauthorized');
  }
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
