import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DomainError, InvalidInputError, type InputProblem } from '../common/errors/domain-error.js';
import { OutboundAddresses } from '../common/http/host-allowlist.js';
import type { ProviderTokenWarning } from '../git-providers/tokens/plan-token-changes.js';
import { ProviderTokensService } from '../git-providers/tokens/provider-tokens.service.js';
import { McpConfigService } from '../mcp-config/mcp-config.service.js';
import type { SettingsDto } from './settings.dto.js';
import { SecretsService } from './secrets.service.js';
import { settingsChanges, type SettingsRow } from './settings-table.js';
import { SettingsRepository } from './settings.repository.js';

/** Stores and shows users' settings, with the tool servers, tokens and secrets that come along in one request. */
@Injectable()
export class SettingsService {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigService,
    private readonly secrets: SecretsService,
    private readonly tokens: ProviderTokensService,
    private readonly addresses: OutboundAddresses,
  ) {}

  /**
   * Merges a request into what is stored; all of it or nothing.
   *
   * @param also further work of the same transaction, which has locked the user
   * @returns a warning for each token that was stored although its provider gave no verdict
   * @throws InvalidInputError for rules that need more than the request to judge
   * @throws DomainError invalid_git_token when a provider rejects its token
   */
  async store(
    userId: string,
    dto: SettingsDto,
    also?: (manager: EntityManager) => Promise<void>,
  ): Promise<ProviderTokenWarning[]> {
    const problems = this.addressProblems(dto);
    if (problems.length > 0) {
      throw new InvalidInputError(problems);
    }
    const changes = settingsChanges(dto);
    const { mcp_config: mcpConfig, secrets_store: secretsStore } = dto;
    const mcpColumns = mcpConfig && this.mcpConfigs.toColumns(userId, mcpConfig);
    if (!also && secretsStore === undefined && (mcpConfig === undefined || mcpColumns)) {
      // Most requests by far: nothing has to be read, and no provider called, first.
      if (await this.settings.store(userId, changes, mcpColumns ?? undefined)) {
        return [];
      }
    }
    const tokens = await this.tokens.prepare(userId, secretsStore?.provider_tokens ?? new Map(), [
      'body',
      'secrets_store',
      'provider_tokens',
    ]);
    await this.settings.transaction(userId, async (manager) => {
      await this.settings.storeWithin(manager, userId, changes);
      await this.tokens.store(manager, userId, tokens);
      await this.secrets.mergeWithin(manager, userId, secretsStore?.custom_secrets ?? new Map());
      if (mcpConfig !== undefined) {
        await this.mcpConfigs.store(manager, userId, mcpConfig, ['body', 'mcp_config']);
      }
      await also?.(manager);
    });
    return tokens.warnings;
  }

  /** @throws DomainError not_found before anything was stored */
  async find(userId: string): Promise<SettingsRow> {
    const row = await this.settings.load(userId);
    if (!row) {
      throw settingsNotFound();
    }
    return row;
  }

  /** Addresses that the operator does not allow, in the order of the members. */
  private addressProblems({ llm_base_url: baseUrl, mcp_config: mcpConfig }: SettingsDto): InputProblem[] {
    const msg = typeof baseUrl === 'string' && baseUrl !== '' ? this.addresses.problem(baseUrl) : null;
    return [
      ...(msg === null ? [] : [{ loc: ['body', 'llm_base_url'], msg, type: 'value_error' }]),
      ...(mcpConfig ? this.mcpConfigs.addressProblems(mcpConfig, ['body', 'mcp_config']) : []),
    ];
  }
}

/** The error for a user who has not stored anything. */
export function settingsNotFound(): DomainError {
  return new DomainError('not_found', 'not_found', 'Settings not found');
}
