import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../../database/named-statement.js';
import type { StoredLog } from '../followed-conversation.repository.js';

/** A stored event. */
export interface StoredEvent {
  seq: number;
  kind: string;
  /** JSON text. */
  body: string;
}

export interface EventFilter {
  kind?: string | undefined;
  /** ISO 8601. */
  from?: string | undefined;
  before?: string | undefined;
}

/** Bytes of events read at once, unless the first one alone has more. */
const MAX_BYTES = 4 * 1024 * 1024;

const FILTER = `
  conversation_id = $1
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::timestamptz IS NULL OR occurred_at >= $3)
  AND ($4::timestamptz IS NULL OR occurred_at < $4)
  AND stored_at >= $5 AND stored_at < $6`;

/** Not named statements, so that PostgreSQL plans each for the given filters. */
const SEARCH_ASCENDING = bounded(`${FILTER} AND seq > $7 ORDER BY seq LIMIT $8`, 'ASC');
const SEARCH_DESCENDING = bounded(`${FILTER} AND seq < $7 ORDER BY seq DESC LIMIT $8`, 'DESC');
const COUNT = `SELECT count(*)::integer AS count FROM conversation_events WHERE ${FILTER}`;

/** Retention has removed the events before this one. */
const FIRST_SEQ = `
  SELECT seq FROM conversation_events WHERE conversation_id = $1 AND stored_at >= $2 AND stored_at < $3 ORDER BY seq LIMIT 1`;

const FIRST_USER_MESSAGE = `
  SELECT body FROM conversation_events
  WHERE conversation_id = $1 AND kind = 'MessageEvent' AND body->>'source' = 'user'
  ORDER BY seq LIMIT 1`;

/** Reads stored events. Callers check who may see them. */
@Injectable()
export class EventQueries {
  private readonly findAfter = new NamedStatement<StoredEvent>(
    'conversation_events_after',
    bounded('conversation_id = $1 AND seq > $2 AND stored_at >= $4 ORDER BY seq LIMIT $3', 'ASC'),
  );
  private readonly findById = new NamedStatement<{ event_id: string; body: string }>(
    'conversation_events_by_id',
    `SELECT event_id, body::text AS body FROM conversation_events
     WHERE conversation_id = $1 AND event_id = ANY ($2::text[]) AND stored_at >= $3 AND stored_at < $4`,
  );

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * The events after a number, oldest first.
   *
   * @param since none of them was stored before this time; null: unknown, so every partition is read
   */
  async after(
    conversationId: string,
    seq: number,
    limit: number,
    since: Date | null = null,
  ): Promise<StoredEvent[]> {
    return await this.findAfter.run(this.dataSource, [conversationId, seq, limit, since ?? '-infinity']);
  }

  /** The matching events on one side of a number: after it, or before it and newest first. */
  async search(
    log: StoredLog,
    filter: EventFilter,
    { seq, descending, limit }: { seq: number; descending: boolean; limit: number },
  ): Promise<StoredEvent[]> {
    return await this.dataSource.query<StoredEvent[]>(descending ? SEARCH_DESCENDING : SEARCH_ASCENDING, [
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

  /** JSON texts by event id. */
  async byId(
    { id: logId, since, until }: StoredLog,
    eventIds: readonly string[],
  ): Promise<Map<string, string>> {
    const rows = await this.findById.run(this.dataSource, [logId, eventIds, since, until]);
    return new Map(rows.map(({ event_id: id, body }) => [id, body]));
  }

  /** The event with the user's first message; null when there is none. */
  async firstUserMessage(conversationId: string): Promise<unknown> {
    const [row] = await this.dataSource.query<{ body: unknown }[]>(FIRST_USER_MESSAGE, [conversationId]);
    return row?.body ?? null;
  }
}

/** Whether a read may have stopped at the byte limit, so that more events may follow. */
export function mayBeCut(events: readonly StoredEvent[]): boolean {
  return events.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) >= MAX_BYTES;
}

/** Limits a run of events by bytes; the first event is always included. */
function bounded(run: string, order: 'ASC' | 'DESC'): string {
  return `
    SELECT seq, kind, body FROM (
      SELECT seq, kind, body, sum(octet_length(body)) OVER (ORDER BY seq ${order}) - octet_length(body) AS bytes_before
      FROM (SELECT seq, kind, body::text AS body FROM conversation_events WHERE ${run}) AS run
    ) AS measured
    WHERE bytes_before < ${MAX_BYTES}
    ORDER BY seq ${order}`;
}

/** The parameters $1 to $6 of a search. */
function filterValues({ id, since, until }: StoredLog, { kind, from, before }: EventFilter): unknown[] {
  return [id, kind ?? null, from ?? null, before ?? null, since, until];
}
