import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../../../database/notifications/database-notifications.module.js';
import { JobsModule } from '../../../database/jobs/jobs.module.js';
import { GitProvidersModule } from '../../../git-providers/git-providers.module.js';
import { McpConfigModule } from '../../../mcp-config/mcp-config.module.js';
import { MetricsModule } from '../../../metrics/metrics.module.js';
import { SettingsModule } from '../../../settings/settings.module.js';
import { AgentServersModule } from '../../agent-servers/agent-servers.module.js';
import { EventsModule } from '../../events/events.module.js';
import { IdempotencyModule } from '../../idempotency/idempotency.module.js';
import { SandboxSpecsModule } from '../../sandbox-specs/sandbox-specs.module.js';
import { Sandbox } from '../../sandboxes/sandbox.entity.js';
import { SandboxesModule } from '../../sandboxes/sandboxes.module.js';
import { AgentCredentials } from '../agent-request/agent-credentials.js';
import { AgentInputsReader } from '../agent-request/agent-inputs.reader.js';
import { AgentRequests } from '../agent-request/agent-requests.js';
import { GitAccessReader } from '../agent-request/git-access.reader.js';
import { ModelCatalogue } from '../agent-request/model-catalogue.js';
import { AppConversation } from '../app-conversation.entity.js';
import { ConversationRestore } from '../restore/conversation-restore.js';
import { ConversationRevival } from '../restore/conversation-revival.js';
import { RestorableConversations } from '../restore/restorable-conversations.js';
import { SandboxRemoval } from '../sandbox-removal.js';
import { StartTask } from '../start-task.entity.js';
import { AbandonedStarts } from './abandoned-starts.js';
import { BeginConversationStep } from './begin-conversation.step.js';
import { ConversationRows } from './conversation-rows.js';
import { ConversationStarter } from './conversation-starter.js';
import { PrepareRepositoryStep } from './prepare-repository.step.js';
import { RepositoryMaker } from '../repository/repository-maker.js';
import { RepositoryPlans } from '../repository/repository-plans.js';
import { SandboxChanges } from './sandbox-changes.js';
import { SandboxReadiness } from './sandbox-readiness.js';
import { SandboxSteps } from './sandbox-steps.js';
import { SetUpStep } from './set-up.step.js';
import { StartDrafts } from './start-drafts.js';
import { StartEnds } from './start-ends.js';
import { StartGauges } from './start-gauges.js';
import { StartJobs } from './start-jobs.js';
import { StartPlaces } from './start-places.js';
import { StartSandboxMaker } from './start-sandbox.maker.js';
import { StartSandboxReader } from './start-sandbox.reader.js';
import { StartSandboxes } from './start-sandboxes.js';
import { StartSteps } from './start-steps.js';
import { StartTargets } from './start-targets.js';
import { StartTaskStore } from './start-task.store.js';
import { StartWalker } from './start-walker.js';
import { StartWorker } from './start-worker.js';

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
    ConversationRevival,
    ConversationRows,
    ConversationStarter,
    PrepareRepositoryStep,
    RepositoryMaker,
    RestorableConversations,
    RepositoryPlans,
    SandboxChanges,
    SandboxReadiness,
    SandboxRemoval,
    SandboxSteps,
    SetUpStep,
    StartDrafts,
    StartEnds,
    StartGauges,
    StartJobs,
    StartPlaces,
    StartSandboxMaker,
    StartSandboxReader,
    StartSandboxes,
    StartSteps,
    StartTargets,
    StartTaskStore,
    StartWalker,
    StartWorker,
  ],
  exports: [AgentCredentials, ConversationStarter],
})
export class ConversationStartModule {}
