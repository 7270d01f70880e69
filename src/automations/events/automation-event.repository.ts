import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  IsNull,
  Not,
  PrimaryColumn,
  Repository,
} from 'typeorm';
import type { Owner } from '../../auth/owned.repository.js';
import { OwnedRow, UserKeyedRow } from '../../auth/user.repository.js';
import { AppConfig } from '../../config/app-config.js';
import { lockFree } from '@slipway/database/leased-rows.js';
import type { EventSubjectDto } from './event-subject.js';

const MAX_EVENTS = 10_000;
const BATCH = 1_000;
const NEWEST = 50;

/** Payloads that made no run, of one source: enough to try an automation with. */
const IDLE_PAYLOADS = 10;
/** How many digests of bodies are kept for one user, the newest first. */
const KNOWN_BODIES = 50_000;

/**
 * Those of yesterday, and those with which the newer ones of their organization are too many or too large; their bodies
 * stay known. Another process removes the rows that it has locked. What is oldest is looked for once, not for each body.
 */
const REMOVE_SURPLUS = `
  WITH removed AS (
    DELETE FROM automation_events WHERE id IN (
      SELECT id FROM automation_events WHERE id IN (
        SELECT id FROM (
          SELECT id, created_at, row_number() OVER newest AS place, sum(bytes) OVER newest AS total
          FROM automation_events WHERE $3::uuid IS NULL OR org_id = $3
          WINDOW newest AS (PARTITION BY org_id ORDER BY created_at DESC, id DESC)) AS event
        WHERE created_at < now() - interval '1 day' OR place > $1 OR ($2::bigint > 0 AND place > 1 AND total > $2)
        LIMIT ${BATCH})
      ${lockFree()})
    RETURNING id, user_id, source, body_digest, created_at
  ), known AS (
    INSERT INTO automation_event_bodies (user_id, source, digest, event_id, created_at)
    SELECT user_id, source, body_digest, id, created_at FROM removed WHERE body_digest IS NOT NULL ON CONFLICT DO NOTHING
  ), oldest AS MATERIALIZED (
    SELECT u.user_id, (SELECT created_at FROM automation_event_bodies
      WHERE user_id = u.user_id ORDER BY created_at DESC OFFSET ${KNOWN_BODIES} LIMIT 1) AS created_at
    FROM (SELECT DISTINCT user_id FROM removed) u
  ), forgotten AS (
    DELETE FROM automation_event_bodies b USING oldest o WHERE b.user_id = o.user_id AND b.created_at <= o.created_at
  )
  SELECT count(*)::int AS removed FROM removed`;

const SET_OUTCOMES = `
  UPDATE automation_events SET outcomes = $2::jsonb, bytes = octet_length(payload::text) + octet_length($2::text) WHERE id = $1`;

const BYTES = 'SELECT sum(bytes)::float8 AS bytes FROM automation_events WHERE org_id = $1';
/** The share of an organization's bytes that is kept when it exceeds them, so that not every event causes a removal. */
const KEPT_SHARE = 0.9;

const REMOVE_IDLE_PAYLOADS = `
  UPDATE automation_events SET payload = NULL, bytes = 0 WHERE id IN (
    SELECT id FROM automation_events
    WHERE org_id = $1 AND source = $2 AND payload IS NOT NULL AND outcomes = '[]'::jsonb
    ORDER BY created_at DESC OFFSET ${IDLE_PAYLOADS} ${lockFree()})`;

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
@Index('automation_events_idle_idx', ['orgId', 'source', 'createdAt'], {
  where: `(payload IS NOT NULL) AND (outcomes = '[]'::jsonb)`,
})
@Index('automation_events_created_at_idx', ['createdAt'])
@Index('automation_events_user_id_idx', ['userId'])
export class AutomationEvent extends OwnedRow {
  @PrimaryColumn('uuid') id: string;
  @Column('uuid') orgId: string;
  @CreateDateColumn({ type: 'timestamptz' }) createdAt: Date;
  @Column('text') source: string;
  /** The host's id; that of the row where it sends none. */
  @Column('text') deliveryId: string;
  /** Digest of the signed body; null in rows of earlier versions. */
  @Column('text', { nullable: true }) bodyDigest: string | null;
  @Column('text') eventKey: string;
  /** What the event is about; null in rows of earlier versions. */
  @Column('jsonb', { nullable: true }) subject: EventSubjectDto | null;
  /** Null: it made no run, and newer ones of its source did not either. */
  @Column('json', { nullable: true }) payload: unknown;
  /** Those with runs: others are found again on request. */
  @Column('jsonb', { default: () => "'[]'" }) outcomes: EventOutcome[];
  /** Size of payload and outcomes. */
  @Column('integer', { default: 0 }) bytes: number;
}

