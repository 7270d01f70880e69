import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, QueryFailedError } from 'typeorm';
import type { AgentEvent } from '../../../agent-protocol/events.js';
import { jsonText } from '../../../common/json-access.js';
import { NamedStatement } from '../../../database/named-statement.js';
import { FollowedConversationRepository, type LogProgress } from '../followed-conversation.repository.js';
import { type ObservedState, stateInEvents } from './observed-state.js';
import type { StorableEvent } from './storable-event.js';

/** Payload: the id of a conversation whose events were stored. */
export const EVENTS_CHANNEL = 'conversation_events';

const LOCK_LOG = 'SELECT event_count FROM followed_conversations WHERE id = $1 FOR UPDATE';

const FIND_KNOWN =
  'SELECT event_id FROM conversation_events WHERE conversation_id = $1 AND event_id = ANY ($2::text[])';

/** One statement, because somebody waits for the event during each round trip to the database. */
const INSERT = `
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

/**
 * The same for events that go on where the log was read to, without a transaction around it: the update takes the row's lock and
 * finds no row when somebody else has appended meanwhile, and the unique key of event ids refuses what is known.
 */
const APPEND_NEXT = `
  WITH advanced AS (
    UPDATE followed_conversations
    SET event_count = event_count + cardinality($3::text[]), last_event_id = $7, updated_at = now()
    WHERE id = $1 AND event_count = $2 AND last_event_id IS NOT DISTINCT FROM $8
    RETURNING id),
  inserted AS (
    INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
    SELECT advanced.id, $2::integer + e.position, e.event_id, e.kind, e.occurred_at, e.body::json
    FROM advanced, unnest($3::text[], $4::text[], $5::timestamptz[], $6::text[])
      WITH ORDINALITY AS e (event_id, kind, occurred_at, body, position))
  SELECT pg_notify('${EVENTS_CHANNEL}', id::text) FROM advanced`;

const UNIQUE_VIOLATION = '23505';

const ADVANCE = 'UPDATE followed_conversations SET last_event_id = $2 WHERE id = $1';

/** What a conversation gained by an append. */
interface AppendedEvents {
  /** Without those that were known. */
  events: AgentEvent[];
  /** What the events changed in its state; null: nothing. */
  state: ObservedState | null;
}

/** Writes rows of events. Reading is the business of `EventQueries`. */
@Injectable()
export class EventRepository {
  private readonly appendNext = new NamedStatement<{ pg_notify: string }>('event_append_next', APPEND_NEXT);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly conversations: FollowedConversationRepository,
  ) {}

  /**
   * Appends consecutive events of a log, and the state that they tell of, in one transaction. Known events are left
   * out. The log's row is locked meanwhile, so that numbers have no gaps whoever else appends.
   *
   * @param after where the log is believed to end; events that go on there need one statement instead of a transaction
   * @returns null when the conversation was removed
   */
  async append(
    conversationId: string,
    given: readonly StorableEvent[],
    after: LogProgress | null,
  ): Promise<AppendedEvents | null> {
    if (after !== null && (await this.appendAfter(conversationId, given, after))) {
      return { events: given.map(({ event }) => event), state: null };
    }
    return this.dataSource.transaction(async (manager) => {
      const [log] = await manager.query<{ event_count: number }[]>(LOCK_LOG, [conversationId]);
      if (!log) {
        return null;
      }
      const lastId = given.at(-1)?.id;
      const fresh = await this.withoutKnown(manager, conversationId, given);
      if (fresh.length === 0) {
        await manager.query(ADVANCE, [conversationId, lastId]);
        return { events: [], state: null };
      }
      await manager.query(INSERT, insertValues(conversationId, log.event_count, fresh, lastId));
      const events = fresh.map(({ event }) => event);
      const state = await this.conversations.updateState(conversationId, stateInEvents(events), manager);
      return { events, state };
    });
  }

  /** @returns false when that is not where the log ends, or the events tell of a new state: nothing was stored then */
  private async appendAfter(
    conversationId: string,
    given: readonly StorableEvent[],
    { eventCount, lastEventId }: LogProgress,
  ): Promise<boolean> {
    if (Object.keys(stateInEvents(given.map(({ event }) => event))).length > 0) {
      return false;
    }
    const values = insertValues(conversationId, eventCount, given, given.at(-1)?.id);
    try {
      return (await this.appendNext.run(this.dataSource, [...values, lastEventId])).length > 0;
    } catch (error) {
      if (isUniqueViolation(error)) {
        return false;
      }
      throw error;
    }
  }

  private async withoutKnown(
    manager: EntityManager,
    conversationId: string,
    given: readonly StorableEvent[],
  ): Promise<StorableEvent[]> {
    const ids = given.map(({ id }) => id);
    const known = await manager.query<{ event_id: string }[]>(FIND_KNOWN, [conversationId, ids]);
    const seen = new Set(known.map(({ event_id: id }) => id));
    return given.filter(({ id }) => !seen.has(id) && seen.add(id));
  }
}

/** The parameters $1 to $7 of both statements. */
function insertValues(
  conversationId: string,
  eventCount: number,
  events: readonly StorableEvent[],
  lastId: string | undefined,
): unknown[] {
  return [
    conversationId,
    eventCount,
    events.map(({ id }) => id),
    events.map(({ kind }) => kind),
    events.map(({ occurredAt }) => occurredAt),
    events.map(({ body }) => body),
    lastId,
  ];
}

function isUniqueViolation(error: unknown): boolean {
  return error instanceof QueryFailedError && jsonText(error.driverError, 'code') === UNIQUE_VIOLATION;
}
