import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { AgentEvent, EventPage } from '../../../agent-protocol/events.js';
import pLimit, { type LimitFunction } from 'p-limit';
import { NamedStatement } from '../../../database/named-statement.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import {
  AgentServerError,
  type AgentServerTarget,
  ANSWER_TOO_LARGE,
} from '../../agent-servers/agent-server.http.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { RunningSandboxes } from '../../sandboxes/sandbox.queries.js';
import { EventStore } from '../store/event-store.js';
import { stateOf } from '../store/observed-state.js';

/** Lets each agent server have only so many reads at once: one that hangs holds no more than these. */
export class PerServerLimit {
  private readonly servers = new Map<string, { limit: LimitFunction; reads: number }>();

  constructor(private readonly max: number) {}

  /** Servers that have reads right now. */
  get size(): number {
    return this.servers.size;
  }

  /** Runs the read as soon as its server has room for it, and settles as the read does. */
  async run<T>(address: string, read: () => Promise<T>): Promise<T> {
    const server = this.servers.get(address) ?? { limit: pLimit(this.max), reads: 0 };
    this.servers.set(address, server);
    server.reads += 1;
    try {
      return await server.limit(read);
    } finally {
      server.reads -= 1;
      if (server.reads === 0) {
        this.servers.delete(address);
      }
    }
  }
}

/** Events on a page; fewer where a page of them is too large. The first one is the last one stored. */
const PAGE_SIZES = [100, 10, 2];
/** Pages are large: no more than this are on their way into the database at once. */
const MOST_AT_ONCE = 32;
/** Of these, from one agent server, which may hang. */
const MOST_PER_SERVER = 4;

/** How often a state is asked for that events came after. */
const STATE_LOOKS = 3;

/** new: events were stored; nothing: there were none; gone: the conversation was removed here. */
type SyncResult = 'new' | 'nothing' | 'gone';

/** Takes over what an agent server knows of a conversation and the service does not. */
@Injectable()
export class LogSync {
  private readonly limit = pLimit(MOST_AT_ONCE);
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
      this.limit(() => this.readEvents(target, conversationId, signal)),
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

/** A sandbox that is stopped is stopped, whether all could be read or not. */
const PATIENCE_MS = 5_000;

/** Reads what is still unread of conversations before their agent server ends. */
@Injectable()
export class CatchUp implements OnModuleInit {
  private readonly logger = new Logger(CatchUp.name);
  private readonly inSandbox = new NamedStatement<{ id: string }>(
    'followed_conversations_of_sandbox',
    'SELECT id FROM followed_conversations WHERE sandbox_id = $1',
  );
  private readonly sandboxOf = new NamedStatement<{ sandbox_id: string }>(
    'followed_conversation_sandbox',
    'SELECT sandbox_id FROM followed_conversations WHERE id = $1',
  );

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly running: RunningSandboxes,
    private readonly sandboxes: SandboxEvents,
    private readonly sync: LogSync,
  ) {}

  onModuleInit(): void {
    this.sandboxes.beforePause((sandboxId) => this.catchUpSandbox(sandboxId));
  }

  /** Stores what a conversation's agent server has written so far, within 5 s. Nothing when none can be reached. */
  async catchUp(conversationId: string): Promise<void> {
    const [row] = await this.sandboxOf.run(this.dataSource, [conversationId]);
    const target = row ? await this.running.lastTarget(row.sandbox_id) : null;
    if (target) {
      await this.read(target, conversationId, AbortSignal.timeout(PATIENCE_MS));
    }
  }

  private async catchUpSandbox(sandboxId: string): Promise<void> {
    const conversations = await this.inSandbox.run(this.dataSource, [sandboxId]);
    const target = conversations.length === 0 ? null : await this.running.lastTarget(sandboxId);
    if (target) {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      await Promise.all(conversations.map(({ id }) => this.read(target, id, signal)));
    }
  }

  private async read(target: AgentServerTarget, conversationId: string, signal: AbortSignal): Promise<void> {
    try {
      if ((await this.sync.events(target, conversationId, signal)) !== 'gone') {
        await this.sync.state(target, conversationId, signal);
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('the end of a log could not be read', { conversationId, error: error.message });
    }
  }
}

/** Answers a page of a log that begins with the named event; with the first one when there is no such event. */
type ReadPage = (pageId: string | undefined) => Promise<EventPage>;

/**
 * What a log holds after an event, page by page and oldest first. When the log does not know that event (it was cut,
 * for example by a loss of power), all of it comes: whoever stores it leaves out what is known.
 */
export async function* readLogAfter(read: ReadPage, after: string | null): AsyncGenerator<AgentEvent[]> {
  let pageId = after ?? undefined;
  let page = await read(pageId);
  const isKnown = pageId !== undefined && page.items[0]?.id === pageId;
  yield isKnown ? page.items.slice(1) : page.items;
  // Pages that name each other as the next one would never end.
  const seen = new Set([pageId]);
  while (page.next_page_id !== null && !seen.has(page.next_page_id)) {
    pageId = page.next_page_id;
    seen.add(pageId);
    page = await read(pageId);
    yield page.items;
  }
}
