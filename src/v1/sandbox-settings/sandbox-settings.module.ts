import { Module } from '@nestjs/common';
import { McpConfigModule } from '../../mcp-config/mcp-config.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { CurrentUserInfo } from './current-user-info.js';
import { CurrentUserController } from './current-user.controller.js';
import { SandboxSecretsController } from './sandbox-secrets.controller.js';
import { SandboxSecretsService } from './sandbox-secrets.service.js';

/** What a sandbox may know of its owner: settings and secrets. */
@Module({
  imports: [SettingsModule, McpConfigModule, SandboxesModule],
  controllers: [CurrentUserController, SandboxSecretsController],
  providers: [CurrentUserInfo, SandboxSecretsService],
})
export class SandboxSettingsModule {}
