import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';
import { FollowedConversationRepository } from '../followed-conversation.repository.js';
import { EventStore } from '../store/event-store.js';

/** Payload: the id of a conversation whose log may have something new. */
const SYNC_REQUESTS_CHANNEL = 'sync_requests';

/** Asks for a conversation's log to be read now instead of at the next poll, in whichever process follows it. */
@Injectable()
export class SyncRequests {
  private readonly logger = new Logger(SyncRequests.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
    private readonly conversations: FollowedConversationRepository,
    private readonly store: EventStore,
  ) {}

  /** Number of the last stored event, for `acknowledge`. */
  async position(conversationId: string): Promise<number> {
    return (await this.conversations.progress(conversationId))?.eventCount ?? 0;
  }

  /**
   * Shows the status that a request has brought about which the agent server has taken, until the log tells more: the
   * caller of that request must not see the status of before. Logged when it fails, as the request cannot be taken back.
   *
   * @param position of the log before the request
   */
  async acknowledge(conversationId: string, status: ConversationStatus, position: number): Promise<void> {
    try {
      await this.store.storeExpected(conversationId, status, position);
    } catch (error) {
      this.logger.warn('failed to store expected status', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    }
  }

  /** Returns at once. A request that is lost costs the time until the next poll. */
  requestSync(conversationId: string): void {
    this.notifications
      .publish(this.dataSource, SYNC_REQUESTS_CHANNEL, conversationId)
      .catch((error: unknown) =>
        this.logger.warn('failed to request sync', {
          conversation_id: conversationId,
          error: errorMessage(error),
        }),
      );
  }

  /**
   * Calls back for every request of any process.
   *
   * @param onResync requests may have been missed
   */
  listen(onRequest: (conversationId: string) => void, onResync: () => void): void {
    this.notifications.listen(SYNC_REQUESTS_CHANNEL, onRequest, onResync);
  }
}
