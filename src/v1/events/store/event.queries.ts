import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { requireAll } from '@slipway/api/pagination/page.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import { endAtBytes, type Measured } from '@slipway/database/page-bytes.js';
import type { StoredLog } from '../followed-conversation.repository.js';

export interface StoredEvent {
  seq: number;
  kind: string;
  /** JSON text. */
  body: string;
}

export type ReadEvent = StoredEvent & Measured;

export interface EventFilter {
  kind?: string | undefined;
  from?: string | undefined;
  before?: string | undefined;
}

const FILTER = `
  conversation_id = $1
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::timestamptz IS NULL OR occurred_at >= $3)
  AND ($4::timestamptz IS NULL OR occurred_at < $4)
  AND stored_at >= $5 AND stored_at < $6`;

/** Unnamed statements, so that PostgreSQL plans each for its filters. */
const SEARCH_ASCENDING = bounded(`${FILTER} AND seq > $7 ORDER BY seq LIMIT $8`);
const SEARCH_DESCENDING = bounded(`${FILTER} AND seq < $7 ORDER BY seq DESC LIMIT $8`);
const COUNT = `SELECT count(*)::integer AS count FROM conversation_events WHERE ${FILTER}`;

/** Retention may have removed the first events. */
const FIRST_SEQ = `
  SELECT seq FROM conversation_events WHERE conversation_id = $1 AND stored_at >= $2 AND stored_at < $3 ORDER BY seq LIMIT 1`;

const FIRST_USER_MESSAGE = `
  SELECT body FROM conversation_events
  WHERE conversation_id = $1 AND kind = 'MessageEvent'
    AND (body->>'source' = 'user' OR body->>'sender_conversation_id' IS NOT NULL)
  ORDER BY seq LIMIT 1`;

const LAST_EVENTS = 50;

/** What has just ended was stored today; an event near the end of the log tells of it, unless its server logs no status. */
const ENDS_OF_WORK = `
  SELECT c.id, (
    SELECT e.occurred_at FROM conversation_events e
    WHERE e.conversation_id = c.id AND e.stored_at >= now() - interval '1 day' AND e.kind = 'ConversationStateUpdateEvent'
      AND coalesce(e.body -> 'value' ->> 'execution_status', e.body ->> 'value') IN ('finished', 'error', 'stuck')
      AND e.seq > (SELECT max(seq) FROM conversation_events WHERE conversation_id = c.id) - ${LAST_EVENTS}
    ORDER BY e.seq DESC LIMIT 1) AS "endedAt"
  FROM unnest($1::uuid[]) AS c (id)`;

/** Reads stored events. Callers check who may see them. */
@Injectable()
export class EventQueries {
  private readonly findAfter = new NamedStatement<ReadEvent>(
    'conversation_events_after',
    bounded('conversation_id = $1 AND seq > $2 AND stored_at >= $4 ORDER BY seq LIMIT $3'),
  );
  private readonly findById = new NamedStatement<ReadEvent & { event_id: string }>(
    'conversation_events_by_id',
    bounded('conversation_id = $1 AND event_id = ANY ($2::text[]) AND stored_at >= $3 AND stored_at < $4'),
  );

  constructor(private readonly dataSource: DataSource) {}

  /** The events after a number, oldest first. No event is from before `since`; null: every partition is read. */
  async after(
    conversationId: string,
    seq: number,
    limit: number,
    since: Date | null = null,
  ): Promise<ReadEvent[]> {
    return await this.findAfter.run(this.dataSource, [conversationId, seq, limit, since ?? '-infinity']);
  }

  async search(
    log: StoredLog,
    filter: EventFilter,
    { seq, descending, limit }: { seq: number; descending: boolean; limit: number },
  ): Promise<ReadEvent[]> {
    return await this.dataSource.query<ReadEvent[]>(descending ? SEARCH_DESCENDING : SEARCH_ASCENDING, [
      ...filterValues(log, filter),
      seq,
      limit,
    ]);
  }

  async count(log: StoredLog, filter: EventFilter): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, filterValues(log, filter));
    return row?.count ?? 0;
  }

  /** Number of the first event that is still stored; null when there is none. */
  async firstSeq({ id, since, until }: StoredLog): Promise<number | null> {
    const [row] = await this.dataSource.query<{ seq: number }[]>(FIRST_SEQ, [id, since, until]);
    return row?.seq ?? null;
  }

  /** JSON texts by event id. Throws InvalidInputError when they are larger than a page. */
  async byId(
    { id: logId, since, until }: StoredLog,
    eventIds: readonly string[],
  ): Promise<Map<string, string>> {
    const rows = await this.findById.run(this.dataSource, [logId, eventIds, since, until]);
    requireAll(rows, rows[0]?.found ?? 0, 'id');
    return new Map(rows.map(({ event_id: id, body }) => [id, body]));
  }

  /** When the last work of conversations ended, as far as their logs say. */
  async endsOfWork(conversationIds: readonly string[]): Promise<Map<string, Date>> {
    if (conversationIds.length === 0) {
      return new Map();
    }
    const rows = await this.dataSource.query<{ id: string; endedAt: Date | null }[]>(ENDS_OF_WORK, [
      conversationIds,
    ]);
    return new Map(rows.flatMap(({ id, endedAt }) => (endedAt === null ? [] : [[id, endedAt] as const])));
  }

  async firstUserMessage(conversationId: string): Promise<unknown> {
    const [row] = await this.dataSource.query<{ body: unknown }[]>(FIRST_USER_MESSAGE, [conversationId]);
    return row?.body ?? null;
  }
}

function bounded(run: string): string {
  const columns = 'run.seq, run.event_id, run.kind, run.body::text AS body';
  return endAtBytes(
    `SELECT seq, event_id, kind, body FROM conversation_events WHERE ${run}`,
    ['run.body::text'],
    columns,
  );
}

function filterValues({ id, since, until }: StoredLog, { kind, from, before }: EventFilter): unknown[] {
  return [id, kind ?? null, from ?? null, before ?? null, since, until];
}
