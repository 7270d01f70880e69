import { Module } from '@nestjs/common';
import { McpConfigModule } from '../../mcp-config/mcp-config.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { CurrentUserInfo, SandboxSecretsService } from './sandbox-settings.service.js';
import { CurrentUserController, SandboxSecretsController } from './sandbox-settings.controller.js';

/** What a sandbox may know of its owner: settings and secrets. */
@Module({
  imports: [SettingsModule, McpConfigModule, SandboxesModule],
  controllers: [CurrentUserController, SandboxSecretsController],
  providers: [CurrentUserInfo, SandboxSecretsService],
})
export class SandboxSettingsModule {}
