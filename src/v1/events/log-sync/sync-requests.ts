import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { FollowedConversationRepository } from '../followed-conversation.repository.js';
import { EventStore } from '../store/event-store.js';

/** Payload: the id of a conversation. */
const SYNC_REQUESTS_CHANNEL = 'sync_requests';

/** Asks the process that follows a conversation to read its log before the next poll. */
@Injectable()
export class SyncRequests {
  private readonly logger = new Logger(SyncRequests.name);

  constructor(
    private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
    private readonly conversations: FollowedConversationRepository,
    private readonly store: EventStore,
  ) {}

  /**
   * Makes a request and shows the status that it leads to (null: the same) until the log tells more: its caller must not
   * see the old status. A failure to store that is only logged, because the request cannot be taken back.
   */
  async expecting(
    conversationId: string,
    status: ConversationStatus | null,
    request: () => Promise<void>,
  ): Promise<void> {
    const position = (await this.conversations.progress(conversationId))?.eventCount ?? 0;
    await request();
    try {
      await (status && this.store.storeExpected(conversationId, status, position));
    } catch (error) {
      this.logger.warn('failed to store expected status', {
        conversation_id: conversationId,
        error: errorMessage(error),
      });
    }
  }

  /** Returns at once. A lost request costs the time until the next poll. */
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

  /** Calls back for the requests of all processes; `onResync` when some may have been missed. */
  listen(onRequest: (conversationId: string) => void, onResync: () => void): void {
    this.notifications.listen(SYNC_REQUESTS_CHANNEL, onRequest, onResync);
  }
}
