import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { jsonNumber } from '@slipway/common/json-access.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { requireNone, type InputProblem } from '@slipway/api/errors/problem-error.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { ProviderTokensService } from '../../git-providers/tokens/provider-tokens.service.js';
import { EgressRulebook } from '../../config/egress-rulebook.js';
import { keptByNull, type SettingsDto, type SettingsWarningDto } from './settings.dto.js';
import { McpConfigService } from '../mcp/mcp-config.service.js';
import { apiIn, type CheckedModel, headersIn, ModelCheck } from '@slipway/models/model-check.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { modelUseWarnings, type ModelUseWarning } from '@slipway/settings/model-use.js';
import { CustomSecretRepository } from '../secrets/custom-secret.repository.js';
import {
  SettingsCipher,
  type StoredColumns,
  type SettingsChange,
  SettingsRepository,
} from '../settings.repository.js';
import { layered, llmOf } from '@slipway/settings/settings-layers.js';
import { SharedSettings } from '../shared-settings.js';
import { settingsChanges, type SettingsRow } from '@slipway/settings/settings-row.js';

const MODEL_COLUMNS = ['llm_model', 'llm_base_url', 'llm_api_key'] as const;

const USE_COLUMNS = [...MODEL_COLUMNS, 'max_budget_per_task', 'details'] as const;

const TOKENS_LOC = ['body', 'secrets_store', 'provider_tokens'];

/** What a request in nested form changes besides the members of the flat form. */
interface NestedParts {
  details?: SettingsChange['details'];
  mcpServers?: { patch: unknown; loc: readonly string[] };
}

