import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../../database/notifications/database-notifications.module.js';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { EventsModule } from '../events/events.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AppConversation } from './app-conversation.entity.js';
import { AppConversationsController } from './app-conversations.controller.js';
import { AppConversationsService } from './app-conversations.service.js';
import { ConversationActionsController } from './conversation-actions.controller.js';
import { ConversationActionsService } from './conversation-actions.service.js';
import { ConversationAnswers } from './conversation-answers.js';
import { ConversationExportController } from './export/conversation-export.controller.js';
import { ConversationExportService } from './export/conversation-export.service.js';
import { ConversationRemovalService } from './conversation-removal.service.js';
import { ConversationRenewal } from './conversation-renewal.js';
import { ConversationTitles } from './conversation-titles.js';
import { ConversationWorkspaceController } from './conversation-workspace.controller.js';
import { ConversationWorkspaceService } from './conversation-workspace.service.js';
import { ConversationsReader } from './conversations.reader.js';
import { SandboxRemoval } from './sandbox-removal.js';
import { ConversationStartModule } from './start/conversation-start.module.js';
import { StartRequests } from './start-requests.js';
import { StartStream } from './start-stream.js';
import { StartTask } from './start-task.entity.js';
import { StartTasksController } from './start-tasks.controller.js';
import { StartTasksReader } from './start-tasks.reader.js';
import { StartTasksService } from './start-tasks.service.js';
import { TaskForges } from './suggested-task/task-forges.js';

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
    ConversationAnswers,
    ConversationExportService,
    ConversationRemovalService,
    ConversationRenewal,
    ConversationTitles,
    ConversationWorkspaceService,
    ConversationsReader,
    SandboxRemoval,
    StartRequests,
    StartStream,
    StartTasksReader,
    StartTasksService,
    TaskForges,
  ],
})
export class AppConversationsModule {}
