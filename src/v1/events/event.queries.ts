import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../database/named-statement.js';

/** An event the way it is stored. */
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
const MOST_BYTES = 4 * 1024 * 1024;

/** Whether events that were read may be fewer than there are because they are large. */
export function mayBeCut(events: readonly StoredEvent[]): boolean {
  return events.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0) >= MOST_BYTES;
}

const FILTER = `
  conversation_id = $1
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::timestamptz IS NULL OR occurred_at >= $3)
  AND ($4::timestamptz IS NULL OR occurred_at < $4)`;

/** A run of events that is cut where it becomes too large, never before its first event. */
function bounded(run: string, order: 'ASC' | 'DESC'): string {
  return `
    SELECT seq, kind, body FROM (
      SELECT seq, kind, body, sum(octet_length(body)) OVER (ORDER BY seq ${order}) - octet_length(body) AS bytes_before
      FROM (SELECT seq, kind, body::text AS body FROM conversation_events WHERE ${run}) AS run
    ) AS measured
    WHERE bytes_before < ${MOST_BYTES}
    ORDER BY seq ${order}`;
}

/** Not named, so that each is planned for the filters that are there. */
const ASCENDING = bounded(`${FILTER} AND seq > $5 ORDER BY seq LIMIT $6`, 'ASC');
const DESCENDING = bounded(`${FILTER} AND seq < $5 ORDER BY seq DESC LIMIT $6`, 'DESC');
const COUNT = `SELECT count(*)::integer AS count FROM conversation_events WHERE ${FILTER}`;

/** Reads stored events. Whether somebody may see them is asked elsewhere. */
@Injectable()
export class EventQueries {
  private readonly next = new NamedStatement<StoredEvent>(
    'conversation_events_after',
    bounded('conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3', 'ASC'),
  );
  private readonly named = new NamedStatement<{ event_id: string; body: string }>(
    'conversation_events_by_id',
    `SELECT event_id, body::text AS body FROM conversation_events
     WHERE conversation_id = $1 AND event_id = ANY ($2::text[])`,
  );

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** The events after a number, oldest first. */
  async after(conversationId: string, seq: number, limit: number): Promise<StoredEvent[]> {
    return await this.next.run(this.dataSource, [conversationId, seq, limit]);
  }

  /** The matching events on one side of a number: after it, or before it and newest first. */
  async search(
    conversationId: string,
    filter: EventFilter,
    { seq, descending, limit }: { seq: number; descending: boolean; limit: number },
  ): Promise<StoredEvent[]> {
    const values = [conversationId, ...valuesOf(filter), seq, limit];
    return await this.dataSource.query<StoredEvent[]>(descending ? DESCENDING : ASCENDING, values);
  }

  async count(conversationId: string, filter: EventFilter): Promise<number> {
    const values = [conversationId, ...valuesOf(filter)];
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, values);
    return row?.count ?? 0;
  }

  /** JSON texts by event id. */
  async byId(conversationId: string, eventIds: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.named.run(this.dataSource, [conversationId, eventIds]);
    return new Map(rows.map(({ event_id: id, body }) => [id, body]));
  }
}

function valuesOf({ kind, from, before }: EventFilter): (string | null)[] {
  return [kind ?? null, from ?? null, before ?? null];
}