/** Stores and shows users' settings, with the tool servers, tokens and secrets that come along in one request. */
@Injectable()
export class SettingsService {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly cipher: SettingsCipher,
    private readonly mcpConfigs: McpConfigService,
    private readonly secrets: CustomSecretRepository,
    private readonly tokens: ProviderTokensService,
    private readonly addresses: OutboundAddresses,
    private readonly models: ModelCheck,
    private readonly shared: SharedSettings,
    private readonly catalogue: ModelCatalogue,
    private readonly rulebook: EgressRulebook,
  ) {}

  /**
   * Merges a request into what is stored; all of it or nothing.
   * @returns a warning for each token that was stored although its provider gave no verdict, and one for a changed model
   *   that its server does not accept, and one for each null that kept a value
   * @throws InvalidInputError for rules that need more than the request to judge
   * @throws DomainError invalid_git_token when a provider rejects its token
   */
  async store(userId: string, dto: SettingsDto, nested: NestedParts = {}): Promise<SettingsWarningDto[]> {
    requireNone([
      ...this.addressProblems(dto),
      ...this.ruleProblems(dto),
      ...(userId === INSTALLATION_ORGANIZATION_ID ? ofUsersAlone(dto) : []),
    ]);
    const columns = settingsChanges(dto);
    const { provider_tokens: inputs, custom_secrets: secrets = new Map() } = dto.secrets_store ?? {};
    const tokens = inputs && (await this.tokens.prepare(userId, inputs, TOKENS_LOC));
    const { before, after } = await this.settings.transaction(userId, async (manager) => {
      const change = { columns, details: nested.details, isForm: true };
      const merged = await this.settings.mergeWithin(manager, userId, change);
      if (tokens) {
        await this.tokens.store(manager, userId, tokens);
      }
      const given = [...secrets].map(([name, { secret: value, description }]) => ({
        name,
        value,
        description,
      }));
      await this.secrets.mergeWithin(manager, userId, given);
      if (dto.mcp_config !== undefined) {
        await this.mcpConfigs.store(manager, userId, dto.mcp_config, ['body', 'mcp_config']);
      }
      if (nested.mcpServers) {
        await this.mcpConfigs.patch(manager, userId, nested.mcpServers.patch, nested.mcpServers.loc);
      }
      return merged;
    });
    const warnings = [
      ...(tokens?.warnings ?? []),
      ...keptByNull(dto, after),
      ...(await this.useWarnings(userId, before, after)),
    ];
    const isUntouched = [...MODEL_COLUMNS, 'details' as const].every((key) => after[key] === before?.[key]);
    if (isUntouched || !MODEL_COLUMNS.some((column) => columns.has(column))) {
      return warnings;
    }
    const model = this.checkedModel(userId, after);
    const isSame = isDeepStrictEqual(this.checkedModel(userId, before ?? {}), model);
    const warning = isSame ? null : await this.models.warning(userId, model);
    return warning === null ? warnings : [...warnings, warning];
  }

  /** Of a change alone: forms send all that they have. */
  private async useWarnings(
    userId: string,
    before: StoredColumns | null,
    after: StoredColumns,
  ): Promise<ModelUseWarning[]> {
    const isUntouched = USE_COLUMNS.every((name) => after[name] === (before?.[name] ?? null));
    if (isUntouched || after.agent?.startsWith('acp:') === true) {
      return [];
    }
    const { model, base_url, api_key, parameters } = this.checkedModel(userId, after);
    const own = {
      owner: 'user',
      members: after,
      llm: { model, base_url, api_key },
      toolServers: null,
    } as const;
    const { llm: called, members } = layered(own, await this.shared.below(userId));
    const isPriced =
      jsonNumber(parameters, 'input_cost_per_token') !== null ||
      (await this.catalogue.facts(called.model ?? '')).price !== null;
    return modelUseWarnings(called, { budget: members.max_budget_per_task, isPriced });
  }

  /** @throws DomainError not_found before anything was stored */
  async find(userId: string): Promise<SettingsRow> {
    const row = await this.shared.shown(userId, await this.settings.load(userId));
    if (!row) {
      throw settingsNotFound();
    }
    return row;
  }

  private checkedModel(userId: string, row: Partial<StoredColumns>): CheckedModel & { parameters: unknown } {
    const parameters = this.cipher.detailsOf(userId, row).agent['llm'];
    return {
      parameters,
      ...llmOf(row, this.cipher.keysOf(userId, row)),
      headers: headersIn(parameters),
      api: apiIn(parameters),
    };
  }

  private ruleProblems(dto: SettingsDto): InputProblem[] {
    const { sandbox_egress: rules = null } = dto;
    const msg = this.rulebook.readableProblem(dto.repositories_read ?? []);
    const readable = { loc: ['body', 'repositories_read'], msg: msg ?? '', type: 'value_error' };
    const { problems } = rules === null ? { problems: [] } : this.rulebook.read(rules);
    const ofRules = problems.map(({ path, message: text }) => ({
      loc: ['body', 'sandbox_egress', ...path],
      msg: text,
      type: 'value_error',
    }));
    return [...ofRules, ...(msg === null ? [] : [readable])];
  }

  /** Addresses that the operator does not allow, in the order of the members. */
  private addressProblems({ llm_base_url: address, mcp_config: mcpConfig }: SettingsDto): InputProblem[] {
    const msg = typeof address === 'string' && address !== '' ? this.addresses.problem(address) : null;
    return [
      ...(msg === null ? [] : [{ loc: ['body', 'llm_base_url'], msg, type: 'value_error' }]),
      ...(mcpConfig ? this.mcpConfigs.addressProblems(mcpConfig, ['body', 'mcp_config']) : []),
    ];
  }
}

/** The organization has no git tokens, and its secrets have a route of their own. */
function ofUsersAlone({ secrets_store: store }: SettingsDto): InputProblem[] {
  return (['provider_tokens', 'custom_secrets'] as const)
    .filter((name) => (store?.[name]?.size ?? 0) > 0)
    .map((name) => ({
      loc: ['body', 'secrets_store', name],
      msg: 'Expected none with scope=organization: git tokens are of users, and secrets of the organization are stored by POST /api/organizations/{organization_id}/secrets.',
      type: 'value_error',
    }));
}

export function settingsNotFound(): DomainError {
  return new DomainError('not_found', 'Settings not found');
}
