import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import type { Owner } from '../current-owner.js';
import { AutomationEvent, type EventOutcome } from './automation-event.entity.js';

/** Of an organization. */
export const MAX_EVENTS = 10_000;
const KEEP = `interval '1 day'`;
const BATCH = 1_000;

const REMOVE_OLD = `
  DELETE FROM automation_events WHERE id IN (
    SELECT id FROM automation_events WHERE created_at < now() - ${KEEP} ORDER BY created_at LIMIT ${BATCH})`;

const FULL = 'SELECT org_id FROM automation_events GROUP BY org_id HAVING count(*) > $1';

const REMOVE_SURPLUS = `
  DELETE FROM automation_events WHERE id IN (
    SELECT id FROM automation_events WHERE org_id = $1
    ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT ${BATCH})`;

export type NewAutomationEvent = Omit<AutomationEvent, 'user' | 'outcomes' | 'createdAt'>;

@Injectable()
export class AutomationEventRepository extends Repository<AutomationEvent> {
  constructor(@InjectDataSource() dataSource: DataSource) {
    super(AutomationEvent, dataSource.manager);
  }

  /** False for a delivery that is known. */
  async add(manager: EntityManager, event: NewAutomationEvent): Promise<boolean> {
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(AutomationEvent)
      .values({ ...event, payload: event.payload as object })
      .orIgnore()
      .returning('id')
      .execute();
    return (raw as unknown[]).length === 1;
  }

  async setOutcomes(manager: EntityManager, id: string, outcomes: EventOutcome[]): Promise<void> {
    await manager.update(AutomationEvent, { id }, { outcomes });
  }

  async findOf({ userId, orgId }: Owner, id: string): Promise<AutomationEvent | null> {
    return this.findOneBy({ userId, orgId, id });
  }

  async last({ userId, orgId }: Owner, source: string): Promise<AutomationEvent | null> {
    return this.findOne({ where: { userId, orgId, source }, order: { createdAt: 'DESC', id: 'DESC' } });
  }

  /** Removes events of yesterday, and those beyond {@link MAX_EVENTS} of an organization. */
  async prune(most = MAX_EVENTS): Promise<void> {
    await this.repeat(REMOVE_OLD, []);
    const full = await this.query<{ org_id: string }[]>(FULL, [most]);
    for (const { org_id: orgId } of full) {
      await this.repeat(REMOVE_SURPLUS, [orgId, most]);
    }
  }

  private async repeat(statement: string, values: unknown[]): Promise<void> {
    let removed: number;
    do {
      [, removed] = await this.query<[unknown, number]>(statement, values);
    } while (removed === BATCH);
  }
}
