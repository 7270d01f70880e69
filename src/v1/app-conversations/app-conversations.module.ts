import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuthModule } from '../../auth/auth.module.js';
import { LeasedWorkModule } from '../../database/leased-work.module.js';
import { DatabaseNotificationsModule } from '../../database/database-notifications.module.js';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { ObservabilityModule } from '../../observability/observability.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { OutboundWebhooksModule } from '../../outbound-webhooks/outbound-webhooks.module.js';
import { UsageModule } from '../../usage/usage.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { EventsModule } from '../events/events.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.service.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { OperatorSkills } from '../skills/operator-skills.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { ConversationAdopter } from './adoption/conversation.adopter.js';
import { ConversationAdoptionService } from './adoption/conversation-adoption.service.js';
import { ChangesKeeper } from './kept-changes/changes.keeper.js';
import { ChangesReader } from './kept-changes/changes.reader.js';
import { FileLists } from './kept-changes/file-lists.js';
import { KeptChanges, KeptChangesRepository } from './kept-changes/kept-changes.repository.js';
import { FollowedPullRequest } from './followed/followed-pull-request.entity.js';
import { FollowedPullRequestRepository } from './followed/followed-pull-request.repository.js';
import { AgentInputsReader } from './agent-request/agent-inputs.reader.js';
import { AgentRequestBuilder } from './agent-request/agent-request.builder.js';
import { CredentialsBuilder } from './agent-request/credentials.builder.js';
import { GitAccessReader } from './agent-request/git-access.reader.js';
import { AcpAgents } from './agent-request/acp-agents.js';
import { OwnToolServer } from './agent-request/own-tool-server.js';
import { AppConversationsController } from './api/app-conversations.controller.js';
import {
  ConversationActionsController,
  PendingMessagesController,
} from './api/conversation-actions.controller.js';
import { ConversationFolderController } from './api/conversation-folder.controller.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import { DownloadSender } from './api/download.sender.js';
import { OrganizationConversationsController } from './api/organization-conversations.controller.js';
import { OrganizationConversationQueries } from './organization-conversation.queries.js';
import { StartTasksController } from './api/start-tasks.controller.js';
import { ConversationActionsService } from './conversation-actions.service.js';
import { ConversationResumeWorker } from './conversation-resume.worker.js';
import { ConversationTitlesService } from './conversation-titles.service.js';
import { ConversationWorkspaceService } from './conversation-workspace.service.js';
import { AppConversation } from './conversation.entity.js';
import { ConversationExport } from './conversation-export.js';
import { ConversationHandOverService } from './conversation-hand-over.service.js';
import { ConversationMetrics } from './conversation.metrics.js';
import { ConversationQueries } from './conversation.queries.js';
import { ConversationRepository, RemovedConversation } from './conversation.repository.js';
import { ConversationRestorer } from './conversation.restorer.js';
import { ConversationsService } from './conversations.service.js';
import { CredentialRefreshService } from './credential-refresh.service.js';
import { AgentKeysReader } from './outside-credentials/agent-keys.reader.js';
import { GitInjections } from './outside-credentials/git-injections.js';
import { HolderReader } from './outside-credentials/holder-reads.js';
import { OutsideCredentials } from './outside-credentials/outside-credentials.js';
import { PlaceholderRepository, SandboxPlaceholder } from './outside-credentials/placeholder.repository.js';
import { RepositoryHosts } from './outside-credentials/repository-hosts.js';
import { PendingMessage, PendingMessageRepository } from './pending/pending-message.repository.js';
import { PendingMessagesService } from './pending/pending-messages.service.js';
import { PendingMessagesWorker } from './pending/pending-messages.worker.js';
import { ModelSwitchService } from './model-switch.service.js';
import { RunningConversations } from './running-conversations.js';
import { StartTask } from './start-task.entity.js';
import { StartTaskQueries } from './start-task.queries.js';
import { StartTaskRepository } from './start-task.repository.js';
import { AwaitSandboxStep } from './start/await-sandbox.step.js';
import { BeginConversationStep } from './start/begin-conversation.step.js';
import { ConversationStarter } from './start/conversation-starter.js';
import { Delegation } from './start/delegation.js';
import { PrepareRepositoryStep } from './start/prepare-repository.step.js';
import { RepositoryCheckout } from './start/repository-checkout.js';
import { SetUpStep } from './start/set-up.step.js';
import { StartAdmission } from './start/start-admission.js';
import { StartRequestReader } from './start/start-request.reader.js';
import { StartRequestResolver } from './start/start-request.resolver.js';
import { StartSteps } from './start/start-steps.js';
import { StartStream } from './start/start-stream.js';
import { StartWorkflow } from './start/start-workflow.js';
import { AbandonedStartsReaper, StartWorker } from './start/start.worker.js';
import { WorkPlaces } from './work-places/work-places.service.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([
      AppConversation,
      FollowedPullRequest,
      KeptChanges,
      StartTask,
      RemovedConversation,
      PendingMessage,
      SandboxPlaceholder,
    ]),
    AgentServersModule,
    AuthModule,
    DatabaseNotificationsModule,
    EventsModule,
    GitProvidersModule,
    IdempotencyModule,
    LeasedWorkModule,
    ObservabilityModule,
    SandboxSpecsModule,
    SandboxesModule,
    OutboundWebhooksModule,
    SettingsModule,
    UsageModule,
  ],
  controllers: [
    AppConversationsController,
    StartTasksController,
    ConversationActionsController,
    PendingMessagesController,
    ConversationFolderController,
    OrganizationConversationsController,
  ],
  providers: [
    // Actions of users.
    ConversationsService,
    ConversationExport,
    ConversationRepository,
    FollowedPullRequestRepository,
    ConversationQueries,
    OrganizationConversationQueries,
    ConversationPresenter,
    DownloadSender,
    ConversationActionsService,
    RunningConversations,
    ConversationWorkspaceService,
    OperatorSkills,
    ConversationTitlesService,
    ConversationMetrics,
    ChangesKeeper,
    ChangesReader,
    FileLists,
    ConversationHandOverService,
    KeptChangesRepository,
    ConversationResumeWorker,
    ConversationRestorer,
    CredentialRefreshService,
    ModelSwitchService,
    ConversationAdoptionService,
    ConversationAdopter,
    PendingMessageRepository,
    PendingMessagesService,
    PendingMessagesWorker,
    // Starts, and requests for agents.
    AbandonedStartsReaper,
    AgentInputsReader,
    GitAccessReader,
    AgentRequestBuilder,
    AwaitSandboxStep,
    BeginConversationStep,
    CredentialsBuilder,
    ConversationStarter,
    Delegation,
    AcpAgents,
    AgentKeysReader,
    GitInjections,
    HolderReader,
    OutsideCredentials,
    OwnToolServer,
    PlaceholderRepository,
    PrepareRepositoryStep,
    RepositoryCheckout,
    RepositoryHosts,
    SetUpStep,
    StartAdmission,
    StartRequestReader,
    StartRequestResolver,
    StartSteps,
    StartStream,
    StartTaskQueries,
    StartTaskRepository,
    StartWorker,
    StartWorkflow,
    WorkPlaces,
  ],
  exports: [
    OperatorSkills,
    AcpAgents,
    ConversationActionsService,
    ConversationAdoptionService,
    ConversationPresenter,
    ConversationQueries,
    ConversationRepository,
    ConversationStarter,
    ConversationWorkspaceService,
    ConversationsService,
    Delegation,
    FollowedPullRequestRepository,
    OutsideCredentials,
    OwnToolServer,
    PendingMessagesService,
    RunningConversations,
    RepositoryHosts,
    StartTaskQueries,
    StartTaskRepository,
    WorkPlaces,
  ],
})
export class AppConversationsModule {}
