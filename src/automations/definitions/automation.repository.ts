import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { ArrayContains, DataSource, type EntityManager, JsonContains, LessThanOrEqual } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { OwnedRepository } from '../../auth/owned.repository.js';
import type { Owner, RowOfOwner } from '../current-owner.js';
import { type ListAutomationsQueryDto, newestFirst } from './automation.dto.js';
import { Automation } from './automation.entity.js';

export const MAX_AUTOMATIONS = 100;

export type AutomationValues = Omit<Automation, keyof RowOfOwner | 'lastTriggeredAt' | 'updatedAt'>;

const TAG_COUNTS = `
  SELECT tag, count(*)::int AS count FROM automations CROSS JOIN unnest(tags) AS tag
  WHERE user_id = $1 AND org_id = $2
  GROUP BY tag ORDER BY count DESC, tag`;

@Injectable()
export class AutomationRepository extends OwnedRepository<Automation> {
  constructor(@InjectDataSource() dataSource: DataSource, audit: AuditRepository) {
    const noun = 'automation';
    super(Automation, dataSource, audit, { kind: noun, noun, most: MAX_AUTOMATIONS });
  }

  async page(owner: Owner, { tag, ...place }: ListAutomationsQueryDto): Promise<[Automation[], number]> {
    const where = tag === undefined ? owner : { ...owner, tags: ArrayContains([tag]) };
    return this.findAndCount({ where, ...newestFirst(place) });
  }

  async tagCounts({ userId, orgId }: Owner): Promise<{ tag: string; count: number }[]> {
    return this.query<{ tag: string; count: number }[]>(TAG_COUNTS, [userId, orgId]);
  }

  /** Adds an automation, or returns the one that was made from the same template. Throws as `addOf`. */
  async add(owner: Owner, values: AutomationValues): Promise<{ row: Automation; isNew: boolean }> {
    const id = values.work.template?.id;
    const work = JsonContains({ template: { id } });
    return this.addOf(owner, randomUUID(), values, async (manager) =>
      id === undefined ? null : manager.findOneBy(Automation, { ...owner, work }),
    );
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
}
