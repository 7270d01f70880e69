import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Response } from 'express';
import { ApiKeyVerifier } from '../../../auth/api-key.verifier.js';
import type { AuthUser } from '../../../auth/auth.decorators.js';
import { isDatabaseAway } from '../../../common/errors/database-failure.js';
import { DomainError, InvalidInputError } from '../../../common/errors/domain-error.js';
import { errorMessage } from '../../../common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { EventsService } from '../events.service.js';
import { FollowedConversationRepository, REMOVED_CHANNEL } from '../followed-conversation.repository.js';
import { EventQueries, type StoredEvent } from '../store/event.queries.js';
import { EVENTS_CHANNEL } from '../store/event.repository.js';
import { EventStream } from './event-stream.js';

const CHECK_MS = 5_000;
/** Open streams of one user: each may hold a page of events until its client takes them. */
const MAX_PER_USER = 32;

/** Where a client wants its stream to begin. */
export interface StreamStart {
  /** Header Last-Event-ID. */
  header: string | undefined;
  /** Parameter `last_event_id`. */
  query: string | undefined;
  /** Without either: begin with the next event instead of the first one. */
  fromNow: boolean;
}

/** The open streams of one conversation. */
interface Audience {
  streams: Map<EventStream, { keyId: string; userId: string }>;
  /** How often the streams were woken: a read from before a wake-up may miss what the wake-up was about. */
  wakes: number;
  reads: Map<string, Promise<StoredEvent[]>>;
}

/** Live streams of conversations' events. Replicas that store events notify those that stream them. */
@Injectable()
export class EventStreamsService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(EventStreamsService.name);
  private readonly audiences = new Map<string, Audience>();
  private timer: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(
    private readonly events: EventsService,
    private readonly queries: EventQueries,
    private readonly conversations: FollowedConversationRepository,
    private readonly keys: ApiKeyVerifier,
    private readonly notifications: DatabaseNotifications,
  ) {}

  get openCount(): number {
    return [...this.audiences.values()].reduce((count, { streams }) => count + streams.size, 0);
  }

  onApplicationBootstrap(): void {
    this.notifications.listen(
      EVENTS_CHANNEL,
      (conversationId) => this.wake(conversationId),
      () => void this.check(),
    );
    this.notifications.listen(REMOVED_CHANNEL, (conversationId) => this.close(conversationId));
    this.timer = setInterval(() => void this.check(), CHECK_MS).unref();
  }

  /** Before the server closes, because it waits for responses that have not ended. */
  beforeApplicationShutdown(): void {
    this.stopping = true;
    clearInterval(this.timer);
    for (const conversationId of this.audiences.keys()) {
      this.close(conversationId);
    }
  }

  /**
   * Sends a conversation's events until the client disconnects.
   *
   * @throws DomainError not_found; rate_limited when the user has too many streams; unavailable while the service stops
   * @throws InvalidInputError when the stream cannot begin where the client wants it to
   */
  async serve(user: AuthUser, conversationId: string, start: StreamStart, response: Response): Promise<void> {
    const { id, eventCount } = await this.events.open(user.id, conversationId);
    const position = streamPosition(start, eventCount);
    if (this.stopping) {
      throw new DomainError('unavailable', 'unavailable', 'The service is stopping; connect again.', {
        retryAfterSeconds: 1,
      });
    }
    if (this.countOf(user.id) >= MAX_PER_USER) {
      throw new DomainError(
        'rate_limited',
        'rate_limited',
        `You have ${MAX_PER_USER} open event streams, the most allowed; close one first.`,
        { retryAfterSeconds: 5 },
      );
    }
    const stream = new EventStream({
      response,
      position,
      read: (after, limit) => this.read(id, after, limit),
    });
    if (response.req.method === 'HEAD') {
      stream.close();
    }
    const audience = this.audiences.get(id) ?? { streams: new Map(), wakes: 0, reads: new Map() };
    this.audiences.set(id, audience);
    audience.streams.set(stream, { keyId: user.keyId, userId: user.id });
    try {
      await stream.run();
    } catch (error) {
      // The response has begun, so ending it is all that is left; the client reconnects with the last event it has.
      this.logger.warn('failed to send events', {
        conversation_id: id,
        error: isDatabaseAway(error) ? 'the database is away' : errorMessage(error),
      });
    } finally {
      audience.streams.delete(stream);
      if (audience.streams.size === 0) {
        this.audiences.delete(id);
      }
    }
  }

  private countOf(userId: string): number {
    let count = 0;
    for (const { streams } of this.audiences.values()) {
      for (const owner of streams.values()) {
        count += owner.userId === userId ? 1 : 0;
      }
    }
    return count;
  }

  /** Streams at the same position share one read. */
  private read(conversationId: string, after: number, limit: number): Promise<StoredEvent[]> {
    const audience = this.audiences.get(conversationId);
    const key = `${after}/${audience?.wakes}`;
    const shared = audience?.reads.get(key);
    if (shared) {
      return shared;
    }
    const reading = this.queries.after(conversationId, after, limit);
    audience?.reads.set(key, reading);
    const forget = (): void => void audience?.reads.delete(key);
    reading.then(forget, forget);
    return reading;
  }

  private wake(conversationId: string): void {
    const audience = this.audiences.get(conversationId);
    if (audience) {
      audience.wakes += 1;
      audience.streams.forEach((_owner, stream) => stream.wake());
    }
  }

  private close(conversationId: string): void {
    this.audiences.get(conversationId)?.streams.forEach((_owner, stream) => stream.close());
  }

  /** Ends streams whose key or conversation is gone, and finds events whose notification was missed. */
  private async check(): Promise<void> {
    const open = [...this.audiences].flatMap(([conversationId, { streams }]) =>
      [...streams].map(([stream, { keyId }]) => ({ stream, keyId, conversationId })),
    );
    if (open.length === 0) {
      return;
    }
    try {
      const [eventCounts, validKeys] = await Promise.all([
        this.conversations.eventCounts([...new Set(open.map(({ conversationId }) => conversationId))]),
        this.keys.stillValid([...new Set(open.map(({ keyId }) => keyId))]),
      ]);
      for (const { stream, keyId, conversationId } of open) {
        const eventCount = eventCounts.get(conversationId);
        if (eventCount === undefined || !validKeys.has(keyId)) {
          stream.close();
        } else if (eventCount > stream.sent) {
          this.wake(conversationId);
        }
      }
    } catch (error) {
      this.logger.warn('failed to check open streams', { error: errorMessage(error) });
    }
  }
}

/**
 * The number of the event after which a stream begins.
 *
 * @param eventCount number of the last event
 * @throws InvalidInputError for an id that no event of the conversation has had
 */
function streamPosition({ header, query, fromNow }: StreamStart, eventCount: number): number {
  const [text, loc] = header ? [header, ['header', 'last-event-id']] : [query, ['query', 'last_event_id']];
  if (text === undefined || text === '') {
    return fromNow ? eventCount : 0;
  }
  if (!/^\d{1,10}$/.test(text) || Number(text) > eventCount) {
    throw new InvalidInputError([
      { loc, msg: 'Expected the id of an event of this stream, which is a number.', type: 'value_error' },
    ]);
  }
  return Number(text);
}
