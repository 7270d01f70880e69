import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { errorMessage } from '../../../common/errors/error-message.js';
import { DatabaseNotifications } from '../../../database/notifications/database-notifications.js';

/** Payload: the id of a conversation whose log may have something new. */
const SYNC_REQUESTS_CHANNEL = 'conversation_pokes';

/** Asks for a conversation's log to be read now instead of at the next poll, in whichever process follows it. */
@Injectable()
export class SyncRequests {
  private readonly logger = new Logger(SyncRequests.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

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
