import { Module } from '@nestjs/common';
import { GitProvidersModule } from '../../git-providers/git-providers.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { SecretsV1Controller } from './secrets-v1.controller.js';

/** Custom secrets and git tokens under `/api/v1/secrets`. */
@Module({
  imports: [SettingsModule, GitProvidersModule],
  controllers: [SecretsV1Controller],
})
export class SecretsV1Module {}
