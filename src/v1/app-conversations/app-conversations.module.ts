import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { JobsModule } from '../../database/jobs/jobs.module.js';
import { DatabaseNotificationsModule } from '../../database/notifications/database-notifications.js';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { McpConfigModule } from '../../mcp-config/mcp-config.module.js';
import { MetricsModule } from '../../metrics/metrics.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { EventsModule } from '../events/events.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentCredentials } from './agent-request/agent-credentials.js';
import { AgentRequests } from './agent-request/agent-request.js';
import { AgentInputsReader } from './agent-request/agent-settings.js';
import { GitAccessReader } from './agent-request/git-access.js';
import { ModelCatalogue } from './agent-request/model-catalogue.js';
import {
  AppConversationsController,
  ConversationExportController,
} from './api/app-conversations.controller.js';
import {
  ConversationActionsController,
  ConversationWorkspaceController,
} from './api/conversation-actions.controller.js';
import { ConversationPresenter } from './api/conversation.presenter.js';
import { StartTasksController } from './api/start-tasks.controller.js';
import { ConversationActionsService, CredentialRefresh } from './conversation-actions.service.js';
import { ConversationExportService } from './conversation-export.service.js';
import { ConversationRestore, ConversationResume, RestorableConversations } from './conversation-restore.js';
import { ConversationTitles } from './conversation-titles.js';
import { ConversationWorkspaceService } from './conversation-workspace.service.js';
import { AppConversation } from './conversation.entity.js';
import { ConversationRepository, ConversationQueries } from './conversation.repository.js';
import {
  AppConversationsService,
  ConversationRemovalService,
  SandboxRemoval,
} from './conversations.service.js';
import { StartTask } from './start-task.entity.js';
import { StartTaskQueries, StartTaskRepository } from './start-task.repository.js';
import {
  SandboxChanges,
  SandboxReadiness,
  StartSandboxMaker,
  StartSandboxReader,
  StartTargets,
} from './start/await-sandbox.js';
import { BeginConversationStep } from './start/begin-conversation.step.js';
import { ConversationStarter, StartDrafts, StartPlaces } from './start/conversation-starter.js';
import { PrepareRepositoryStep, RepositoryPlans } from './start/prepare-repository.step.js';
import { RepositoryMaker } from './start/repository-checkout.js';
import { SetUpStep } from './start/set-up.step.js';
import { StartJobs } from './start/start-queue.js';
import { StartSandboxes } from './start/start-sandbox.js';
import { StartStream } from './start/start-stream.js';
import { StartRequests, StartTasksService } from './start/start-tasks.service.js';
import { StartSandboxSteps, StartEnds, StartSteps, StartWorkflow } from './start/start-workflow.js';
import { StartMetrics } from './start/start.metrics.js';
import { AbandonedStarts, StartWorker } from './start/start.worker.js';
import { TaskGitServers } from './suggested-task/task-forges.js';

/** How conversations begin, what their agents are given, and given again. */
@Module({
  imports: [
    TypeOrmModule.forFeature([StartTask, AppConversation, Sandbox]),
    DatabaseNotificationsModule,
    JobsModule,
    MetricsModule,
    SettingsModule,
    McpConfigModule,
    GitProvidersModule,
    AgentServersModule,
    EventsModule,
    IdempotencyModule,
    SandboxSpecsModule,
    SandboxesModule,
  ],
  providers: [
    AbandonedStarts,
    AgentCredentials,
    AgentInputsReader,
    AgentRequests,
    GitAccessReader,
    ModelCatalogue,
    BeginConversationStep,
    ConversationRestore,
    ConversationResume,
    ConversationRepository,
    ConversationStarter,
    PrepareRepositoryStep,
    RepositoryMaker,
    RestorableConversations,
    RepositoryPlans,
    SandboxChanges,
    SandboxReadiness,
    SandboxRemoval,
    StartSandboxSteps,
    SetUpStep,
    StartDrafts,
    StartEnds,
    StartMetrics,
    StartJobs,
    StartPlaces,
    StartSandboxMaker,
    StartSandboxReader,
    StartSandboxes,
    StartSteps,
    StartTargets,
    StartTaskRepository,
    StartWorkflow,
    StartWorker,
  ],
  exports: [AgentCredentials, ConversationStarter],
})
class ConversationStartModule {}

/** Conversations as clients see them: started, listed, continued, removed. */
@Module({
  imports: [
    TypeOrmModule.forFeature([AppConversation, StartTask]),
    AgentServersModule,
    ConversationStartModule,
    DatabaseNotificationsModule,
    EventsModule,
    GitProvidersModule,
    SandboxSpecsModule,
    SandboxesModule,
  ],
  controllers: [
    AppConversationsController,
    StartTasksController,
    ConversationActionsController,
    ConversationWorkspaceController,
    ConversationExportController,
  ],
  providers: [
    AppConversationsService,
    ConversationActionsService,
    ConversationPresenter,
    ConversationExportService,
    ConversationRemovalService,
    CredentialRefresh,
    ConversationTitles,
    ConversationWorkspaceService,
    ConversationQueries,
    SandboxRemoval,
    StartRequests,
    StartStream,
    StartTaskQueries,
    StartTasksService,
    TaskGitServers,
  ],
})
export class AppConversationsModule {}
