import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DatabaseNotifications } from '../../database/notifications/database-notifications.js';
import { OPENED_CHANNEL, REMOVED_CHANNEL } from './event-channels.js';

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
