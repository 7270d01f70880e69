import { MASK } from '@slipway/common/secret-mask.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import type { StoredMcpConfigDto } from '@slipway/tool-servers/mcp-config.dto.js';
import {
  isKeyColumn,
  memberSchema,
  type PlainColumn,
  SETTINGS,
  SETTINGS_COLUMNS,
  SETTINGS_KEY_COLUMNS,
  type SettingsColumn,
  type SettingsKeyColumn,
  type SettingsValues,
} from './settings.schema.js';

/** Who has settings, the one whose lie over the others first. */
export const LAYER_OWNERS = ['user', 'organization', 'operator'] as const;
export type LayerOwner = (typeof LAYER_OWNERS)[number];

/** Whose model and key conversations use; null while there are none. */
type LlmSource = LayerOwner | null;

/** One row of the statement behind `GET /api/settings`; columns are null for a user who has no settings yet. */
export type SettingsRow = { [Member in PlainColumn]: SettingsValues[Member] | null } & {
  [Key in SettingsKeyColumn as `${Key}_set`]: boolean;
} & {
  mcp_config: StoredMcpConfigDto | null;
  /** Provider -> host; null without any token. */
  provider_tokens_set: Record<string, string | null> | null;
  /** Providers that have not accepted their token yet; null without any. */
  provider_tokens_unverified: ProviderType[] | null;
  /** Once the settings that lie below are applied. */
  llm_source?: LlmSource;
  /** Members with a value of the organization's, once that is applied. */
  from_organization?: SettingsColumn[];
};

/** The settings as responses show them. */
export type ShownSettings = { [Member in PlainColumn]: SettingsValues[Member] } & {
  [Key in SettingsKeyColumn]: null;
} & { [Key in SettingsKeyColumn as `${Key}_set`]: boolean } & {
  secrets_store: { provider_tokens: Record<string, never>; custom_secrets: Record<string, never> };
  mcp_config: StoredMcpConfigDto | null;
  provider_tokens_set: Record<string, string | null>;
  llm_source: LlmSource;
  from_organization: SettingsColumn[];
};

/** Of any member. */
export type SettingValue = SettingsValues[SettingsColumn];

/** New values by column, keys still in clear; a column that is not here keeps its value. */
export type SettingsChanges = ReadonlyMap<SettingsColumn, SettingValue>;

/** The keys among a user's settings, in clear: for agents and their sandboxes, never for a log or another response. */
export type SettingsKeys = Record<SettingsKeyColumn, string | null>;

/** Which columns a request changes, and to what. */
export function settingsChanges(
  dto: Partial<Record<SettingsColumn, SettingValue>> & { provider_tokens_set?: unknown },
): SettingsChanges {
  const changes = new Map<SettingsColumn, SettingValue>();
  for (const column of SETTINGS_COLUMNS) {
    const { writeOnly, nullKeeps, blankClears, formKeeps } = memberSchema(column);
    const value = dto[column];
    const isBlank = typeof value === 'string' && value.trim() === '';
    const isKept =
      value === undefined ||
      (value === null && nullKeeps === true) ||
      // The mask is not a key: the nested settings show it in place of one, and clients send it back.
      (writeOnly && value === MASK) ||
      (isBlank && formKeeps === true && dto.provider_tokens_set !== undefined);
    if (!isKept) {
      changes.set(column, isBlank && blankClears === true ? null : value);
    }
  }
  return changes;
}

/** The columns of a user who stored nothing. */
export const INITIAL_COLUMNS = Object.fromEntries(
  SETTINGS_COLUMNS.map((column) => [column, memberSchema(column).default ?? null]),
) as SettingsValues;

/** What the statement behind `GET /api/settings` would find for a user who stored nothing. */
export function emptySettingsRow(): SettingsRow {
  const row: Record<string, unknown> = {
    mcp_config: null,
    provider_tokens_set: null,
    provider_tokens_unverified: null,
  };
  for (const column of SETTINGS_COLUMNS) {
    if (isKeyColumn(column)) {
      row[`${column}_set`] = false;
    } else {
      row[column] = null;
    }
  }
  return row as SettingsRow;
}

/** What a response shows of a row, members in the order of the API document: null where nothing is stored, or the default. */
export function shownSettings(row: SettingsRow): ShownSettings {
  const shown: Record<string, unknown> = {};
  for (const member of Object.keys(SETTINGS) as (keyof typeof SETTINGS)[]) {
    shown[member] =
      SETTINGS[member].type === 'elsewhere' || 'writeOnly' in SETTINGS[member]
        ? null
        : (row[member as PlainColumn] ?? INITIAL_COLUMNS[member as PlainColumn]);
  }
  shown['secrets_store'] = { provider_tokens: {}, custom_secrets: {} };
  shown['mcp_config'] = row.mcp_config;
  for (const key of SETTINGS_KEY_COLUMNS) {
    shown[`${key}_set`] = row[`${key}_set`];
  }
  shown['provider_tokens_set'] = row.provider_tokens_set ?? {};
  shown['llm_source'] = row.llm_source ?? null;
  shown['from_organization'] = row.from_organization ?? [];
  return shown as ShownSettings;
}
