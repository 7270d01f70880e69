import { Logger, Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from '../config/app-config.js';
import { EgressRulebookModule } from '../config/egress-rulebook.js';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { ChangedModelCheck } from './flat/changed-model.check.js';
import { SettingsController } from './flat/settings.controller.js';
import { SettingsService } from './flat/settings.service.js';
import { McpConfig, McpConfigRepository } from './mcp/mcp-config.repository.js';
import { McpConfigService } from './mcp/mcp-config.service.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { createModelHttpClient, ModelHttpClient, OPEN_ADDRESSES } from './model-http.client.js';
import { ModelCheck } from '@slipway/models/model-check.js';
import { ModelTrialController } from './model-trial/model-trial.controller.js';
import { TRIAL_MS } from '@slipway/models/model-trial.js';
import { ModelTrialHttpClient, ModelTrialService } from './model-trial/model-trial.service.js';
import { NestedSettingsController } from './nested/nested-settings.controller.js';
import { NestedSettingsService } from './nested/nested-settings.service.js';
import { OperatorDefaults } from './operator-defaults.js';
import { OrganizationSecretsController } from './organization/organization-secrets.controller.js';
import { OrganizationSettingsController } from './organization/organization-settings.controller.js';
import { LlmProfile, LlmProfileRepository } from './profiles/llm-profile.repository.js';
import { OrganizationProfilesController, ProfilesController } from './profiles/profiles.controller.js';
import { ProfilesService } from './profiles/profiles.service.js';
import { AgentSecretsReader } from './secrets/agent-secrets.reader.js';
import { CustomSecret, CustomSecretRepository } from './secrets/custom-secret.repository.js';
import { GitTokensController, GitTokensService } from './secrets/git-tokens.controller.js';
import { SecretsController, SecretsV1Controller } from './secrets/secrets.controller.js';
import { SettingsCipher, SettingsRepository, Settings } from './settings.repository.js';
import { SharedSettings } from './shared-settings.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([Settings, CustomSecret, LlmProfile, McpConfig]),
    EgressRulebookModule,
    GitProvidersModule,
  ],
  controllers: [
    GitTokensController,
    SettingsController,
    NestedSettingsController,
    ProfilesController,
    OrganizationProfilesController,
    OrganizationSettingsController,
    OrganizationSecretsController,
    SecretsController,
    SecretsV1Controller,
    ModelTrialController,
  ],
  providers: [
    {
      provide: OutboundAddresses,
      inject: [AppConfig],
      useFactory: ({ outbound }: AppConfig) => new OutboundAddresses(outbound.allowlist),
    },
    { provide: ModelHttpClient, inject: [AppConfig], useFactory: createModelHttpClient },
    {
      provide: ModelTrialHttpClient,
      inject: [AppConfig],
      useFactory: (config: AppConfig) => createModelHttpClient(config, TRIAL_MS),
    },
    ModelTrialService,
    ModelCatalogue,
    {
      provide: ModelCheck,
      inject: [ModelHttpClient, OutboundAddresses],
      useFactory: (http: ModelHttpClient, addresses: OutboundAddresses) =>
        new ModelCheck(http, addresses, OPEN_ADDRESSES, new Logger(ModelCheck.name)),
    },
    OperatorDefaults,
    SettingsCipher,
    SettingsRepository,
    SharedSettings,
    SettingsService,
    ChangedModelCheck,
    NestedSettingsService,
    LlmProfileRepository,
    ProfilesService,
    CustomSecretRepository,
    AgentSecretsReader,
    GitTokensService,
    McpConfigRepository,
    McpConfigService,
  ],
  exports: [
    OutboundAddresses,
    ModelCatalogue,
    OperatorDefaults,
    SettingsRepository,
    NestedSettingsService,
    LlmProfileRepository,
    AgentSecretsReader,
    McpConfigRepository,
  ],
})
export class SettingsModule implements OnModuleInit {
  constructor(
    private readonly config: AppConfig,
    private readonly catalogue: ModelCatalogue,
  ) {}

  async onModuleInit(): Promise<void> {
    const { modelPricesFile: file } = this.config.agent;
    if (file !== null) {
      await this.catalogue.readPrices('MODEL_PRICES_FILE', file);
    }
  }
}
