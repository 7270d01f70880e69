import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { jsonNumber } from '@slipway/common/json-access.js';
import { apiIn, type CheckedModel, headersIn, ModelCheck } from '@slipway/models/model-check.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { modelUseWarnings, type ModelUseWarning } from '@slipway/settings/model-use.js';
import { layered, llmOf } from '@slipway/settings/settings-layers.js';
import { SettingsCipher, type StoredColumns } from '../settings.repository.js';
import { SharedSettings } from '../shared-settings.js';
import type { SettingsWarningDto } from './settings.dto.js';

const MODEL_COLUMNS = ['llm_model', 'llm_base_url', 'llm_api_key'] as const;

const USE_COLUMNS = [...MODEL_COLUMNS, 'max_budget_per_task', 'details'] as const;

/** Warns of a changed model: no conversation can begin with it, its budget is not enforced, or its server does not accept it. */
@Injectable()
export class ChangedModelCheck {
  constructor(
    private readonly cipher: SettingsCipher,
    private readonly models: ModelCheck,
    private readonly shared: SharedSettings,
    private readonly catalogue: ModelCatalogue,
  ) {}

  /** @param columns that the request has changed */
  async warnings(
    userId: string,
    columns: ReadonlyMap<string, unknown>,
    before: StoredColumns | null,
    after: StoredColumns,
  ): Promise<SettingsWarningDto[]> {
    const warnings = await this.useWarnings(userId, before, after);
    const isUntouched = [...MODEL_COLUMNS, 'details' as const].every(
      (name) => after[name] === before?.[name],
    );
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

  private checkedModel(userId: string, row: Partial<StoredColumns>): CheckedModel & { parameters: unknown } {
    const parameters = this.cipher.detailsOf(userId, row).agent['llm'];
    return {
      parameters,
      ...llmOf(row, this.cipher.keysOf(userId, row)),
      headers: headersIn(parameters),
      api: apiIn(parameters),
    };
  }
}
