import { Injectable } from '@nestjs/common';
import {
  Column,
  CreateDateColumn,
  DataSource,
  Entity,
  type EntityManager,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryColumn,
} from 'typeorm';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { lockFree } from '@slipway/database/leased-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { FollowedConversation } from '../followed-conversation.entity.js';
import {
  FollowedConversationRepository,
  type LogProgress,
  NO_ROOM,
} from '../followed-conversation.repository.js';
import type { StoredEvent } from './event.queries.js';
import { type ObservedState, stateInEvents } from './observed-state.js';
import { type StorableEvent, toFullNotice } from './storable-event.js';

/** An event as its agent server wrote it. TypeORM does not know that the table is partitioned. */
@Entity('conversation_events', { synchronize: false })
@Index('conversation_events_conversation_id_event_id_key', ['conversationId', 'eventId'], { unique: true })
export class ConversationEvent {
  @PrimaryColumn('uuid') conversationId: string;

  @ManyToOne(() => FollowedConversation, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'conversation_id' })
  conversation?: FollowedConversation;

  /** 1, 2, 3 … within the conversation, in the order of the agent server's log. */
  @PrimaryColumn('integer') seq: number;
  @Column('text') eventId: string;
  @Column('text') kind: string;
  @Column('timestamptz') occurredAt: Date;

  /** The database's clock; it determines the partition. */
  @CreateDateColumn({ type: 'timestamptz' }) storedAt: Date;

  /** `json` rather than `jsonb` keeps the order of members. */
  @Column('json') body: AgentEvent;
}

/** Payload: the id of a conversation. */
export const EVENTS_CHANNEL = 'conversation_events';

const LOCK_LOG = `
  SELECT event_count, user_id, event_bytes::float8 AS bytes, is_full AS "isFull", opened_at - interval '1 day' AS since
  FROM followed_conversations WHERE id = $1 FOR UPDATE`;

/** Unique keys cover one partition only, so earlier partitions are searched while the log is locked. */
const FIND_KNOWN = `
  SELECT event_id FROM conversation_events WHERE conversation_id = $1 AND event_id = ANY ($2::text[]) AND stored_at >= $3`;

const TOLD_STATUS = `
  SELECT FROM conversation_events
  WHERE conversation_id = $1 AND seq > $2 AND stored_at >= $3
    AND kind = 'ConversationStateUpdateEvent'
    AND $4 IN (body ->> 'value', body -> 'value' ->> 'execution_status')
  LIMIT 1`;

const FIND_FIRST = `
  SELECT seq, occurred_at FROM conversation_events WHERE conversation_id = $1 AND stored_at >= $2 ORDER BY seq LIMIT 1`;

/** One statement, because clients wait for each round trip to the database. */
const INSERT = `
  WITH inserted AS (
    INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
    SELECT $1::uuid, $2::integer + e.position, e.event_id, e.kind, e.occurred_at, e.body::json
    FROM unnest($3::text[], $4::text[], $5::timestamptz[], $6::text[])
      WITH ORDINALITY AS e (event_id, kind, occurred_at, body, position)),
  advanced AS (
    UPDATE followed_conversations
    SET event_count = event_count + cardinality($3::text[]), last_event_id = $7, event_bytes = event_bytes + $8,
      is_full = $9, updated_at = now()
    WHERE id = $1)
  SELECT pg_notify('${EVENTS_CHANNEL}', $1::text)`;

/** An event that no agent server has: how far its log was read stays as it is. A full log takes none. */
const NOTE = `
  WITH log AS MATERIALIZED (
    SELECT id FROM followed_conversations WHERE id = ANY ($1::uuid[]) AND NOT is_full ORDER BY id FOR UPDATE),
  advanced AS (
    UPDATE followed_conversations f
    SET event_count = f.event_count + 1, event_bytes = f.event_bytes + octet_length($5::text), updated_at = now()
    FROM log WHERE f.id = log.id
    RETURNING f.id, f.event_count)
  INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
  SELECT id, event_count, $2, $3, $4, $5::json FROM advanced
  RETURNING pg_notify('${EVENTS_CHANNEL}', conversation_id::text)`;

const ADVANCE = 'UPDATE followed_conversations SET last_event_id = $2 WHERE id = $1';

