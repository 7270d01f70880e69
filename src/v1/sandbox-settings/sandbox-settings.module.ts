import { Module } from '@nestjs/common';
import { McpConfigModule } from '../../mcp-config/mcp-config.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { NestedSettingsModule } from '../settings/nested-settings.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { CurrentUserController, SandboxSecretsController } from './sandbox-settings.controller.js';
import { SandboxSettingsService } from './sandbox-settings.service.js';

@Module({
  imports: [AppConversationsModule, SettingsModule, NestedSettingsModule, McpConfigModule, SandboxesModule],
  controllers: [CurrentUserController, SandboxSecretsController],
  providers: [SandboxSettingsService],
})
export class SandboxSettingsModule {}
