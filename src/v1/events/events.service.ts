import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { AgentEvent } from '../../agent-protocol/events.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { decodePageId, type Page, toPage } from '../../common/pagination/page.js';
import { NamedStatement } from '../../database/named-statement.js';
import { isAgentEvent } from '../agent-servers/agent-server.client.js';
import { type EventFilter, EventQueries, mayBeCut } from './event.queries.js';

const LARGEST_SEQ = 2_147_483_647;

export interface EventSearch extends EventFilter {
  descending: boolean;
  pageId: string | undefined;
  limit: number;
}

/** A conversation whose events somebody may see. */
export interface VisibleLog {
  /** UUID with dashes. */
  id: string;
  eventCount: number;
}

/** The stored events of users' conversations; they stay when the sandbox is gone. */
@Injectable()
export class EventsService {
  private readonly owned = new NamedStatement<{ event_count: number }>(
    'followed_conversation_owned',
    'SELECT event_count FROM followed_conversations WHERE id = $1 AND user_id = $2',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly reader: EventQueries,
  ) {}

  /** @throws DomainError not_found unless it is a conversation of this user */
  async open(userId: string, conversationId: string): Promise<VisibleLog> {
    const id = parseHexId(conversationId);
    const [row] = id === null ? [] : await this.owned.run(this.dataSource, [id, userId]);
    if (id === null || row === undefined) {
      throw new DomainError('not_found', 'not_found', 'There is no conversation with this id.');
    }
    return { id, eventCount: row.event_count };
  }

  /** @throws DomainError not_found */
  async search(userId: string, conversationId: string, search: EventSearch): Promise<Page<AgentEvent>> {
    const { id } = await this.open(userId, conversationId);
    const { descending, limit } = search;
    const seq = seqOf(search.pageId) ?? (descending ? LARGEST_SEQ : 0);
    // One more than fits tells whether there is a next page.
    const rows = await this.reader.search(id, search, { seq, descending, limit: limit + 1 });
    const last = rows.at(-1);
    const rest =
      last !== undefined && rows.length <= limit && mayBeCut(rows)
        ? await this.reader.search(id, search, { seq: last.seq, descending, limit: 1 })
        : [];
    const page = toPage([...rows, ...rest], Math.min(limit, rows.length), (row) => String(row.seq));
    return { items: page.items.map(({ body }) => parseEvent(body)), nextPageId: page.nextPageId };
  }

  /** @throws DomainError not_found */
  async count(userId: string, conversationId: string, filter: EventFilter): Promise<number> {
    const { id, eventCount } = await this.open(userId, conversationId);
    const isWhole = [filter.kind, filter.from, filter.before].every((value) => value === undefined);
    return isWhole ? eventCount : await this.reader.count(id, filter);
  }

  /**
   * Events by id, in the order asked for, null for unknown ones.
   *
   * @throws DomainError not_found
   */
  async batch(
    userId: string,
    conversationId: string,
    eventIds: readonly string[],
  ): Promise<(AgentEvent | null)[]> {
    const { id } = await this.open(userId, conversationId);
    const bodies = await this.reader.byId(id, eventIds);
    return eventIds.map((eventId) => {
      const body = bodies.get(eventId);
      return body === undefined ? null : parseEvent(body);
    });
  }
}

function seqOf(pageId: string | undefined): number | null {
  const text = decodePageId(pageId);
  return text !== null && /^\d{1,10}$/.test(text) && Number(text) <= LARGEST_SEQ ? Number(text) : null;
}

function parseEvent(body: string): AgentEvent {
  const event: unknown = JSON.parse(body);
  if (!isAgentEvent(event)) {
    throw new Error('a stored event is none');
  }
  return event;
}
