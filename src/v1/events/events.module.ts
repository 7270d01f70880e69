import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module.js';
import { DatabaseNotificationsModule } from '../../database/notifications/database-notifications.module.js';
import { MetricsModule } from '../../metrics/metrics.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { ConversationEvent } from './conversation-event.entity.js';
import { ConversationLogs } from './conversation-logs.js';
import { ConversationPokes } from './conversation-pokes.js';
import { EventsController } from './events.controller.js';
import { EventsReader } from './events.reader.js';
import { EventsService } from './events.service.js';
import { FollowListeners } from './follow-listeners.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import { CatchUp } from './following/catch-up.js';
import { ConversationGauges } from './following/conversation-gauges.js';
import { FollowLeases } from './following/follow-leases.js';
import { FollowersService } from './following/followers.service.js';
import { LogSync } from './following/log-sync.js';
import { EventStore } from './storing/event-store.js';
import { EventStreamsService } from './stream/event-streams.service.js';
import { StreamChecks } from './stream/stream-checks.js';

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
    ConversationPokes,
    FollowListeners,
    EventStore,
    LogSync,
    ConversationGauges,
    FollowLeases,
    FollowersService,
    CatchUp,
    EventsReader,
    EventsService,
    StreamChecks,
    EventStreamsService,
  ],
  exports: [ConversationLogs, ConversationPokes, FollowListeners, CatchUp, EventsReader],
})
export class EventsModule {}
