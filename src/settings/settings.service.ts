import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { DomainError, InvalidInputError, type InputProblem } from '../common/errors/domain-error.js';
import { ProviderTokensService } from '../git-providers/tokens/provider-tokens.service.js';
import { McpConfigService } from '../mcp-config/mcp-config.service.js';
import { type CheckedModel, headersIn, ModelCheck } from './model-check.js';
import type { SettingsDto, StoredWarning } from './settings.dto.js';
import { SecretsService } from './secrets.service.js';
import { type SettingsChanges, settingsChanges, type SettingsRow } from './settings-table.js';
import { SettingsRepository, type StoredModel } from './settings.repository.js';

/** What decides where a model is called, and with which key. */
const MODEL_COLUMNS = ['llm_model', 'llm_base_url', 'llm_api_key'] as const;

/** Stores and shows users' settings, with the tool servers, tokens and secrets that come along in one request. */
@Injectable()
export class SettingsService {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigService,
    private readonly secrets: SecretsService,
    private readonly tokens: ProviderTokensService,
    private readonly addresses: OutboundAddresses,
    private readonly models: ModelCheck,
  ) {}

  /**
   * Merges a request into what is stored; all of it or nothing.
   *
   * @param also further work of the same transaction, which has locked the user
   * @returns a warning for each token that was stored although its provider gave no verdict, and one for a changed model
   *   that its server does not accept
   * @throws InvalidInputError for rules that need more than the request to judge
   * @throws DomainError invalid_git_token when a provider rejects its token
   */
  async store(
    userId: string,
    dto: SettingsDto,
    also?: (manager: EntityManager) => Promise<void>,
  ): Promise<StoredWarning[]> {
    const changes = settingsChanges(dto);
    const { warnings, before } = await this.storeChanges(userId, dto, changes, also);
    if (!MODEL_COLUMNS.some((column) => changes.has(column)) || (!also && changesNothing(changes, before))) {
      return warnings;
    }
    const { settings, keys, details } = await this.settings.loadWithKeys(userId);
    const after = checkedModel({
      llm_model: settings?.llm_model ?? null,
      llm_base_url: settings?.llm_base_url ?? null,
      llm_api_key: keys.llm_api_key,
      details,
    });
    const warning = isDeepStrictEqual(checkedModel(before), after)
      ? null
      : await this.models.warning(userId, after);
    return warning === null ? warnings : [...warnings, warning];
  }

  private async storeChanges(
    userId: string,
    dto: SettingsDto,
    changes: SettingsChanges,
    also: ((manager: EntityManager) => Promise<void>) | undefined,
  ): Promise<{ warnings: StoredWarning[]; before: StoredModel }> {
    const problems = this.addressProblems(dto);
    if (problems.length > 0) {
      throw new InvalidInputError(problems);
    }
    const { mcp_config: mcpConfig, secrets_store: secretsStore } = dto;
    const mcpColumns = mcpConfig && this.mcpConfigs.toColumns(userId, mcpConfig);
    if (!also && secretsStore === undefined && (mcpConfig === undefined || mcpColumns)) {
      // Most requests by far: nothing has to be read, and no provider called, first.
      const before = await this.settings.store(userId, changes, mcpColumns ?? undefined);
      if (before !== null) {
        return { warnings: [], before };
      }
    }
    const tokens = await this.tokens.prepare(userId, secretsStore?.provider_tokens ?? new Map(), [
      'body',
      'secrets_store',
      'provider_tokens',
    ]);
    const before = await this.settings.transaction(userId, async (manager) => {
      const model = await this.settings.storeWithin(manager, userId, changes);
      await this.tokens.store(manager, userId, tokens);
      await this.secrets.mergeWithin(manager, userId, secretsStore?.custom_secrets ?? new Map());
      if (mcpConfig !== undefined) {
        await this.mcpConfigs.store(manager, userId, mcpConfig, ['body', 'mcp_config']);
      }
      await also?.(manager);
      return model;
    });
    return { warnings: tokens.warnings, before };
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

/** Whether a request gives the model that is stored already, as clients do that send all of a form. */
function changesNothing(changes: SettingsChanges, stored: StoredModel): boolean {
  return MODEL_COLUMNS.every((column) => !changes.has(column) || changes.get(column) === stored[column]);
}

function checkedModel({
  llm_model: model,
  llm_base_url: baseUrl,
  llm_api_key: apiKey,
  details,
}: StoredModel): CheckedModel {
  return { model, baseUrl, apiKey, headers: headersIn(details.agent['llm']) };
}

/** The error for a user who has not stored anything. */
export function settingsNotFound(): DomainError {
  return new DomainError('not_found', 'not_found', 'Settings not found');
}
