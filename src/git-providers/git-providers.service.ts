import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { McpConfigStore } from '../mcp-config/mcp-config.store.js';
import type { AddGitProvidersDto } from './dto/add-git-providers.dto.js';
import type { ProviderTokenWarning } from './tokens/provider-token-input.js';
import { ProviderTokensService } from './tokens/provider-tokens.service.js';

/** Stores what `POST /api/add-git-providers` brings, all of it or nothing. */
@Injectable()
export class GitProvidersService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly tokens: ProviderTokensService,
    private readonly mcpConfigs: McpConfigStore,
  ) {}

  /**
   * @returns tokens that were stored without a verdict of their provider
   * @throws InvalidInputError or DomainError as `ProviderTokensService.prepare` and `McpConfigStore.store` do
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
