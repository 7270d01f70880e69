import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module.js';
import { DatabaseNotificationsModule } from '../../database/database-notifications.module.js';
import { ObservabilityModule } from '../../observability/observability.module.js';
import { OutboundWebhooksModule } from '../../outbound-webhooks/outbound-webhooks.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { UsageModule } from '../../usage/usage.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { ConversationEvent, EventRepository } from './store/event.repository.js';
import { EgressDenial, EgressDenialRepository } from './egress-denial.repository.js';
import { EventCountController, EventsController } from './events.controller.js';
import { EventsService } from './events.service.js';
import { LogLeaseRepository } from './log-sync/log-lease.repository.js';
import { LogReadersService } from './log-sync/log-readers.service.js';
import { LogSync } from './log-sync/log-sync.js';
import { SpentBudgetRepository } from './spent-budget.repository.js';
import { SyncRequests } from './log-sync/sync-requests.js';
import { AccessedConversationRepository } from './accessed-conversation.repository.js';
import { ConversationAccessGuard } from './conversation-access.guard.js';
import { FollowedConversation } from './followed-conversation.entity.js';
import { FollowedConversationRepository } from './followed-conversation.repository.js';
import { ConversationUpdates, EventAppender, EventStore } from './store/event-store.js';
import { EventPartitionRepository, EventRetentionWorker } from './store/event-partition.repository.js';
import { EventQueries } from './store/event.queries.js';
import { UncountedEventsWorker } from './store/uncounted-events.worker.js';
import { EventStreamsService } from './stream/event-streams.service.js';
import { ReadAccess } from './stream/read-access.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([FollowedConversation, ConversationEvent, EgressDenial]),
    AuthModule,
    DatabaseNotificationsModule,
    ObservabilityModule,
    AgentServersModule,
    OutboundWebhooksModule,
    SandboxesModule,
    UsageModule,
  ],
  controllers: [EventsController, EventCountController],
  providers: [
    AccessedConversationRepository,
    ConversationAccessGuard,
    ConversationUpdates,
    EgressDenialRepository,
    EventAppender,
    EventPartitionRepository,
    EventQueries,
    EventRepository,
    EventRetentionWorker,
    EventStore,
    EventStreamsService,
    EventsService,
    LogLeaseRepository,
    FollowedConversationRepository,
    LogReadersService,
    LogSync,
    ReadAccess,
    SpentBudgetRepository,
    SyncRequests,
    UncountedEventsWorker,
  ],
  exports: [
    AccessedConversationRepository,
    ConversationAccessGuard,
    ConversationUpdates,
    EgressDenialRepository,
    EventQueries,
    EventsService,
    LogLeaseRepository,
    FollowedConversationRepository,
    LogSync,
    ReadAccess,
    SpentBudgetRepository,
    SyncRequests,
  ],
})
export class EventsModule {}
