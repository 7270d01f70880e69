import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module.js';
import { DatabaseNotificationsModule } from '../../database/notifications/database-notifications.js';
import { MetricsModule } from '../../metrics/metrics.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { ConversationEvent } from './conversation-event.entity.js';
import { ConversationLogs, SyncRequests } from './conversation-logs.js';
import { EventsController } from './events.controller.js';
import { EventQueries } from './event.queries.js';
import { EventsService } from './events.service.js';
import { ConversationEvents } from './event-listeners.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import { CatchUp, LogSync } from './follow/log-sync.js';
import { ConversationMetrics } from './follow/conversation.metrics.js';
import { FollowLeases, FollowersService } from './follow/followers.service.js';
import { EventStore } from './store/event-store.js';
import { EventStreamsService, StreamChecks } from './stream/event-streams.service.js';

/** The events of conversations: read from agent servers, kept, searched and streamed. */
@Module({
  imports: [
    TypeOrmModule.forFeature([FollowedConversation, ConversationEvent]),
    AuthModule,
    DatabaseNotificationsModule,
    MetricsModule,
    AgentServersModule,
    SandboxesModule,
  ],
  controllers: [EventsController],
  providers: [
    ConversationLogs,
    SyncRequests,
    ConversationEvents,
    EventStore,
    LogSync,
    ConversationMetrics,
    FollowLeases,
    FollowersService,
    CatchUp,
    EventQueries,
    EventsService,
    StreamChecks,
    EventStreamsService,
  ],
  exports: [ConversationLogs, SyncRequests, ConversationEvents, CatchUp, EventQueries],
})
export class EventsModule {}
