import { setImmediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { Clock, toInstant } from '@slipway/common/clock.js';
import { isDatabaseAway } from '@slipway/database/database-failure.js';
import { type Instrument, Metrics, type NoLabels } from '@slipway/telemetry/metrics.js';
import { FollowedConversationRepository, type LogProgress } from '../followed-conversation.repository.js';
import {
  type AppendedEvents,
  bytesOf,
  EventRepository,
  needsLook,
  type NextEvents,
  storedRows,
} from './event.repository.js';
import { type ObservedState, stateInEvents } from './observed-state.js';
import { type StorableEvent, toStorableOfSandbox, toStub } from './storable-event.js';

/** While one statement is committed, the next is sent. The other connections are left for requests. */
const MAX_STATEMENTS = 2;
/** Limits of one statement, unless the first log alone has more. */
const MAX_LOGS = 100;
const MAX_CHARACTERS = 1024 * 1024;
/** A retry helps because a lease renewal locks a log only for a moment. */
const MAX_ATTEMPTS = 3;

interface Waiting {
  log: NextEvents;
  attempts: number;
  resolve: (stored: boolean) => void;
  reject: (error: unknown) => void;
}

/** Batches the events of many logs, so that a commit costs the same for a hundred conversations as for one. */
@Injectable()
export class EventAppender {
  private waiting: Waiting[] = [];
  private statements = 0;

  constructor(private readonly events: EventRepository) {}

  /** False when the events may not continue the log or PostgreSQL refuses them: use `EventRepository.append`. */
  async append(log: NextEvents): Promise<boolean> {
    return await new Promise<boolean>((resolve, reject) => {
      this.waiting.push({ log, attempts: 0, resolve, reject });
      this.begin();
    });
  }

  private begin(): void {
    while (this.statements < MAX_STATEMENTS && this.waiting.length > 0) {
      this.statements += 1;
      void this.store(this.takeBatch()).finally(() => {
        this.statements -= 1;
        this.begin();
      });
    }
  }

  private takeBatch(): Waiting[] {
    const batch = new Map<string, Waiting>();
    const left: Waiting[] = [];
    let characters = 0;
    for (const waiting of this.waiting) {
      const { conversationId, events } = waiting.log;
      const added = events.reduce((sum, { body }) => sum + body.length, 0);
      const fits = batch.size === 0 || (batch.size < MAX_LOGS && characters + added <= MAX_CHARACTERS);
      if (fits && !batch.has(conversationId)) {
        batch.set(conversationId, waiting);
        characters += added;
      } else {
        left.push(waiting);
      }
    }
    this.waiting = left;
    return [...batch.values()];
  }

  private async store(batch: readonly Waiting[]): Promise<void> {
    try {
      const stored = await this.events.appendMany(batch.map(({ log }) => log));
      for (const waiting of batch) {
        this.settle(waiting, stored.has(waiting.log.conversationId));
      }
    } catch (error) {
      const isAway = isDatabaseAway(error);
      // PostgreSQL refused one of the logs, and the others must not fail with it.
      batch.forEach(({ resolve, reject }) => (isAway ? reject(error) : resolve(false)));
    }
  }

  private settle(waiting: Waiting, isStored: boolean): void {
    const attempts = waiting.attempts + 1;
    if (isStored || attempts === MAX_ATTEMPTS) {
      waiting.resolve(isStored);
    } else {
      this.waiting.push({ ...waiting, attempts });
    }
  }
}

/** New events and their rows, in order, each of them once; of the state only the members that changed. */
type ConversationUpdate = Pick<AppendedEvents, 'events' | 'rows' | 'state'>;
type UpdateListener = (conversationId: string, update: ConversationUpdate) => void;

const NOTHING: ConversationUpdate = { events: [], rows: [], state: null };

/**
 * Emits changes of conversations after their commit, in the process that stored them. The process may die in between,
 * so use listeners only for work that may be missed or is checked again later.
 */
@Injectable()
export class ConversationUpdates {
  private readonly logger = new Logger(ConversationUpdates.name);
  private readonly listeners: UpdateListener[] = [];

  listen(listener: UpdateListener): void {
    this.listeners.push(listener);
  }

  /** A failing listener must not stop the log from being followed. */
  emit(conversationId: string, update: Partial<ConversationUpdate>): void {
    for (const listener of this.listeners) {
      try {
        listener(conversationId, { ...NOTHING, ...update });
      } catch (error) {
        this.logger.error('failed to call conversation listener', errorStack(error));
      }
    }
  }
}

/** Bytes of one transaction (one event alone may have more); serialising them takes about 10 ms. */
const CHUNK_BYTES = 2 * 1024 * 1024;
/** Large events take a while, so others have their turn in between. */
const TURN_MS = 5;
/** No real agent server sends longer ids, and PostgreSQL cannot index them. */
const MAX_ID_LENGTH = 200;
const LAG_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Stores events of agent servers' logs, each once, whichever process calls it and however often. */
@Injectable()
export class EventStore {
  private readonly logger = new Logger(EventStore.name);
  private readonly lag: Instrument<NoLabels>;

  constructor(
    private readonly events: EventRepository,
    private readonly appender: EventAppender,
    private readonly conversations: FollowedConversationRepository,
    private readonly updates: ConversationUpdates,
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.lag = metrics.addHistogram({
      name: 'slipway_event_lag_seconds',
      help: 'Time from an event in a sandbox until it was stored, of the newest of those that were stored together',
      labels: {},
      buckets: LAG_SECONDS,
    });
  }

  /**
   * Stores consecutive events and skips known ones; `after` is the believed progress, null when unknown.
   * @returns how far the log is stored now; null when the conversation was removed
   */
  async store(
    conversationId: string,
    events: readonly AgentEvent[],
    after: LogProgress | null = null,
  ): Promise<LogProgress | null> {
    const storable = await this.toStorable(events);
    const chunks = inChunks(storable, ({ body }) => body.length, CHUNK_BYTES);
    let progress = after;
    for (const [index, chunk] of chunks.entries()) {
      progress = await this.storeChunk(conversationId, chunk, index === 0 ? after : null);
      if (progress === null) {
        return null;
      }
    }
    return progress;
  }

  async storeExpected(conversationId: string, status: ConversationStatus, position: number): Promise<void> {
    const changed = await this.events.expectStatus(conversationId, status, position);
    if (changed) {
      this.updates.emit(conversationId, { state: changed });
    }
  }

  /** Stores a reported state, unless the log has changed since `before`. */
  async storeState(conversationId: string, state: ObservedState, before: LogProgress): Promise<void> {
    const changed = await this.conversations.updateState(conversationId, state, undefined, before);
    if (changed) {
      this.updates.emit(conversationId, { state: changed });
    }
  }

  private async storeChunk(
    conversationId: string,
    chunk: readonly StorableEvent[],
    after: LogProgress | null,
  ): Promise<LogProgress | null> {
    const isNext = after !== null && isPlain(chunk) && !needsLook(after, bytesOf(chunk));
    if (isNext && (await this.appender.append({ conversationId, events: chunk, after }))) {
      const appended = appendedAfter(after, chunk);
      this.emit(conversationId, appended);
      return appended.progress;
    }
    try {
      return await this.append(conversationId, chunk);
    } catch (error) {
      if (isDatabaseAway(error)) {
        throw error;
      }
      const [first, ...others] = chunk;
      return first === undefined || others.length > 0
        ? await this.storeOneByOne(conversationId, chunk)
        : await this.storeStub(conversationId, first, error);
    }
  }

  /** One event that PostgreSQL refuses must not hold up those after it. */
  private async storeOneByOne(
    conversationId: string,
    chunk: readonly StorableEvent[],
  ): Promise<LogProgress | null> {
    let progress: LogProgress | null = null;
    for (const entry of chunk) {
      progress = await this.storeChunk(conversationId, [entry], null);
      if (progress === null) {
        return null;
      }
    }
    return progress;
  }

  private async storeStub(
    conversationId: string,
    given: StorableEvent,
    refusal: unknown,
  ): Promise<LogProgress | null> {
    this.logger.warn('failed to store event in full', {
      conversation_id: conversationId,
      event_id: given.id,
      // Only the name, because the message may quote the event.
      error: refusal instanceof Error ? refusal.name : String(refusal),
    });
    return await this.append(conversationId, [toStub(given.event, new Date(this.clock.now()))]);
  }

  private async append(conversationId: string, given: readonly StorableEvent[]): Promise<LogProgress | null> {
    const appended = await this.events.append(conversationId, given);
    if (appended === null) {
      return null;
    }
    this.emit(conversationId, appended);
    return appended.progress;
  }

  private emit(conversationId: string, { events, rows, state }: AppendedEvents): void {
    if (events.length > 0) {
      this.noteLag(events);
    }
    this.updates.emit(conversationId, { events, rows, state });
  }

  private async toStorable(events: readonly AgentEvent[]): Promise<StorableEvent[]> {
    const now = new Date(this.clock.now());
    const storable: StorableEvent[] = [];
    let since = performance.now();
    for (const event of events) {
      storable.push(toStorableOfSandbox(event, now));
      if (performance.now() - since > TURN_MS) {
        await setImmediate();
        since = performance.now();
      }
    }
    return storable;
  }

  /** The time comes from a sandbox: a missing or future one is ignored. */
  private noteLag(events: readonly AgentEvent[]): void {
    const seconds = (this.clock.now() - Date.parse(toInstant(events.at(-1)?.timestamp ?? '') ?? '')) / 1000;
    if (seconds >= 0) {
      this.lag.record({}, seconds);
    }
  }
}

function appendedAfter(after: LogProgress, chunk: readonly StorableEvent[]): AppendedEvents {
  return {
    progress: {
      eventCount: after.eventCount + chunk.length,
      lastEventId: chunk.at(-1)?.id ?? after.lastEventId,
      bytes: after.bytes + bytesOf(chunk),
      isFull: after.isFull,
      since: after.since,
    },
    events: chunk.map(({ event }) => event),
    rows: storedRows(chunk, after.eventCount),
    state: null,
  };
}

function isPlain(events: readonly StorableEvent[]): boolean {
  return (
    new Set(events.map(({ id }) => id)).size === events.length &&
    events.every(({ id }) => id.length <= MAX_ID_LENGTH) &&
    Object.keys(stateInEvents(events.map(({ event }) => event))).length === 0
  );
}

/** Cuts a list into runs of at most `max` in size; a larger element stands alone. */
export function inChunks<T>(elements: readonly T[], sizeOf: (element: T) => number, max: number): T[][] {
  const chunks: T[][] = [];
  let size = Infinity;
  for (const element of elements) {
    const added = sizeOf(element);
    const last = chunks.at(-1);
    if (last === undefined || size + added > max) {
      chunks.push([element]);
      size = added;
    } else {
      last.push(element);
      size += added;
    }
  }
  return chunks;
}
