import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';
import { McpConfigService } from '../mcp-config/mcp-config.service.js';
import { gitProviderProblem } from './git-provider-problem.js';
import { GitProviderError, type ProviderUser } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { AddGitProvidersDto } from './git-providers.dto.js';
import { ProviderCalls } from './repository-access.service.js';
import type { ProviderTokenWarning } from './tokens/plan-token-changes.js';
import { ProviderTokenRepository } from './tokens/provider-token.repository.js';
import { ProviderTokensService } from './tokens/provider-tokens.service.js';

/** Stores what `POST /api/add-git-providers` brings, all of it or nothing. */
@Injectable()
export class GitProvidersService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly tokens: ProviderTokensService,
    private readonly mcpConfigs: McpConfigService,
  ) {}

  /**
   * @returns tokens that were stored without a verdict of their provider
   * @throws InvalidInputError or DomainError as `ProviderTokensService.prepare` and `McpConfigService.store` do
   */
  async add(userId: string, body: AddGitProvidersDto): Promise<ProviderTokenWarning[]> {
    const prepared = await this.tokens.prepare(userId, body.provider_tokens ?? new Map(), [
      'body',
      'provider_tokens',
    ]);
    const { mcp_config: mcpConfig } = body;
    await this.dataSource.transaction(async (manager) => {
      if (mcpConfig !== undefined) {
        await this.mcpConfigs.store(manager, userId, mcpConfig, ['body', 'mcp_config']);
      }
      await this.tokens.store(manager, userId, prepared);
    });
    return prepared.warnings;
  }
}

const DEADLINE_MS = 12_000;

/** Tells who a user is at their git provider. */
@Injectable()
export class GitUserService {
  private readonly logger = new Logger(GitUserService.name);

  constructor(
    private readonly reader: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * The account at the first provider that the user has a token for, in the order of `PROVIDER_TYPES`.
   *
   * @throws DomainError no_git_provider without any token, else what the provider's failure means
   */
  async find(userId: string): Promise<ProviderUser> {
    const [credential] = await this.reader.list(userId);
    if (!credential) {
      throw new DomainError('unauthorized', 'no_git_provider', 'No providers set.');
    }
    try {
      return await this.registry
        .providerFor(credential.provider, credential.host)
        .getUser(credential, this.calls.within(DEADLINE_MS, userId, credential));
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('git provider failed', { provider: credential.provider, code: error.code });
      throw gitProviderProblem(credential.provider, error);
    }
  }
}