/** What was signed once is signed for ever: it tells that an event comes again after its row has gone. */
@Entity('automation_event_bodies')
@Index('automation_event_bodies_newest_idx', ['userId', 'createdAt'])
export class KnownBody extends UserKeyedRow {
  @PrimaryColumn('text') source: string;
  @PrimaryColumn('text') digest: string;
  @Column('uuid') eventId: string;
  @Column('timestamptz') createdAt: Date;
}

export type PastEvent = Pick<AutomationEvent, 'id' | 'source' | 'eventKey' | 'subject' | 'createdAt'>;

export type KnownEvent = Pick<AutomationEvent, 'id' | 'outcomes'>;

export type NewAutomationEvent = Omit<AutomationEvent, 'user' | 'outcomes' | 'bytes' | 'createdAt'>;

@Injectable()
export class AutomationEventRepository extends Repository<AutomationEvent> {
  constructor(
    dataSource: DataSource,
    private readonly config: AppConfig,
  ) {
    super(AutomationEvent, dataSource.manager);
  }

  /** Returns the newest events that still have a payload; the payloads are not read. */
  async newest(owner: Owner, source: string | undefined): Promise<PastEvent[]> {
    return this.find({
      select: { id: true, source: true, eventKey: true, subject: true, createdAt: true },
      where: { ...owner, payload: Not(IsNull()), ...(source !== undefined && { source }) },
      order: { createdAt: 'DESC', id: 'DESC' },
      take: NEWEST,
    });
  }

  /** Adds an event; returns the one that is known of its delivery or body in place of it. */
  async add(manager: EntityManager, event: NewAutomationEvent): Promise<KnownEvent | null> {
    const { id, userId, orgId, source, deliveryId, bodyDigest } = event;
    const digest = bodyDigest ?? '';
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(AutomationEvent)
      .values({ ...event, payload: event.payload as object })
      .orIgnore()
      .returning('id')
      .execute();
    if ((raw as unknown[]).length === 0) {
      const select = { id: true, outcomes: true } as const;
      const where = [{ deliveryId }, { bodyDigest: digest }].map((same) => ({ orgId, source, ...same }));
      return manager.findOneOrFail(AutomationEvent, { select, where });
    }
    // Looked up last: of one that is being removed, the row above waited for that.
    const known = await manager.findOneBy(KnownBody, { userId, source, digest });
    if (known !== null) {
      await manager.delete(AutomationEvent, { id });
    }
    return known && { id: known.eventId, outcomes: [] };
  }

  /** Ends the storing of an event: keeps what it made, and removes what its organization has too much of. */
  async settle(manager: EntityManager, event: NewAutomationEvent, made: EventOutcome[]): Promise<void> {
    const { id, orgId, source } = event;
    await manager.query(SET_OUTCOMES, [id, JSON.stringify(made)]);
    if (made.length === 0) {
      await manager.query(REMOVE_IDLE_PAYLOADS, [orgId, source]);
    }
    const { automationEventBytes: most } = this.config.database;
    const [{ bytes }] = await manager.query<[{ bytes: number }]>(BYTES, [orgId]);
    if (most > 0 && bytes > most) {
      await manager.query(REMOVE_SURPLUS, [MAX_EVENTS, Math.floor(most * KEPT_SHARE), orgId]);
    }
  }

  /** Keeps the events of a day, and so many of an organization. */
  async prune(most = MAX_EVENTS): Promise<void> {
    const { automationEventBytes } = this.config.database;
    let removed: number;
    do {
      const values = [most, automationEventBytes, null];
      [{ removed }] = await this.query<[{ removed: number }]>(REMOVE_SURPLUS, values);
    } while (removed === BATCH);
  }
}
