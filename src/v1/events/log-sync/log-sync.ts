import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import pLimit from 'p-limit';
import type { AgentEvent, EventPage } from '@slipway/agent-protocol/events.js';
import { KeyedLimit } from '@slipway/common/async.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerError, readShrinking } from '@slipway/agent-client/agent-server.http.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../../sandboxes/sandbox-events.js';
import { FollowedConversationRepository, type LogProgress } from '../followed-conversation.repository.js';
import { EventStore } from '../store/event-store.js';
import { stateOf } from '../store/observed-state.js';

const PAGE_SIZES = [100, 10, 1];
/** Logs read at once: their pages stay in memory until they are stored. */
const MAX_READS = 32;
/** After this, a read gives up its slot, so that hanging agent servers do not delay others. */
const MAX_PLACE_MS = 500;
/** Reads at once from one agent server, which may hang. */
const MAX_READS_PER_SERVER = 4;
/** While events keep arriving; after that, the state is left for the next sync. */
const MAX_STATE_READS = 3;

/** A sandbox stops after this, whether the rest of its logs could be read or not. */
const DRAIN_TIMEOUT_MS = 5_000;

/** removed: the conversation was removed from the service. */
type SyncResult = 'stored' | 'unchanged' | 'removed';

@Injectable()
export class LogSync implements OnModuleInit {
  private readonly logger = new Logger(LogSync.name);
  private readonly limit = pLimit(MAX_READS);
  private readonly serverLimits = new KeyedLimit(MAX_READS_PER_SERVER);

  constructor(
    private readonly conversations: FollowedConversationRepository,
    private readonly agentServers: AgentServerClient,
    private readonly store: EventStore,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxEvents,
  ) {}

  onModuleInit(): void {
    this.sandboxes.on('stopping', (sandboxId) => this.drain(sandboxId));
  }

  /** Stores all events after the last stored one. Throws AgentServerError. */
  async syncEvents(
    target: AgentServerTarget,
    conversationId: string,
    signal?: AbortSignal,
  ): Promise<SyncResult> {
    return await this.serverLimits.run(target.address, () =>
      this.inPlace(() => this.copyEvents(target, conversationId, signal)),
    );
  }

  /** Reads the rest of a sandbox's logs while its agent server still responds (`RunningSandboxQueries.lastTarget`). */
  async drain(sandboxId: string): Promise<void> {
    const conversationIds = await this.conversations.idsInSandbox(sandboxId);
    const target = conversationIds.length === 0 ? null : await this.running.lastTarget(sandboxId);
    if (target) {
      const signal = AbortSignal.timeout(DRAIN_TIMEOUT_MS);
      await Promise.all(conversationIds.map((id) => this.drainConversation(target, id, signal)));
    }
  }

  async progress(conversationId: string): Promise<LogProgress | null> {
    return await this.conversations.progress(conversationId);
  }

  /** Stores the next events. Returns how far the log is stored; null when the conversation was removed. */
  async storeNext(
    conversationId: string,
    events: readonly AgentEvent[],
    after: LogProgress,
  ): Promise<LogProgress | null> {
    return await this.store.store(conversationId, events, after);
  }

  /**
   * Stores status, metrics and title, which not every agent server logs, but never before the events that led to them.
   * @returns false when events kept arriving, so that the state was not stored
   * @throws AgentServerError
   */
  async syncState(target: AgentServerTarget, conversationId: string, signal?: AbortSignal): Promise<boolean> {
    for (let reads = 0; reads < MAX_STATE_READS; reads += 1) {
      const before = await this.conversations.progress(conversationId);
      if (before === null) {
        return true;
      }
      const state = stateOf(await this.agentServers.findConversation(target, conversationId, signal));
      const result = await this.syncEvents(target, conversationId, signal);
      if (result !== 'stored') {
        await this.store.storeState(conversationId, state, before);
        return true;
      }
    }
    return false;
  }

  private async drainConversation(
    target: AgentServerTarget,
    conversationId: string,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      if ((await this.syncEvents(target, conversationId, signal)) !== 'removed') {
        await this.syncState(target, conversationId, signal);
      }
    } catch (error) {
      if (!(error instanceof AgentServerError)) {
        throw error;
      }
      this.logger.warn('failed to read the end of a conversation log', {
        conversation_id: conversationId,
        error: error.message,
      });
    }
  }

  /** Runs a task in one of MAX_READS slots, for at most MAX_PLACE_MS: it may be waiting for its agent server. */
  private async inPlace<T>(task: () => Promise<T>): Promise<T> {
    const begun = await this.limit(async () => {
      const left = Promise.withResolvers<void>();
      const timer = setTimeout(left.resolve, MAX_PLACE_MS).unref();
      const result = task();
      result.then(
        () => left.resolve(),
        () => left.resolve(),
      );
      await left.promise;
      clearTimeout(timer);
      return { result };
    });
    return await begun.result;
  }

  private async copyEvents(
    target: AgentServerTarget,
    conversationId: string,
    signal: AbortSignal | undefined,
  ): Promise<SyncResult> {
    const progress = await this.conversations.progress(conversationId);
    if (!progress) {
      return 'removed';
    }
    let result: SyncResult = 'unchanged';
    let after: LogProgress | null = progress;
    const read = (pageId: string | undefined): Promise<EventPage> =>
      readShrinking(PAGE_SIZES, (limit, mayExceed) =>
        this.agentServers.events(target, conversationId, { limit, mayExceed, pageId, signal }),
      );
    for await (const page of readLogAfter(read, progress.lastEventId)) {
      if (page.length > 0) {
        if ((await this.store.store(conversationId, page, after)) === null) {
          return 'removed';
        }
        after = null;
        result = 'stored';
      }
    }
    return result;
  }
}

/** The next pass continues after this many pages. */
const MAX_PAGES = 100_000;
/** No real log has so many empty pages in a row. */
const MAX_EMPTY_PAGES = 100;

/** Returns the page that begins with an event; for an unknown event the first page, or 422. */
type ReadPage = (pageId: string | undefined) => Promise<EventPage>;

/**
 * Reads a log after an event, oldest first. A log that was truncated (after a power failure) may not have that event;
 * then everything is read, and the store skips known events.
 */
export async function* readLogAfter(read: ReadPage, after: string | null): AsyncGenerator<AgentEvent[]> {
  let pageId = after ?? undefined;
  let page = await readFrom(read, pageId);
  const isKnown = pageId !== undefined && page.items[0]?.id === pageId;
  yield isKnown ? page.items.slice(1) : page.items;
  // Pages that form a cycle or never hold an event would otherwise be read forever.
  const seen = new Set([pageId]);
  let empty = 0;
  while (
    page.next_page_id !== null &&
    !seen.has(page.next_page_id) &&
    seen.size < MAX_PAGES &&
    empty < MAX_EMPTY_PAGES
  ) {
    pageId = page.next_page_id;
    seen.add(pageId);
    page = await read(pageId);
    empty = page.items.length === 0 ? empty + 1 : 0;
    yield page.items;
  }
}

async function readFrom(read: ReadPage, pageId: string | undefined): Promise<EventPage> {
  try {
    return await read(pageId);
  } catch (error) {
    if (pageId !== undefined && error instanceof AgentServerError && error.status === 422) {
      return await read(undefined);
    }
    throw error;
  }
}
