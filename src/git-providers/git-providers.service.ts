import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';
import { McpConfigService } from '../mcp-config/mcp-config.service.js';
import { gitProviderProblem } from './git-provider-problem.js';
import { GitProviderError, type ProviderUser } from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import type { AddGitProvidersDto } from './git-providers.dto.js';
import { ProviderCalls } from './provider-calls.js';
import type { ProviderTokenWarning } from './tokens/plan-token-changes.js';
import { ProviderTokenRepository } from './tokens/provider-token.repository.js';
import { ProviderTokensService } from './tokens/provider-tokens.service.js';

const ACCOUNT_TIMEOUT_MS = 12_000;

@Injectable()
export class GitProvidersService {
  private readonly logger = new Logger(GitProvidersService.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly tokens: ProviderTokensService,
    private readonly credentials: ProviderTokenRepository,
    private readonly mcpConfigs: McpConfigService,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * Stores all of a `POST /api/add-git-providers` body, or nothing.
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

  /** Removes all tokens of a user. */
  async removeTokens(userId: string): Promise<void> {
    await this.credentials.removeAll(userId);
  }

  /**
   * The account at the user's first provider in the order of `PROVIDER_TYPES`.
   * @throws DomainError no_git_provider without a token, else what the provider's failure means
   */
  async findAccount(userId: string): Promise<ProviderUser> {
    const [credential] = await this.credentials.list(userId);
    if (!credential) {
      throw new DomainError('unauthorized', 'no_git_provider', 'No providers set.');
    }
    const { provider, host } = credential;
    try {
      const adapter = await this.registry.providerFor(provider, host);
      const call = this.calls.withStored(ACCOUNT_TIMEOUT_MS, userId, credential);
      return await adapter.getUser(credential, call);
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('failed to read the account at a git provider', { provider, code: error.code });
      throw gitProviderProblem(provider, error);
    }
  }
}
