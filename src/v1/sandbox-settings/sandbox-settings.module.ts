import { Module } from '@nestjs/common';
import { SettingsModule } from '../../settings/settings.module.js';
import { AppConversationsModule } from '../app-conversations/app-conversations.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { CurrentUserController, SandboxSecretsController } from './sandbox-settings.controller.js';
import { SandboxSettingsService } from './sandbox-settings.service.js';

@Module({
  imports: [AppConversationsModule, SettingsModule, SandboxesModule],
  controllers: [CurrentUserController, SandboxSecretsController],
  providers: [SandboxSettingsService],
})
export class SandboxSettingsModule {}
