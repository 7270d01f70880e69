import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import type { AgentEvent } from '../../../agent-protocol/events.js';
import { Clock } from '../../../common/clock.js';
import { isDatabaseAway } from '../../../common/errors/database-failure.js';
import { EVENTS_CHANNEL } from '../conversation-logs.js';
import { ConversationEvents } from '../event-listeners.js';
import { type ObservedState, stateInEvents } from './observed-state.js';
import { type StorableEvent, toStandIn, toStorable } from './storable-event.js';

/** Bytes of events in one transaction, unless one event alone has more. */
const CHUNK_BYTES = 8 * 1024 * 1024;

const LOCK = 'SELECT event_count FROM followed_conversations WHERE id = $1 FOR UPDATE';

const KNOWN =
  'SELECT event_id FROM conversation_events WHERE conversation_id = $1 AND event_id = ANY ($2::text[])';

/** In one statement: each way to the database is time in which somebody waits for the event. */
const WRITE = `
  WITH inserted AS (
    INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
    SELECT $1::uuid, $2::integer + e.position, e.event_id, e.kind, e.occurred_at, e.body::json
    FROM unnest($3::text[], $4::text[], $5::timestamptz[], $6::text[])
      WITH ORDINALITY AS e (event_id, kind, occurred_at, body, position)),
  advanced AS (
    UPDATE followed_conversations
    SET event_count = event_count + cardinality($3::text[]), last_event_id = $7, updated_at = now()
    WHERE id = $1)
  SELECT pg_notify('${EVENTS_CHANNEL}', $1::text)`;

const ADVANCE = 'UPDATE followed_conversations SET last_event_id = $2 WHERE id = $1';

/** Writes events of agent servers' logs down. Whoever calls it, and however often, each event is stored once. */
@Injectable()
export class EventStore {
  private readonly logger = new Logger(EventStore.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly listeners: ConversationEvents,
    private readonly clock: Clock,
  ) {}

  /**
   * Stores consecutive events of a log, those that are known already left out. The followed row is locked meanwhile,
   * so that numbers have no gaps whoever else stores.
   *
   * @returns false when the conversation is gone
   */
  async store(conversationId: string, events: readonly AgentEvent[]): Promise<boolean> {
    const now = new Date(this.clock.now());
    const storable = events.map((event) => toStorable(event, now));
    for (const chunk of inChunks(storable, ({ body }) => body.length, CHUNK_BYTES)) {
      if (!(await this.storeChunk(conversationId, chunk))) {
        return false;
      }
    }
    return true;
  }

  /** Writes what was seen of a conversation's state, where it differs from what is known. */
  async observe(conversationId: string, state: ObservedState): Promise<void> {
    const changed = await changeState(this.dataSource.manager, conversationId, state);
    if (changed) {
      this.listeners.emitState(conversationId, changed);
    }
  }

  private async storeChunk(conversationId: string, chunk: StorableEvent[]): Promise<boolean> {
    try {
      return await this.commit(conversationId, chunk);
    } catch (error) {
      if (isDatabaseAway(error)) {
        throw error;
      }
      return await this.storeOneByOne(conversationId, chunk, error);
    }
  }

  /** One event that PostgreSQL refuses must not hold up all that come after it. */
  private async storeOneByOne(
    conversationId: string,
    [first, ...others]: StorableEvent[],
    refusal: unknown,
  ): Promise<boolean> {
    if (first === undefined) {
      return true;
    }
    if (others.length > 0) {
      for (const entry of [first, ...others]) {
        if (!(await this.storeChunk(conversationId, [entry]))) {
          return false;
        }
      }
      return true;
    }
    this.logger.warn('an event could not be stored whole', {
      conversationId,
      eventId: first.id,
      error: refusal instanceof Error ? refusal.name : String(refusal),
    });
    return await this.commit(conversationId, [toStandIn(first.event, new Date(this.clock.now()))]);
  }

