import { Injectable } from '@nestjs/common';
import { isOfAnotherAgent, type AgentEvent } from '@slipway/agent-protocol/events.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { may } from '../../auth/access.js';
import type { AuthUser } from '../../auth/auth.decorators.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { type Page, parseNumberCursor, parsePageId, toPage } from '@slipway/api/pagination/page.js';
import { isAgentEvent } from '@slipway/agent-client/agent-server.client.js';
import { AccessedConversationRepository } from './accessed-conversation.repository.js';
import { FollowedConversationRepository, type StoredLog } from './followed-conversation.repository.js';
import { type EventFilter, EventQueries } from './store/event.queries.js';

const MAX_SEQ = 2_147_483_647;
const MAX_ANSWER = 100_000;
const LAST_EVENTS = 50;

export interface EventSearch extends EventFilter {
  descending: boolean;
  pageId: string | undefined;
  limit: number;
}

/** The stored events of users' conversations; they stay when the sandbox is gone. */
@Injectable()
export class EventsService {
  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly accessed: AccessedConversationRepository,
    private readonly events: EventQueries,
  ) {}

  /** @throws DomainError not_found unless the conversation is this user's */
  async open(userId: string, conversationId: string): Promise<StoredLog> {
    const id = parseHexId(conversationId);
    const log = id === null ? null : await this.conversations.findLog(id, userId);
    if (log === null) {
      throw unknownConversation();
    }
    return log;
  }

  /** @throws DomainError not_found; InvalidInputError for a page id that is not of this log */
  async search(userId: string, conversationId: string, search: EventSearch): Promise<Page<AgentEvent>> {
    const log = await this.open(userId, conversationId);
    const { descending, limit } = search;
    const list = `events ${log.id}`;
    const seq = parsePageId(list, search.pageId, parseNumberCursor(MAX_SEQ)) ?? (descending ? MAX_SEQ : 0);
    // One more than the limit shows whether there is a next page.
    const rows = await this.events.search(log, search, { seq, descending, limit: limit + 1 });
    const page = toPage(list, rows, limit, (row) => String(row.seq), rows[0]?.found);
    return { items: page.items.map(({ body }) => parseEvent(body)), nextPageId: page.nextPageId };
  }

  /** What the agent said last, among the newest events, where an agent that has stopped has said it. */
  async lastAnswer(userId: string, conversationId: string): Promise<string | null> {
    const search = { descending: true, pageId: undefined, limit: LAST_EVENTS };
    const { items } = await this.search(userId, conversationId, search);
    return items.map(saidIn).find((text) => text !== null) ?? null;
  }

  async count(userId: string, conversationId: string, filter: EventFilter): Promise<number> {
    const log = await this.open(userId, conversationId);
    const isUnfiltered = [filter.kind, filter.from, filter.before].every((value) => value === undefined);
    if (!isUnfiltered) {
      return await this.events.count(log, filter);
    }
    // Event numbers have no gaps.
    const first = log.eventCount === 0 ? null : await this.events.firstSeq(log);
    return first === null ? 0 : log.eventCount + 1 - first;
  }

  /** 0 for a conversation that the caller may not read. */
  async countOrNone(caller: AuthUser, conversationId: string, filter: EventFilter): Promise<number> {
    const id = parseHexId(conversationId);
    const row = id === null ? null : await this.accessed.find(id);
    const isReadable = row !== null && may(caller, 'read', row);
    if (!isReadable && caller.repositories !== null) {
      return 0;
    }
    const ownerId = isReadable ? row.userId : caller.id;
    try {
      return await this.count(ownerId, conversationId, filter);
    } catch (error) {
      if (error instanceof DomainError && error.code === 'not_found') {
        return 0;
      }
      throw error;
    }
  }

  async endsOfWork(conversationIds: readonly string[]): Promise<Map<string, Date>> {
    return await this.events.endsOfWork(conversationIds);
  }

  /**
   * Returns events in the order of the ids, null for unknown ones. Throws DomainError not_found; InvalidInputError beyond a
   * page.
   */
  async batch(
    userId: string,
    conversationId: string,
    eventIds: readonly string[],
  ): Promise<(AgentEvent | null)[]> {
    const log = await this.open(userId, conversationId);
    const bodies = await this.events.byId(log, eventIds);
    return eventIds.map((eventId) => {
      const body = bodies.get(eventId);
      return body === undefined ? null : parseEvent(body);
    });
  }
}

/** Also used for other users' conversations, so that the response does not reveal that they exist. */
export function unknownConversation(): DomainError {
  return new DomainError('not_found', 'There is no conversation with this id.');
}

export function unknownToSandbox(): DomainError {
  return new DomainError('not_found', 'The sandbox has no conversation with this id.');
}

/** A sandbox has written it: only id, kind and time are certain. */
function saidIn(event: AgentEvent): string | null {
  if (event.kind === 'MessageEvent' && event.source === 'agent' && !isOfAnotherAgent(event)) {
    const parts = jsonList(event, 'llm_message', 'content').map((part) => jsonText(part, 'text') ?? '');
    return textHead(parts.join('\n'), MAX_ANSWER);
  }
  const isEnd = jsonAt(event, 'action', 'kind') === 'FinishAction';
  const message = isEnd ? jsonAt(event, 'action', 'message') : null;
  return typeof message === 'string' ? textHead(message, MAX_ANSWER) : null;
}

function parseEvent(body: string): AgentEvent {
  const event: unknown = JSON.parse(body);
  if (!isAgentEvent(event)) {
    throw new Error('stored event is not an agent event');
  }
  return event;
}
