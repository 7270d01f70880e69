import { Module, type DynamicModule } from '@nestjs/common';
import { AuditModule } from './audit/audit.module.js';
import { AuthModule } from './auth/auth.module.js';
import { AutomationsModule } from './automations/automations.module.js';
import { CryptoModule } from './common/crypto/crypto.module.js';
import type { CipherKey } from '@slipway/common/secret-cipher.js';
import type { AppConfig } from './config/app-config.js';
import { ConfigModule } from './config/config.module.js';
import type { DatabaseAddresses } from '@slipway/database/database-addresses.js';
import { DatabaseModule } from './database/database.module.js';
import { FollowModule } from './follow/follow.worker.js';
import { GitProvidersModule } from './git-providers/git-providers.module.js';
import { HealthModule } from './health/health.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { OrganizationsModule } from './organizations/organizations.module.js';
import { OutboundWebhooksModule } from './outbound-webhooks/outbound-webhooks.module.js';
import { SettingsModule } from './settings/settings.module.js';
import { SuggestedTasksModule } from './suggested-tasks/suggested-tasks.module.js';
import { ToolServerModule } from './tool-server/tool-server.module.js';
import { V0Module } from './v0/v0.module.js';
import { EgressModule } from './v1/egress/egress.module.js';
import { V1Module } from './v1/v1.module.js';
import { SandboxProxyModule } from './v1/sandbox-proxy/sandbox-proxy.module.js';
import { AppConversationsModule } from './v1/app-conversations/app-conversations.module.js';
import { EventsModule } from './v1/events/events.module.js';
import { PullRequestsModule } from './v1/pull-requests/pull-requests.module.js';

/** Known only at run time. */
export interface AppResources {
  addresses: DatabaseAddresses;
  encryptionKeys: readonly CipherKey[];
}

@Module({})
export class AppModule {
  static register(config: AppConfig, resources: AppResources): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.register(config),
        CryptoModule.register(resources.encryptionKeys),
        DatabaseModule.register(resources.addresses, config.database.poolSize, config.telemetry !== null),
        AuditModule,
        AuthModule,
        OrganizationsModule,
        GitProvidersModule,
        SettingsModule,
        OutboundWebhooksModule,
        SuggestedTasksModule,
        EgressModule,
        V1Module,
        SandboxProxyModule,
        AppConversationsModule,
        EventsModule,
        PullRequestsModule,
        FollowModule,
        AutomationsModule,
        V0Module,
        ToolServerModule,
        HealthModule,
        ObservabilityModule,
      ],
    };
  }
}
