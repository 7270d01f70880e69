import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Column, DataSource, Entity, type EntityManager, Index, Repository } from 'typeorm';
import { RowOfOwner } from '../../auth/owned.repository.js';

export const MAX_EVENTS = 10_000;
const BATCH = 1_000;

/** Those of yesterday, and those than which their organization has enough newer ones. */
const REMOVE_SURPLUS = `
  DELETE FROM automation_events WHERE id IN (
    SELECT id FROM (
      SELECT id, created_at, lead(id, $1) OVER (PARTITION BY org_id ORDER BY created_at, id) AS newer
      FROM automation_events) AS event
    WHERE created_at < now() - interval '1 day' OR newer IS NOT NULL LIMIT ${BATCH})`;

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
  @Column('text') deliveryId: string;
  /** Null where the same body may come again in good faith. */
  @Column('text', { nullable: true }) bodyDigest: string | null;
  @Column('text') eventKey: string;
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
    const { orgId, source, deliveryId, bodyDigest } = event;
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(AutomationEvent)
      .values({ ...event, payload: event.payload as object })
      .orIgnore()
      .returning('id')
      .execute();
    const sameBody = bodyDigest === null ? [] : [{ orgId, source, bodyDigest }];
    return (raw as unknown[]).length === 1
      ? null
      : manager.findOneOrFail(AutomationEvent, { where: [{ orgId, source, deliveryId }, ...sameBody] });
  }

  /** Keeps the events of a day, and so many of an organization. */
  async prune(most = MAX_EVENTS): Promise<void> {
    let removed: number;
    do {
      [, removed] = await this.query<[unknown, number]>(REMOVE_SURPLUS, [most]);
    } while (removed === BATCH);
  }
}
