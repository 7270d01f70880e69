import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../../database/notifications/database-notifications.module.js';
import { ConversationEvent } from './conversation-event.entity.js';
import { ConversationLogs } from './conversation-logs.js';
import { ConversationPokes } from './conversation-pokes.js';
import { FollowListeners } from './follow-listeners.js';
import { FollowedConversation } from './followed-conversation.entity.js';

/** The events of conversations: read from agent servers, kept, searched and streamed. */
@Module({
  imports: [TypeOrmModule.forFeature([FollowedConversation, ConversationEvent]), DatabaseNotificationsModule],
  providers: [ConversationLogs, ConversationPokes, FollowListeners],
  exports: [ConversationLogs, ConversationPokes, FollowListeners],
})
export class EventsModule {}
