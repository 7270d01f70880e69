import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AppConfig } from '../config/app-config.js';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { McpConfigModule } from '../mcp-config/mcp-config.module.js';
import { AgentSecretsReader } from './agent-secrets.reader.js';
import { CustomSecret, CustomSecretRepository } from './custom-secret.repository.js';
import { LlmProfile, LlmProfileRepository } from './llm-profile.repository.js';
import { createModelHttpClient, ModelCheck, ModelHttpClient } from './model-check.js';
import { SecretsController } from './secrets.controller.js';
import { SecretsService } from './secrets.service.js';
import { SettingsController } from './settings.controller.js';
import { Settings } from './settings.entity.js';
import { SettingsRepository } from './settings.repository.js';
import { SettingsService } from './settings.service.js';

/** Users' settings and custom secrets. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Settings, CustomSecret, LlmProfile]),
    McpConfigModule,
    GitProvidersModule,
  ],
  controllers: [SettingsController, SecretsController],
  providers: [
    { provide: ModelHttpClient, inject: [AppConfig], useFactory: createModelHttpClient },
    ModelCheck,
    SettingsService,
    SettingsRepository,
    SecretsService,
    CustomSecretRepository,
    LlmProfileRepository,
    AgentSecretsReader,
  ],
  exports: [
    SettingsRepository,
    SettingsService,
    LlmProfileRepository,
    SecretsService,
    AgentSecretsReader,
    ModelCheck,
  ],
})
export class SettingsModule {}
