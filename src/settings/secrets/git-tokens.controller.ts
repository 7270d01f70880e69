import { Body, Controller, Post, Injectable } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import type { ProviderTokenWarning } from '../../git-providers/tokens/plan-token-changes.js';
import { ProviderTokenRepository } from '../../git-providers/tokens/provider-token.repository.js';
import { ProviderTokensService } from '../../git-providers/tokens/provider-tokens.service.js';
import { McpConfigService } from '../mcp/mcp-config.service.js';
import { OF_USERS, OfUsers } from '../settings-owner.js';
import { SettingsRepository } from '../settings.repository.js';
import {
  AddGitProvidersDto,
  type GitProvidersStoredDto,
  type GitProvidersUnsetDto,
  REMOVE_TOKENS,
  STORE_TOKENS,
  toGitProvidersStoredDto,
  TOKENS_REMOVED,
} from './git-tokens.dto.js';

@Injectable()
export class GitTokensService {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly tokens: ProviderTokensService,
    private readonly credentials: ProviderTokenRepository,
    private readonly mcpConfigs: McpConfigService,
  ) {}

  /**
   * Stores what `POST /api/add-git-providers` brings, all of it or nothing.
   * @returns tokens that were stored without a verdict of their provider
   * @throws InvalidInputError or DomainError as `ProviderTokensService.prepare` and `McpConfigService.store` do
   */
  async add(
    userId: string,
    { provider_tokens: inputs = new Map(), mcp_config: mcpConfig }: AddGitProvidersDto,
  ): Promise<ProviderTokenWarning[]> {
    const prepared = await this.tokens.prepare(userId, inputs, ['body', 'provider_tokens']);
    await this.settings.transaction(userId, async (manager) => {
      if (mcpConfig !== undefined) {
        await this.mcpConfigs.store(manager, userId, mcpConfig, ['body', 'mcp_config']);
      }
      await this.tokens.store(manager, userId, prepared);
    });
    return prepared.warnings;
  }

  async removeAll(userId: string): Promise<void> {
    await this.credentials.removeAll(userId);
  }
}

@ApiTags('Git providers')
@OfUsers(OF_USERS.gitTokens)
@Controller('api')
export class GitTokensController {
  constructor(private readonly tokens: GitTokensService) {}

  @Post('add-git-providers')
  @ApiRoute('store_provider_tokens_', STORE_TOKENS.summary, STORE_TOKENS)
  async add(@UserId() userId: string, @Body() body: AddGitProvidersDto): Promise<GitProvidersStoredDto> {
    return toGitProvidersStoredDto(await this.tokens.add(userId, body));
  }

  @Post('unset-provider-tokens')
  @ApiRoute('unset_provider_tokens_', REMOVE_TOKENS.summary, REMOVE_TOKENS)
  async unset(@UserId() userId: string): Promise<GitProvidersUnsetDto> {
    await this.tokens.removeAll(userId);
    return TOKENS_REMOVED;
  }
}
