import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import type { Response } from 'express';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { AuthUser } from '../../../auth/auth.decorators.js';
import { Clock } from '@slipway/common/clock.js';
import { isDatabaseAway } from '@slipway/database/database-failure.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { ConversationUpdates } from '../store/event-store.js';
import { EventsService } from '../events.service.js';
import { FollowedConversationRepository, REMOVED_CHANNEL } from '../followed-conversation.repository.js';
import { EventQueries } from '../store/event.queries.js';
import { EVENTS_CHANNEL } from '../store/event.repository.js';
import { Audience, EventStream, stateMessage } from './event-stream.js';
import { ReadAccess, type Reading } from './read-access.js';

const CHECK_MS = 5_000;
/** Notifications about own conversations are rarely news, so they are checked in batches. */
const KNOWN_CHECK_MS = 250;
/** Each stream may hold a page of events until its client reads it. */
const MAX_PER_USER = 32;

export interface StreamStart {
  header: string | undefined;
  query: string | undefined;
  /** Begins with the next event instead of the first, if the other two are missing. */
  fromNow: boolean;
}

/** Streams events of conversations. The replica that stores events notifies those that stream them. */
@Injectable()
export class EventStreamsService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(EventStreamsService.name);
  private readonly audiences = new Map<string, Audience>();
  private timer: NodeJS.Timeout | undefined;
  /** Own conversations for which another process may have stored events too. */
  private readonly unsure = new Set<string>();
  private unsureTimer: NodeJS.Timeout | undefined;
  private stopping = false;

  constructor(
    private readonly events: EventsService,
    private readonly queries: EventQueries,
    private readonly conversations: FollowedConversationRepository,
    private readonly notifications: DatabaseNotifications,
    private readonly updates: ConversationUpdates,
    private readonly clock: Clock,
    private readonly access: ReadAccess,
    metrics: Metrics,
  ) {
    metrics.addSamples({
      name: 'slipway_event_streams',
      help: 'Open streams of events to clients',
      labels: [],
      read: async () => {
        const open = [...this.audiences.values()].flatMap(({ streams }) => [...streams]);
        return [{ labels: {}, value: open.length }];
      },
    });
  }

  onApplicationBootstrap(): void {
    this.notifications.listen(
      EVENTS_CHANNEL,
      (conversationId) => this.hear(conversationId),
      () => void this.check(),
    );
    this.access.listen((isAffected) => void this.checkAccess(isAffected));
    this.notifications.listen(REMOVED_CHANNEL, (conversationId) => this.close(conversationId));
    this.updates.listen((conversationId, { rows }) => this.audiences.get(conversationId)?.feed(rows));
    this.timer = setInterval(() => void this.check(), CHECK_MS).unref();
  }

  /** The server waits for open responses, so they end before it closes. */
  beforeApplicationShutdown(): void {
    this.stopping = true;
    clearInterval(this.timer);
    clearTimeout(this.unsureTimer);
    for (const conversationId of this.audiences.keys()) {
      this.close(conversationId);
    }
  }

  /**
   * @throws DomainError not_found; rate_limited for too many streams; unavailable while the service stops
   * @throws InvalidInputError when the stream cannot begin where the client wants it to
   */
  async serve(
    user: AuthUser,
    { ownerId, id: conversationId }: { ownerId: string; id: string },
    start: StreamStart,
    response: Response,
  ): Promise<void> {
    const { id, eventCount, since, failure } = await this.events.open(ownerId, conversationId);
    const position = streamPosition(start, eventCount);
    if (this.stopping) {
      throw new DomainError('unavailable', 'The service is stopping; connect again.', {
        retryAfterSeconds: 1,
      });
    }
    if (this.countOf(user.id) >= MAX_PER_USER) {
      throw new DomainError(
        'rate_limited',
        `You have ${MAX_PER_USER} open event streams, the most allowed; close one first.`,
        { retryAfterSeconds: 5 },
      );
    }
    const audience =
      this.audiences.get(id) ?? new Audience((after, limit) => this.queries.after(id, after, limit, since));
    const first = failure && stateMessage(toHexId(id), failure, this.clock.now());
    const stream = new EventStream({ response, position, first, read: (after) => audience.page(after) });
    if (response.req.method === 'HEAD') {
      stream.close();
    }
    this.audiences.set(id, audience);
    audience.streams.set(stream, user);
    // It may have ended after the route was allowed, and before anything here could hear of it.
    void this.checkAccess(({ reader }) => reader === user);
    try {
      await stream.run();
    } catch (error) {
      // The response has begun, so it can only end; the client reconnects with its last event.
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
    const owners = [...this.audiences.values()].flatMap(({ streams }) => [...streams.values()]);
    return owners.filter(({ id }) => id === userId).length;
  }

  private hear(conversationId: string): void {
    const audience = this.audiences.get(conversationId);
    if (audience?.isFed === true) {
      this.unsure.add(conversationId);
      this.unsureTimer ??= setTimeout(() => void this.checkUnsure(), KNOWN_CHECK_MS).unref();
    } else {
      audience?.wake();
    }
  }

  private async checkUnsure(): Promise<void> {
    this.unsureTimer = undefined;
    const ids = [...this.unsure];
    this.unsure.clear();
    try {
      for (const [id, eventCount] of await this.conversations.eventCounts(ids)) {
        const audience = this.audiences.get(id);
        if (audience && eventCount > audience.last) {
          audience.wake();
        }
      }
    } catch (error) {
      this.logger.warn('failed to check open streams', { error: errorMessage(error) });
    }
  }

  private close(conversationId: string): void {
    this.audiences.get(conversationId)?.close();
  }

  private get open(): (Reading & { stream: EventStream })[] {
    return [...this.audiences].flatMap(([conversationId, { streams }]) =>
      [...streams].map(([stream, reader]) => ({ stream, reader, conversationId })),
    );
  }

  /** Ends streams to those who may not read the conversation any more. */
  private async checkAccess(isAffected: (reading: Reading) => boolean): Promise<void> {
    try {
      for (const { stream } of await this.access.ended(this.open.filter(isAffected))) {
        stream.close();
      }
    } catch (error) {
      this.logger.warn('failed to check readers of streams', { error: errorMessage(error) });
    }
  }

  /** Ends streams whose conversation is gone, and finds events whose notification was missed. */
  private async check(): Promise<void> {
    const { open } = this;
    if (open.length === 0) {
      return;
    }
    await this.checkAccess(() => true);
    try {
      const ids = [...new Set(open.map(({ conversationId }) => conversationId))];
      const eventCounts = await this.conversations.eventCounts(ids);
      for (const { stream, conversationId } of open) {
        const eventCount = eventCounts.get(conversationId);
        if (eventCount === undefined) {
          stream.close();
        } else if (eventCount > stream.sent) {
          this.audiences.get(conversationId)?.wake();
        }
      }
    } catch (error) {
      this.logger.warn('failed to check open streams', { error: errorMessage(error) });
    }
  }
}

/** Number of the event before the stream. Throws InvalidInputError for an id that no event has had. */
function streamPosition({ header, query, fromNow }: StreamStart, eventCount: number): number {
  const [text, loc] = header ? [header, ['header', 'last-event-id']] : [query, ['query', 'last_event_id']];
  if (text === undefined || text === '') {
    return fromNow ? eventCount : 0;
  }
  if (!/^\d{1,10}$/.test(text) || Number(text) > eventCount) {
    throw new InvalidInputError({
      loc,
      msg: 'Expected the id of an event of this stream, which is a number.',
      type: 'value_error',
    });
  }
  return Number(text);
}
