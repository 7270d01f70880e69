import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { SettingsModule } from '../settings/settings.module.js';
import { SuggestedTasksModule } from '../suggested-tasks/suggested-tasks.module.js';
import { AppConversationsModule } from './app-conversations/app-conversations.module.js';
import { EventsModule } from './events/events.module.js';
import {
  RepositoryListsController,
  SuggestedTaskPagesController,
} from './git/repository-lists.controller.js';
import { ModelsController } from './models/models.controller.js';
import { ModelsService } from './models/models.service.js';
import {
  CurrentUserController,
  SandboxSecretsController,
} from './sandbox-settings/sandbox-settings.controller.js';
import { SandboxSecretsService } from './sandbox-settings/sandbox-secrets.service.js';
import { SandboxSettingsService } from './sandbox-settings/sandbox-settings.service.js';
import { SandboxesModule } from './sandboxes/sandboxes.module.js';
import { SkillsController } from './skills/skills.controller.js';
import { WebClientController } from './web-client/web-client.controller.js';
import { AgentServerWebhooksController } from './webhooks/agent-server-webhooks.controller.js';
import { AgentServerWebhooksService } from './webhooks/agent-server-webhooks.service.js';

/** Routes over the services of others, which nothing else builds on. */
@Module({
  imports: [
    AuthModule,
    AppConversationsModule,
    EventsModule,
    GitProvidersModule,
    SandboxesModule,
    SettingsModule,
    SuggestedTasksModule,
  ],
  controllers: [
    SuggestedTaskPagesController,
    RepositoryListsController,
    CurrentUserController,
    SandboxSecretsController,
    ModelsController,
    SkillsController,
    WebClientController,
    AgentServerWebhooksController,
  ],
  providers: [SandboxSettingsService, SandboxSecretsService, ModelsService, AgentServerWebhooksService],
})
export class V1Module {}