/** Skips locked rows, to neither wait nor deadlock, and conversations that already have one of the events. */
const APPEND_MANY = `
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::integer[], $5::text[], $13::integer[])
      AS g (id, event_count, last_event_id, added, next_event_id, bytes)),
  known AS MATERIALIZED (
    SELECT e.id
    FROM unnest($6::uuid[], $8::text[]) AS e (id, event_id) CROSS JOIN LATERAL (
      SELECT FROM conversation_events c WHERE c.conversation_id = e.id AND c.event_id = e.event_id AND c.stored_at >= $12 LIMIT 1) AS found),
  free AS MATERIALIZED (
    SELECT f.id, g.added, g.next_event_id, g.bytes
    FROM given g JOIN followed_conversations f ON f.id = g.id
    WHERE f.event_count = g.event_count AND f.last_event_id IS NOT DISTINCT FROM g.last_event_id
      AND f.id NOT IN (SELECT id FROM known)
    ${lockFree('f')}),
  advanced AS (
    UPDATE followed_conversations f
    SET event_count = f.event_count + free.added, last_event_id = free.next_event_id,
      event_bytes = f.event_bytes + free.bytes, updated_at = now()
    FROM free
    WHERE f.id = free.id
    RETURNING f.id),
  inserted AS (
    INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
    SELECT e.id, e.seq, e.event_id, e.kind, e.occurred_at, e.body::json
    FROM unnest($6::uuid[], $7::integer[], $8::text[], $9::text[], $10::timestamptz[], $11::text[])
      AS e (id, seq, event_id, kind, occurred_at, body)
    WHERE e.id IN (SELECT id FROM advanced))
  SELECT id, pg_notify('${EVENTS_CHANNEL}', id::text) FROM advanced`;

/** Events of a log that one statement counts, while appends to it wait. */
const COUNTED_AT_A_TIME = 200;

/** From the newest on, since retention drops the oldest. Skips logs that are being appended to. */
const COUNT_SOME = `
  WITH log AS (
    SELECT id, uncounted_events AS last, opened_at - interval '1 day' AS since FROM followed_conversations
    WHERE uncounted_events > 0 ORDER BY id LIMIT 1 ${lockFree()})
  UPDATE followed_conversations f
  SET uncounted_events = greatest(0, log.last - ${COUNTED_AT_A_TIME}), event_bytes = f.event_bytes + (
    SELECT coalesce(sum(octet_length(e.body::text)), 0) FROM conversation_events e
    WHERE e.conversation_id = log.id AND e.seq <= log.last AND e.seq > log.last - ${COUNTED_AT_A_TIME}
      AND e.stored_at >= log.since)
  FROM log WHERE f.id = log.id RETURNING f.id`;

export interface AppendedEvents {
  progress: LogProgress;
  events: AgentEvent[];
  rows: StoredEvent[];
  state: ObservedState | null;
}

/** The next events of a log; none of them changes the state. */
export interface NextEvents {
  conversationId: string;
  events: readonly StorableEvent[];
  after: LogProgress;
}

export function bytesOf(events: readonly StorableEvent[]): number {
  return events.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
}

/** Whether there may be no room for so many bytes more. */
export function needsLook({ bytes, isFull }: Pick<LogProgress, 'bytes' | 'isFull'>, added: number): boolean {
  return isFull || bytes === 0 || Math.floor((bytes + added) / NO_ROOM) > Math.floor(bytes / NO_ROOM);
}

interface LockedLog extends Pick<LogProgress, 'bytes' | 'isFull'> {
  event_count: number;
  user_id: string;
  since: Date;
}

@Injectable()
export class EventRepository {
  private readonly appendEach = new NamedStatement<{ id: string }>('event_append_many', APPEND_MANY);

  constructor(
    private readonly dataSource: DataSource,
    private readonly conversations: FollowedConversationRepository,
  ) {}

  /** Adds an event of the service's own to logs, in the caller's transaction. @returns to how many */
  async note(
    manager: EntityManager,
    conversationIds: readonly string[],
    event: StorableEvent,
  ): Promise<number> {
    const { id, kind, occurredAt, body } = event;
    const rows = await manager.query<unknown[]>(NOTE, [conversationIds, id, kind, occurredAt, body]);
    return rows.length;
  }

  /** Counts a part of what was stored before bytes were counted. @returns false where nothing is left, or others count it */
  async countSome(): Promise<boolean> {
    const [, counted] = await this.dataSource.query<[unknown, number]>(COUNT_SOME);
    return counted > 0;
  }

  /** Appends the new ones of consecutive events, and the state that they report; null for a removed conversation. */
  async append(conversationId: string, given: readonly StorableEvent[]): Promise<AppendedEvents | null> {
    return this.dataSource.transaction(async (manager) => {
      const [log] = await manager.query<LockedLog[]>(LOCK_LOG, [conversationId]);
      if (!log) {
        return null;
      }
      const { event_count: before, since } = log;
      const lastEventId = given.at(-1)?.id ?? null;
      const fresh = await this.withoutKnown(manager, conversationId, given, log);
      const { stored, isFull } = await this.fitting(manager, conversationId, fresh, log);
      const added = bytesOf(stored);
      const size = { bytes: log.bytes + added, isFull };
      const progress = { eventCount: before + stored.length, lastEventId, since, ...size };
      if (stored.length === 0) {
        await manager.query(ADVANCE, [conversationId, lastEventId]);
      } else {
        await manager.query(INSERT, [
          conversationId,
          before,
          stored.map(({ id }) => id),
          stored.map(({ kind }) => kind),
          stored.map(({ occurredAt }) => occurredAt),
          stored.map(({ body }) => body),
          lastEventId,
          added,
          isFull,
        ]);
      }
      const told = stateInEvents(fresh.map(({ event }) => event));
      const state = await this.conversations.updateState(conversationId, told, manager);
      const events = stored.map(({ event }) => event);
      return { progress, events, rows: storedRows(stored, before), state };
    });
  }

