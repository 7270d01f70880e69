import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Clock } from '../common/clock.js';
import { HostAllowlist } from '../common/http/host-allowlist.js';
import { AppConfig } from '../config/app-config.js';
import { McpConfigModule } from '../mcp-config/mcp-config.module.js';
import { AgentGitTokensReader } from './agent-git-tokens.reader.js';
import {
  ChangeRequestsService,
  CloneAccessService,
  ProviderCalls,
  RepositoryCredentials,
} from './repository-access.service.js';
import { createGitProviderRegistry } from './create-git-provider-registry.js';
import { GitHttpClient } from './provider-http.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import { GitProvidersController } from './git-providers.controller.js';
import { GitProvidersService, GitUserService } from './git-providers.service.js';
import { operatorHosts } from './operator-hosts.js';
import { ProviderTokenChecker, ProviderTokensService } from './tokens/provider-tokens.service.js';
import { ProviderToken } from './tokens/provider-token.entity.js';
import { ProviderTokenRepository } from './tokens/provider-token.repository.js';

/** Largest answer of a git host that is read. */
const MAX_RESPONSE_BYTES = 5 * 1_048_576;

/** Git-provider tokens, and the adapters that speak to the providers. */
@Module({
  imports: [TypeOrmModule.forFeature([ProviderToken]), McpConfigModule],
  controllers: [GitProvidersController],
  providers: [
    {
      provide: HostAllowlist,
      inject: [AppConfig],
      useFactory: ({ git }: AppConfig) => operatorHosts(git).allowlist,
    },
    {
      provide: GitHttpClient,
      inject: [AppConfig, HostAllowlist],
      useFactory: ({ git, outbound }: AppConfig, allowlist: HostAllowlist) =>
        new GitHttpClient({
          allowlist,
          maxResponseBytes: MAX_RESPONSE_BYTES,
          timeoutMs: git.requestTimeoutMs,
          ...(outbound.proxyUrl !== null && {
            proxy: {
              url: outbound.proxyUrl,
              ...(outbound.noProxy !== null && { noProxy: outbound.noProxy }),
            },
          }),
        }),
    },
    {
      provide: GitProviderRegistry,
      inject: [GitHttpClient, AppConfig, Clock],
      useFactory: (http: GitHttpClient, { git }: AppConfig, clock: Clock) =>
        createGitProviderRegistry(http, git, operatorHosts(git).ssoHost, clock),
    },
    ProviderTokenChecker,
    ProviderTokensService,
    ProviderTokenRepository,
    GitProvidersService,
    GitUserService,
    ProviderCalls,
    RepositoryCredentials,
    CloneAccessService,
    ChangeRequestsService,
    AgentGitTokensReader,
  ],
  exports: [
    ProviderTokensService,
    ProviderTokenRepository,
    GitProviderRegistry,
    CloneAccessService,
    ChangeRequestsService,
    AgentGitTokensReader,
  ],
})
export class GitProvidersModule {}
