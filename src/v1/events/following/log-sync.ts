import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EventPage } from '../../../agent-protocol/event-page.js';
import { ConcurrencyLimit } from '../../../common/concurrency-limit.js';
import { NamedStatement } from '../../../database/named-statement.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.error.js';
import { ANSWER_TOO_LARGE } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/agent-server-target.js';
import { EventStore } from '../storing/event-store.js';
import { stateOf } from '../storing/observed-state.js';
import { PerServerLimit } from './per-server-limit.js';
import { readLogAfter } from './read-log.js';

/** Events on a page; fewer where a page of them is too large. The first one is the last one stored. */
const PAGE_SIZES = [100, 10, 2];
/** Pages are large: no more than this are on their way into the database at once. */
const MOST_AT_ONCE = 32;
/** Of these, from one agent server, which may hang. */
const MOST_PER_SERVER = 4;

/** How often a state is asked for that events came after. */
const STATE_LOOKS = 3;

/** new: events were stored; nothing: there were none; gone: the conversation was removed here. */
export type SyncResult = 'new' | 'nothing' | 'gone';

/** Takes over what an agent server knows of a conversation and the service does not. */
@Injectable()
export class LogSync {
  private readonly limit = new ConcurrencyLimit(MOST_AT_ONCE);
  private readonly perServer = new PerServerLimit(MOST_PER_SERVER);
  private readonly lastEvent = new NamedStatement<{ last_event_id: string | null }>(
    'followed_conversation_last_event',
    'SELECT last_event_id FROM followed_conversations WHERE id = $1',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly client: AgentServerClient,
    private readonly store: EventStore,
  ) {}

  /**
   * Stores all events after the last stored one.
   *
   * @throws AgentServerError
   */
  async events(target: AgentServerTarget, conversationId: string, signal?: AbortSignal): Promise<SyncResult> {
    return await this.perServer.run(target.address, () =>
      this.limit.run(() => this.readEvents(target, conversationId, signal)),
    );
  }

  /**
   * Takes over status, metrics and title: not every agent server writes them into its log. Whoever sees a state here
   * finds the events that led to it; of a conversation that writes faster than it is read only the events are taken.
   *
   * @returns whether the state is known now
   * @throws AgentServerError
   */
  async state(target: AgentServerTarget, conversationId: string, signal?: AbortSignal): Promise<boolean> {
    for (let look = 0; look < STATE_LOOKS; look += 1) {
      const state = stateOf(await this.client.findConversation(target, conversationId, signal));
      const result = await this.events(target, conversationId, signal);
      if (result !== 'new') {
        await this.store.observe(conversationId, state);
        return true;
      }
    }
    return false;
  }

  private async readEvents(
    target: AgentServerTarget,
    conversationId: string,
    signal: AbortSignal | undefined,
  ): Promise<SyncResult> {
    const [row] = await this.lastEvent.run(this.dataSource, [conversationId]);
    if (!row) {
      return 'gone';
    }
    let result: SyncResult = 'nothing';
    const read = (pageId: string | undefined): Promise<EventPage> =>
      this.readPage(target, conversationId, pageId, signal);
    for await (const page of readLogAfter(read, row.last_event_id)) {
      if (page.length > 0) {
        if (!(await this.store.store(conversationId, page))) {
          return 'gone';
        }
        result = 'new';
      }
    }
    return result;
  }

  private async readPage(
    target: AgentServerTarget,
    conversationId: string,
    pageId: string | undefined,
    signal: AbortSignal | undefined,
    [limit = 1, ...smaller]: readonly number[] = PAGE_SIZES,
  ): Promise<EventPage> {
    try {
      return await this.client.events(target, conversationId, {
        limit,
        ...(pageId !== undefined && { pageId }),
        ...(signal && { signal }),
      });
    } catch (error) {
      if (error instanceof AgentServerError && error.detail === ANSWER_TOO_LARGE && smaller.length > 0) {
        return await this.readPage(target, conversationId, pageId, signal, smaller);
      }
      throw error;
    }
  }
}
