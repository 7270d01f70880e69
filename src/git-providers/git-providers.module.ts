import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { AuthModule } from '../auth/auth.module.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig, proxyOf } from '../config/app-config.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { AgentGitTokensReader } from './tokens/agent-git-tokens.reader.js';
import {
  createGitProviderRegistry,
  GitProviderRegistry,
} from '@slipway/git-providers/git-provider.registry.js';
import { GitProvidersController, GitProvidersService } from './git-providers.controller.js';
import { gitProviderOptions, operatorHosts } from './operator-hosts.js';
import { ProviderCalls, ProviderReader } from './provider-reader.js';
import { GitHttpClient, ProviderMetrics } from './git-http.client.js';
import { RepositoryAccessService } from './repository-access.service.js';
import { RepositoryListsService } from './repository-lists.service.js';
import { ProviderToken, ProviderTokenRepository } from './tokens/provider-token.repository.js';
import { ProviderTokensService } from './tokens/provider-tokens.service.js';
import { InstallationTokens } from './tokens/installation-tokens.js';
import { StandIns } from './tokens/stand-ins.js';
import { TokenRenewals } from './tokens/token-renewals.js';

/** A page of 50 pull requests with long descriptions has 1.6 MB. */
const MAX_RESPONSE_BYTES = 2 * 1_048_576;

@Module({
  imports: [TypeOrmModule.forFeature([ProviderToken]), AuthModule, ObservabilityModule],
  controllers: [GitProvidersController],
  providers: [
    {
      provide: HostAllowlist,
      inject: [AppConfig],
      useFactory: ({ git }: AppConfig) => operatorHosts(git).allowlist,
    },
    {
      provide: GitHttpClient,
      inject: [AppConfig, HostAllowlist, ProviderMetrics],
      useFactory: ({ git, outbound }: AppConfig, allowlist: HostAllowlist, metrics: ProviderMetrics) =>
        new GitHttpClient(
          {
            allowlist,
            maxResponseBytes: MAX_RESPONSE_BYTES,
            timeoutMs: git.requestTimeoutMs,
            proxy: proxyOf(outbound),
          },
          metrics,
        ),
    },
    {
      provide: GitProviderRegistry,
      inject: [GitHttpClient, AppConfig, Clock],
      useFactory: (http: GitHttpClient, { git }: AppConfig, clock: Clock) =>
        createGitProviderRegistry(http, gitProviderOptions(git, clock)),
    },
    ProviderTokensService,
    ProviderTokenRepository,
    TokenRenewals,
    StandIns,
    InstallationTokens,
    ProviderCalls,
    ProviderMetrics,
    ProviderReader,
    GitProvidersService,
    RepositoryAccessService,
    RepositoryListsService,
    AgentGitTokensReader,
  ],
  exports: [
    ProviderTokensService,
    ProviderTokenRepository,
    TokenRenewals,
    InstallationTokens,
    ProviderCalls,
    ProviderReader,
    GitProviderRegistry,
    RepositoryAccessService,
    RepositoryListsService,
    AgentGitTokensReader,
  ],
})
export class GitProvidersModule {}