  /**
   * Appends to many logs, and returns the conversations that were stored. Others may be locked, may have grown, or may
   * have one of the events; use `append` for them.
   */
  async appendMany(logs: readonly NextEvents[]): Promise<Set<string>> {
    const rows = await this.appendEach.run(this.dataSource, manyValues(logs));
    return new Set(rows.map(({ id }) => id));
  }

  /** Stores a status unless the log has told of it since `position`. Returns the members that changed, or null. */
  async expectStatus(
    conversationId: string,
    executionStatus: ConversationStatus,
    position: number,
  ): Promise<ObservedState | null> {
    return this.dataSource.transaction(async (manager) => {
      const [log] = await manager.query<LockedLog[]>(LOCK_LOG, [conversationId]);
      const told =
        log &&
        (await manager.query<unknown[]>(TOLD_STATUS, [conversationId, position, log.since, executionStatus]));
      return told?.length === 0
        ? this.conversations.updateState(conversationId, { executionStatus, error: null }, manager)
        : null;
    });
  }

  /** All or, where there is no room, once a notice in their place, and nothing from then on. */
  private async fitting(
    manager: EntityManager,
    conversationId: string,
    fresh: readonly StorableEvent[],
    log: LockedLog,
  ): Promise<{ stored: readonly StorableEvent[]; isFull: boolean }> {
    const [first] = fresh;
    const added = bytesOf(fresh);
    if (first === undefined || !needsLook(log, added)) {
      return { stored: fresh, isFull: log.isFull };
    }
    const { ofUser, ofConversation } = await this.conversations.room(log.user_id, conversationId, manager);
    const isFull = added + (log.isFull ? NO_ROOM : 0) > Math.min(ofUser, ofConversation);
    return { stored: !isFull ? fresh : log.isFull ? [] : [toFullNotice(first)], isFull };
  }

  private async withoutKnown(
    manager: EntityManager,
    conversationId: string,
    given: readonly StorableEvent[],
    log: LockedLog,
  ): Promise<StorableEvent[]> {
    const ids = given.map(({ id }) => id);
    const known = await manager.query<{ event_id: string }[]>(FIND_KNOWN, [conversationId, ids, log.since]);
    const seen = new Set(known.map(({ event_id: id }) => id));
    const fresh = given.filter(({ id }) => !seen.has(id) && seen.add(id));
    return log.event_count === 0 || fresh.length === 0
      ? fresh
      : await this.withoutDropped(manager, conversationId, fresh, log.since);
  }

  /** A truncated log is read again from its beginning, so events that retention removed come again. */
  private async withoutDropped(
    manager: EntityManager,
    conversationId: string,
    fresh: readonly StorableEvent[],
    since: Date,
  ): Promise<StorableEvent[]> {
    const rows = await manager.query<{ seq: number; occurred_at: Date }[]>(FIND_FIRST, [
      conversationId,
      since,
    ]);
    const [first] = rows;
    return fresh.filter(
      ({ occurredAt }) =>
        first === undefined || first.seq === 1 || Date.parse(occurredAt) >= first.occurred_at.getTime(),
    );
  }
}

function manyValues(logs: readonly NextEvents[]): unknown[] {
  const events = logs.flatMap(({ conversationId, events: given, after }) =>
    given.map((event, index) => ({ ...event, conversationId, seq: after.eventCount + index + 1 })),
  );
  return [
    logs.map(({ conversationId }) => conversationId),
    logs.map(({ after }) => after.eventCount),
    logs.map(({ after }) => after.lastEventId),
    logs.map(({ events: given }) => given.length),
    logs.map(({ events: given }) => given.at(-1)?.id),
    events.map(({ conversationId }) => conversationId),
    events.map(({ seq }) => seq),
    events.map(({ id }) => id),
    events.map(({ kind }) => kind),
    events.map(({ occurredAt }) => occurredAt),
    events.map(({ body }) => body),
    new Date(Math.min(...logs.map(({ after }) => after.since.getTime()))),
    logs.map(({ events: given }) => bytesOf(given)),
  ];
}

/** `eventCount` is the number of the event before the first one. */
export function storedRows(events: readonly StorableEvent[], eventCount: number): StoredEvent[] {
  return events.map(({ kind, body }, index) => ({ seq: eventCount + index + 1, kind, body }));
}
