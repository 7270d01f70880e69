import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { ArrayContains, DataSource, type EntityManager, LessThanOrEqual, Raw, Repository } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { lockUser } from '../../auth/user.repository.js';
import type { Owner } from '../current-owner.js';
import { Automation } from './automation.entity.js';

/** Per user. */
export const MAX_AUTOMATIONS = 100;

export type AutomationValues = Pick<
  Automation,
  'name' | 'description' | 'state' | 'trigger' | 'eventSource' | 'nextRunAt' | 'work' | 'limits' | 'tags'
>;

export interface ListPlace {
  limit: number;
  offset: number;
}

const TAG_COUNTS = `
  SELECT tag, count(*)::int AS count FROM automations CROSS JOIN unnest(tags) AS tag
  WHERE user_id = $1 AND org_id = $2
  GROUP BY tag ORDER BY count DESC, tag`;

@Injectable()
export class AutomationRepository extends Repository<Automation> {
  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly audit: AuditRepository,
  ) {
    super(Automation, dataSource.manager);
  }

  /** The newest first, with the number of all. */
  async page(
    owner: Owner,
    tag: string | null,
    { limit, offset }: ListPlace,
  ): Promise<[Automation[], number]> {
    return this.findAndCount({
      where: { ...owner, ...(tag !== null && { tags: ArrayContains([tag]) }) },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: limit,
      skip: offset,
    });
  }

  async findOf({ userId, orgId }: Owner, id: string): Promise<Automation | null> {
    return this.findOneBy({ userId, orgId, id });
  }

  async tagCounts({ userId, orgId }: Owner): Promise<{ tag: string; count: number }[]> {
    return this.query<{ tag: string; count: number }[]>(TAG_COUNTS, [userId, orgId]);
  }

  /** Adds an automation, or returns the one that was made from the same template; null for too many. */
  async add(
    owner: Owner,
    values: AutomationValues,
  ): Promise<{ automation: Automation; isNew: boolean } | null> {
    return this.manager.transaction(async (manager) => {
      await lockUser(manager, owner.userId);
      const { template } = values.work;
      const known = template && (await this.ofTemplate(manager, owner, template.id));
      if (known) {
        return { automation: known, isNew: false };
      }
      if ((await manager.countBy(Automation, { userId: owner.userId })) >= MAX_AUTOMATIONS) {
        return null;
      }
      const id = randomUUID();
      await manager.insert(Automation, { id, ...owner, ...values });
      await this.audit.append(manager, {
        action: 'automation.create',
        resourceId: id,
        ownerId: owner.userId,
      });
      return { automation: await manager.findOneByOrFail(Automation, { id }), isNew: true };
    });
  }

  /** Changes what `change` makes of the locked row; null for an unknown one. Throws as `change`. */
  async change(
    owner: Owner,
    id: string,
    members: readonly string[],
    change: (automation: Automation) => AutomationValues,
  ): Promise<Automation | null> {
    return this.manager.transaction(async (manager) => {
      const automation = await this.lock(manager, { ...owner, id });
      if (automation === null) {
        return null;
      }
      await manager.update(Automation, { id }, { ...change(automation), updatedAt: () => 'now()' });
      await this.audit.append(manager, {
        action: 'automation.update',
        resourceId: id,
        ownerId: owner.userId,
        details: { members },
      });
      return manager.findOneByOrFail(Automation, { id });
    });
  }

  /** Removes an automation with its runs; their conversations stay. False for an unknown one. */
  async removeOf(owner: Owner, id: string): Promise<boolean> {
    return this.manager.transaction(async (manager) => {
      const { affected } = await manager.delete(Automation, { ...owner, id });
      if (affected !== 1) {
        return false;
      }
      await this.audit.append(manager, {
        action: 'automation.delete',
        resourceId: id,
        ownerId: owner.userId,
      });
      return true;
    });
  }

  /** Other changes of the automation and of its runs wait until the transaction ends. */
  async lock(manager: EntityManager, which: Partial<Owner> & { id: string }): Promise<Automation | null> {
    return manager.findOne(Automation, { where: which, lock: { mode: 'pessimistic_write' } });
  }

  /** Without a transaction, since there is mostly nothing to do. */
  async existsDue(now: Date): Promise<boolean> {
    return this.existsBy({ state: 'ACTIVE', nextRunAt: LessThanOrEqual(now) });
  }

  /** All of an organization that wait for events of the source, in the order in which they are to be locked. */
  async ofSource(orgId: string, eventSource: string): Promise<Automation[]> {
    return this.find({ where: { orgId, eventSource }, order: { id: 'ASC' } });
  }

  /** Locked, without those that another replica has locked. */
  async lockDue(manager: EntityManager, now: Date, limit: number): Promise<Automation[]> {
    return manager.find(Automation, {
      where: { state: 'ACTIVE', nextRunAt: LessThanOrEqual(now) },
      order: { nextRunAt: 'ASC' },
      take: limit,
      lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
    });
  }

  async setTimes(
    manager: EntityManager,
    id: string,
    times: Partial<Pick<Automation, 'nextRunAt' | 'lastTriggeredAt'>>,
  ): Promise<void> {
    await manager.update(Automation, { id }, { ...times, updatedAt: () => 'updated_at' });
  }

  private async ofTemplate(
    manager: EntityManager,
    { userId, orgId }: Owner,
    templateId: string,
  ): Promise<Automation | null> {
    const work = Raw((column) => `${column} #>> '{template,id}' = :templateId`, { templateId });
    return manager.findOneBy(Automation, { userId, orgId, work });
  }
}
