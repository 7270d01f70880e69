import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { DatabaseNotifications } from '../../database/notifications/database-notifications.js';

/** Payload: the id of a conversation whose events were stored. */
export const EVENTS_CHANNEL = 'conversation_events';

/** Payload: the id of a conversation whose log has something new, for the process that follows it. */
export const SYNC_REQUESTS_CHANNEL = 'conversation_pokes';

/** Payload: the id of a conversation whose log has just been opened. */
export const OPENED_CHANNEL = 'conversation_opened';

/** Payload: the id of a conversation whose log was removed. */
export const REMOVED_CHANNEL = 'conversation_removed';

const OPEN = `
  INSERT INTO followed_conversations (id, user_id, sandbox_id) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO NOTHING`;

const REMOVE = 'DELETE FROM followed_conversations WHERE id = $1';

/** The logs of conversations, as those who make and remove conversations see them. */
@Injectable()
export class ConversationLogs {
  constructor(private readonly notifications: DatabaseNotifications) {}

  /** Begins a conversation's log in the caller's transaction; it is followed from the commit on. Repeatable. */
  async open(
    manager: EntityManager,
    conversation: { conversationId: string; userId: string; sandboxId: string },
  ): Promise<void> {
    const { conversationId, userId, sandboxId } = conversation;
    await manager.query(OPEN, [conversationId, userId, sandboxId]);
    await this.notifications.publish(manager, OPENED_CHANNEL, conversationId);
  }

  /** Removes a conversation's log with all its events; its streams end at the commit. Repeatable. */
  async remove(manager: EntityManager, conversationId: string): Promise<void> {
    await manager.query(REMOVE, [conversationId]);
    await this.notifications.publish(manager, REMOVED_CHANNEL, conversationId);
  }
}

/** Says that a conversation's log may have something new, so that it is read now and not at the next poll. */
@Injectable()
export class SyncRequests {
  private readonly logger = new Logger(SyncRequests.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Returns at once; the process that follows the conversation hears it, whichever it is. Never needed, only faster. */
  requestSync(conversationId: string): void {
    this.notifications
      .publish(this.dataSource, SYNC_REQUESTS_CHANNEL, conversationId)
      .catch((error: unknown) => this.logger.warn('a poke was lost', { error: String(error) }));
  }
}
