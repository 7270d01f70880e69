import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DatabaseNotifications } from '../../database/notifications/database-notifications.js';
import { POKES_CHANNEL } from './event-channels.js';

/** Says that a conversation's log may have something new, so that it is read now and not at the next poll. */
@Injectable()
export class ConversationPokes {
  private readonly logger = new Logger(ConversationPokes.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Returns at once; the process that follows the conversation hears it, whichever it is. Never needed, only faster. */
  poke(conversationId: string): void {
    this.notifications
      .publish(this.dataSource, POKES_CHANNEL, conversationId)
      .catch((error: unknown) => this.logger.warn('a poke was lost', { error: String(error) }));
  }
}
