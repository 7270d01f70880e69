import { Injectable } from '@nestjs/common';
import { isJsonObject } from '@slipway/common/json-access.js';
import { INSTALLATION_ORGANIZATION_ID } from '../organizations/installation-organization.js';
import { OperatorDefaults } from './operator-defaults.js';
import {
  isUnset,
  type KeyedModel,
  layered,
  llmOf,
  llmOver,
  type SettingsLayer,
  sharedModel,
} from '@slipway/settings/settings-layers.js';
import { NO_DETAILS, type SettingsDetails } from '@slipway/settings/nested-settings.js';
import { isKeyColumn, SETTINGS_COLUMNS, type SettingsColumn } from '@slipway/settings/settings.schema.js';
import { SettingsRepository } from './settings.repository.js';
import { emptySettingsRow, type LayerOwner, type SettingsRow } from '@slipway/settings/settings-row.js';

const MODEL: ReadonlySet<string> = new Set(['llm_model', 'llm_base_url', 'llm_api_key']);

/** What lies below the settings of an owner: the organization's, and the operator's below those. */
@Injectable()
export class SharedSettings {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly operator: OperatorDefaults,
  ) {}

  /** Models and what may be shown; tool servers are the operator's alone. @throws SecretDecryptionError */
  async below(ownerId: string): Promise<SettingsLayer> {
    if (ownerId === INSTALLATION_ORGANIZATION_ID) {
      return this.operator.layer;
    }
    const { settings, keys, details, document } = await this.settings.loadWithKeys(
      INSTALLATION_ORGANIZATION_ID,
    );
    const { llm: parameters } = details.agent;
    const model = sharedModel({
      owner: 'organization',
      llm: llmOf(settings, keys),
      ...(isJsonObject(parameters) && { parameters }),
    });
    return layered({ ...model, members: document, toolServers: null }, this.operator.layer);
  }

  /** The organization's; the operator has none. @throws SecretDecryptionError */
  async detailsBelow(ownerId: string): Promise<SettingsDetails> {
    return ownerId === INSTALLATION_ORGANIZATION_ID
      ? NO_DETAILS
      : (await this.settings.loadWithKeys(INSTALLATION_ORGANIZATION_ID)).details;
  }

  /**
   * The row as responses show it; null for a user where there is nothing to show. The address stays the owner's: a form that sends it
   * back would make it one, to which no shared key goes.
   */
  async shown(ownerId: string, row: SettingsRow | null): Promise<SettingsRow | null> {
    const isShared = ownerId === INSTALLATION_ORGANIZATION_ID;
    const organization = isShared ? null : await this.settings.load(INSTALLATION_ORGANIZATION_ID);
    const ofOrganization = shownModel('organization', organization);
    const below = llmOver(ofOrganization, this.operator.layer) ?? ofOrganization;
    const own = row ?? emptySettingsRow();
    const model = shownModel(isShared ? 'organization' : 'user', own);
    const completed = llmOver(model, below);
    if (!isShared && row === null && organization === null && completed === null) {
      return null;
    }
    const inherited = organization === null ? [] : inheritedColumns(own, organization);
    const source =
      completed?.owner ?? (isUnset(model.llm.model) && model.llm.api_key === null ? null : model.owner);
    return {
      ...own,
      ...Object.fromEntries(inherited.map((name) => shownMember(name, organization ?? own))),
      ...(completed && {
        llm_model: completed.llm.model,
        llm_api_key_set: completed.llm.api_key !== null,
      }),
      llm_source: source,
      from_organization: [
        ...inherited,
        ...(completed && isUnset(own.llm_model) && !isUnset(ofOrganization.llm.model)
          ? (['llm_model'] as const)
          : []),
        ...(source === 'organization' && !isShared && completed?.llm.api_key
          ? (['llm_api_key'] as const)
          : []),
      ],
    };
  }
}

/** The value of a stored key does not matter here. */
function shownModel(owner: LayerOwner, row: SettingsRow | null): KeyedModel {
  const { llm_model: model, llm_base_url: base_url, llm_api_key_set: hasKey } = row ?? emptySettingsRow();
  return { owner, llm: { model, base_url, api_key: hasKey ? 'set' : null } };
}

/** The model is one member with its address and key, which decide together. */
function inheritedColumns(own: SettingsRow, organization: SettingsRow): SettingsColumn[] {
  return SETTINGS_COLUMNS.filter(
    (name) => !MODEL.has(name) && isUnsetIn(own, name) && !isUnsetIn(organization, name),
  );
}

function isUnsetIn(row: SettingsRow, name: SettingsColumn): boolean {
  return isKeyColumn(name) ? !row[`${name}_set`] : row[name] === null;
}

function shownMember(name: SettingsColumn, row: SettingsRow): [string, unknown] {
  return isKeyColumn(name) ? [`${name}_set`, true] : [name, row[name]];
}
