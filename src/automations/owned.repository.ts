import {
  Column,
  CreateDateColumn,
  type DataSource,
  type EntityManager,
  type EntityTarget,
  type FindOptionsOrder,
  type FindOptionsWhere,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import type { AuditAction } from '../audit/audit-action.js';
import type { AuditRepository } from '../audit/audit.repository.js';
import { lockUser, OwnedRow } from '../auth/user.repository.js';
import { DomainError } from '../common/errors/domain-error.js';
import { found, type Owner } from './current-owner.js';

export abstract class RowOfOwner extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  /** The user's personal organization, whose id is that of the user, until there are others. */
  @Column('uuid', { name: 'org_id' }) orgId: string;
  @CreateDateColumn({ name: 'created_at', type: 'timestamptz' }) createdAt: Date;
}

export interface ListPlace {
  limit: number;
  offset: number;
}

interface Rules {
  /** In the actions of the audit. */
  kind: 'automation' | 'automation_webhook';
  noun: string;
  /** Of one user. */
  most: number;
}

/** Rows that a user makes, changes and removes, each time with an entry of the audit. */
export abstract class OwnedRepository<Row extends RowOfOwner> extends Repository<Row> {
  protected constructor(
    type: EntityTarget<Row>,
    { manager }: DataSource,
    private readonly audit: AuditRepository,
    private readonly rules: Rules,
  ) {
    super(type, manager);
  }

  /** The newest first, with the number of all. */
  async page(owner: Owner, place: ListPlace, where: FindOptionsWhere<Row> = {}): Promise<[Row[], number]> {
    return newestFirst(this, { ...where, ...owner }, place);
  }

  /** @throws DomainError not_found for what is not the owner's */
  async getOf(owner: Owner, id: string): Promise<Row> {
    return found(await this.findOneBy(whereOf<Row>({ ...owner, id })), this.rules.noun);
  }

  /** Changes what `change` makes of the locked row. Throws as `getOf` and `change`. */
  async changeOf(
    owner: Owner,
    id: string,
    members: readonly string[],
    change: (row: Row) => Partial<Row>,
    action: AuditAction = `${this.rules.kind}.update`,
  ): Promise<Row> {
    return this.manager.transaction(async (manager) => {
      const row = found(await this.lock(manager, { ...owner, id }), this.rules.noun);
      await manager.update(this.target, { id }, change(row) as object);
      await this.audit.append(manager, {
        action,
        resourceId: id,
        ownerId: owner.userId,
        details: { members },
      });
      return manager.findOneByOrFail(this.target, whereOf<Row>({ id }));
    });
  }

  /** Throws as `getOf`. */
  async removeOf(owner: Owner, id: string): Promise<void> {
    const { kind, noun } = this.rules;
    await this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(this.target, { ...owner, id });
      found(affected === 1 ? id : null, noun);
      await this.audit.append(manager, { action: `${kind}.delete`, resourceId: id, ownerId: owner.userId });
    });
  }

  /** Other changes of the row wait until the transaction ends. */
  async lock(manager: EntityManager, which: Partial<Owner> & { id: string }): Promise<Row | null> {
    return manager.findOne(this.target, { where: whereOf<Row>(which), lock: { mode: 'pessimistic_write' } });
  }

  /** Adds a row, unless `inPlace` finds one. Throws as `inPlace`. @throws DomainError conflict for too many */
  protected async addOf(
    owner: Owner,
    id: string,
    values: Partial<Row>,
    inPlace: (manager: EntityManager) => Promise<Row | null>,
  ): Promise<{ row: Row; isNew: boolean }> {
    const { kind, noun, most } = this.rules;
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, owner.userId);
      const known = await inPlace(manager);
      if (known !== null) {
        return { row: known, isNew: false };
      }
      if ((await manager.countBy(this.target, whereOf<Row>({ userId: owner.userId }))) >= most) {
        const detail = `You have ${most} ${noun}s, the most that are kept; delete one first.`;
        throw new DomainError('conflict', 'conflict', detail);
      }
      await manager.insert(this.target, { id, ...owner, ...values } as object);
      await this.audit.append(manager, { action: `${kind}.create`, resourceId: id, ownerId: owner.userId });
      return { row: await manager.findOneByOrFail(this.target, whereOf<Row>({ id })), isNew: true };
    });
  }
}

/** TypeORM cannot see that every row has these columns. */
function whereOf<Row extends RowOfOwner>(columns: Partial<RowOfOwner>): FindOptionsWhere<Row> {
  return columns as FindOptionsWhere<Row>;
}

export async function newestFirst<Row extends { id: string; createdAt: Date }>(
  rows: Repository<Row>,
  where: FindOptionsWhere<Row>,
  { limit: take, offset: skip }: ListPlace,
): Promise<[Row[], number]> {
  const order = { createdAt: 'DESC', id: 'DESC' } as FindOptionsOrder<Row>;
  return rows.findAndCount({ where, order, take, skip });
}
