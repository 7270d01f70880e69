import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Column, DataSource, Entity, type EntityManager, Index, Repository } from 'typeorm';
import type { Owner } from '../current-owner.js';
import { RowOfOwner } from '../owned.repository.js';

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

/** What an event meant for an automation. */
export interface EventOutcome {
  automation_id: string;
  run_id: string | null;
  /** Why there is no run, or why it did not begin. */
  reason: string | null;
}

/** An event that a host has sent, kept for a day. Its user is that of the webhook. */
@Entity('automation_events')
@Index('automation_events_delivery_key', ['orgId', 'source', 'deliveryId'], { unique: true })
@Index('automation_events_body_key', ['orgId', 'source', 'bodyDigest'], { unique: true })
@Index('automation_events_list_idx', ['orgId', 'createdAt', 'id'])
@Index('automation_events_created_at_idx', ['createdAt'])
@Index('automation_events_user_id_idx', ['userId'])
export class AutomationEvent extends RowOfOwner {
  @Column('text') source: string;
  /** The host's id; that of the row where it sends none. */
  @Column('text', { name: 'delivery_id' }) deliveryId: string;
  /** Null where the same body may come again in good faith. */
  @Column('text', { name: 'body_digest', nullable: true }) bodyDigest: string | null;
  @Column('text', { name: 'event_key' }) eventKey: string;
  @Column('json') payload: unknown;
  @Column('jsonb', { default: () => "'[]'" }) outcomes: EventOutcome[];
}

export type NewAutomationEvent = Omit<AutomationEvent, 'user' | 'outcomes' | 'createdAt'>;

@Injectable()
export class AutomationEventRepository extends Repository<AutomationEvent> {
  constructor(@InjectDataSource() dataSource: DataSource) {
    super(AutomationEvent, dataSource.manager);
  }

  /** Adds an event; returns the one that is known of its delivery or body in place of it. */
  async add(manager: EntityManager, event: NewAutomationEvent): Promise<AutomationEvent | null> {
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(AutomationEvent)
      .values({ ...event, payload: event.payload as object })
      .orIgnore()
      .returning('id')
      .execute();
    if ((raw as unknown[]).length === 1) {
      return null;
    }
    const { orgId, source, deliveryId, bodyDigest } = event;
    const sameBody = bodyDigest === null ? [] : [{ orgId, source, bodyDigest }];
    return manager.findOneOrFail(AutomationEvent, { where: [{ orgId, source, deliveryId }, ...sameBody] });
  }

  async last(owner: Owner, source: string): Promise<AutomationEvent | null> {
    return this.findOne({ where: { ...owner, source }, order: { createdAt: 'DESC', id: 'DESC' } });
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