  private async commit(conversationId: string, given: readonly StorableEvent[]): Promise<boolean> {
    const result = await this.dataSource.transaction((manager) => this.write(manager, conversationId, given));
    if (result === null) {
      return false;
    }
    if (result.fresh.length > 0) {
      this.listeners.emitStored(conversationId, result.fresh);
    }
    if (result.changed) {
      this.listeners.emitState(conversationId, result.changed);
    }
    return true;
  }

  /** @returns null when the conversation is gone */
  private async write(
    manager: EntityManager,
    conversationId: string,
    given: readonly StorableEvent[],
  ): Promise<{ fresh: AgentEvent[]; changed: ObservedState | null } | null> {
    const [row] = await manager.query<{ event_count: number }[]>(LOCK, [conversationId]);
    if (!row) {
      return null;
    }
    const ids = given.map(({ id }) => id);
    const known = await manager.query<{ event_id: string }[]>(KNOWN, [conversationId, ids]);
    const seen = new Set(known.map(({ event_id: id }) => id));
    const fresh = given.filter(({ id }) => !seen.has(id) && seen.add(id));
    if (fresh.length === 0) {
      await manager.query(ADVANCE, [conversationId, ids.at(-1)]);
      return { fresh: [], changed: null };
    }
    await manager.query(WRITE, [
      conversationId,
      row.event_count,
      fresh.map(({ id }) => id),
      fresh.map(({ kind }) => kind),
      fresh.map(({ occurredAt }) => occurredAt),
      fresh.map(({ body }) => body),
      ids.at(-1),
    ]);
    const events = fresh.map(({ event }) => event);
    return { fresh: events, changed: await changeState(manager, conversationId, stateInEvents(events)) };
  }
}

/** Members that were not seen stay; a row that would not change is not written. */
const CHANGE = `
  UPDATE followed_conversations f
  SET execution_status = coalesce($2, f.execution_status),
      metrics = coalesce($3::jsonb, f.metrics),
      title = coalesce($4, f.title),
      updated_at = now()
  FROM (SELECT id, execution_status, metrics, title FROM followed_conversations WHERE id = $1 FOR UPDATE) AS old
  WHERE f.id = old.id
    AND (coalesce($2, old.execution_status) IS DISTINCT FROM old.execution_status
      OR coalesce($3::jsonb, old.metrics) IS DISTINCT FROM old.metrics
      OR coalesce($4, old.title) IS DISTINCT FROM old.title)
  RETURNING f.execution_status IS DISTINCT FROM old.execution_status AS status_changed,
    f.metrics IS DISTINCT FROM old.metrics AS metrics_changed,
    f.title IS DISTINCT FROM old.title AS title_changed`;

interface Changes {
  status_changed: boolean;
  metrics_changed: boolean;
  title_changed: boolean;
}

/** Writes what was observed of a conversation's state; answers the part that is news, null when nothing is. */
async function changeState(
  manager: EntityManager,
  conversationId: string,
  { executionStatus, metrics, title }: ObservedState,
): Promise<ObservedState | null> {
  if (executionStatus === undefined && metrics === undefined && title === undefined) {
    return null;
  }
  const [rows] = await manager.query<[Changes[], number]>(CHANGE, [
    conversationId,
    executionStatus ?? null,
    metrics === undefined ? null : JSON.stringify(metrics),
    title ?? null,
  ]);
  const [changes] = rows;
  return changes
    ? {
        ...(changes.status_changed && executionStatus !== undefined && { executionStatus }),
        ...(changes.metrics_changed && metrics !== undefined && { metrics }),
        ...(changes.title_changed && title !== undefined && { title }),
      }
    : null;
}

/** Cuts a list into runs whose sizes add up to at most `most`; an element that is larger stands alone. */
export function inChunks<T>(elements: readonly T[], sizeOf: (element: T) => number, most: number): T[][] {
  const chunks: T[][] = [];
  let size = Infinity;
  for (const element of elements) {
    const added = sizeOf(element);
    const last = chunks.at(-1);
    if (last === undefined || size + added > most) {
      chunks.push([element]);
      size = added;
    } else {
      last.push(element);
      size += added;
    }
  }
  return chunks;
}
