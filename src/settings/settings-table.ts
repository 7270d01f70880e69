import { MASK } from '@slipway/common/secret-mask.js';
import type { EncryptedColumn } from '../common/crypto/secret-cipher.js';
import type { ProviderType } from '../git-providers/git-provider.js';
import type { StoredMcpConfig } from './mcp/mcp-secrets.js';
import type { SettingsDto } from './flat/settings.dto.js';
import type { Settings } from './settings.repository.js';

/** How one member of the settings is kept and shown. */
export interface Setting {
  /**
   * `plain`: a column of the table, shown as it is. `key`: an encrypted column, shown as null and as `<name>_set`.
   * `elsewhere`: no column; tool servers, tokens and custom secrets have tables of their own.
   */
  kind: 'plain' | 'key' | 'elsewhere';
  /** The value for users who never set it, and the default of the column; absent: null. */
  default?: boolean;
  /** Null means "unchanged": forms of clients never get the keys and send null for them. */
  nullKeeps?: boolean;
  /** Blank text clears it, since null keeps it. */
  blankClears?: boolean;
  /** Blank text keeps it when a form sends back what it was shown: responses show a blank, whatever is stored. */
  formKeeps?: boolean;
}

type TableColumn = Exclude<keyof Settings, 'userId' | 'user' | 'details' | 'createdAt' | 'updatedAt'>;

/**
 * Every member of the settings, in the order of the API document. The row, the SELECT and the response all follow from
 * it; the compiler compares it with the request's and the response's class and with the entity.
 */
export const SETTINGS = {
  language: { kind: 'plain' },
  agent: { kind: 'plain' },
  max_iterations: { kind: 'plain' },
  security_analyzer: { kind: 'plain' },
  confirmation_mode: { kind: 'plain' },
  llm_model: { kind: 'plain', nullKeeps: true, blankClears: true },
  llm_api_key: { kind: 'key', nullKeeps: true, blankClears: true },
  llm_base_url: { kind: 'plain', nullKeeps: true, blankClears: true },
  remote_runtime_resource_factor: { kind: 'plain' },
  secrets_store: { kind: 'elsewhere' },
  enable_default_condenser: { kind: 'plain', default: true },
  enable_sound_notifications: { kind: 'plain', default: false },
  enable_proactive_conversation_starters: { kind: 'plain', default: true },
  enable_solvability_analysis: { kind: 'plain', default: true },
  user_consents_to_analytics: { kind: 'plain', nullKeeps: true },
  sandbox_base_container_image: { kind: 'plain' },
  sandbox_runtime_container_image: { kind: 'plain' },
  mcp_config: { kind: 'elsewhere' },
  search_api_key: { kind: 'key', nullKeeps: true, blankClears: true, formKeeps: true },
  sandbox_api_key: { kind: 'key', nullKeeps: true, blankClears: true },
  max_budget_per_task: { kind: 'plain' },
  email: { kind: 'plain' },
  email_verified: { kind: 'plain' },
  git_user_name: { kind: 'plain' },
  git_user_email: { kind: 'plain' },
  fork: { kind: 'plain' },
  clone_depth: { kind: 'plain' },
  clone_filter: { kind: 'plain' },
} as const satisfies Record<Exclude<keyof SettingsDto, 'provider_tokens_set'>, Setting> &
  Record<TableColumn, Setting>;

type SettingsMember = keyof typeof SETTINGS;
type MembersOf<Kind extends Setting['kind']> = {
  [Member in SettingsMember]: (typeof SETTINGS)[Member]['kind'] extends Kind ? Member : never;
}[SettingsMember];

export type SettingsColumn = MembersOf<'plain' | 'key'>;
export type SettingsKeyColumn = MembersOf<'key'>;
type PlainColumn = MembersOf<'plain'>;

/** Whose model and key conversations use; null while there are none. */
export const LLM_SOURCES = ['user', 'operator'] as const;
export type LlmSource = (typeof LLM_SOURCES)[number] | null;

/** One row of the statement behind `GET /api/settings`; columns are null for a user who has no settings yet. */
export type SettingsRow = { [Member in PlainColumn]: Settings[Member] | null } & {
  [Key in SettingsKeyColumn as `${Key}_set`]: boolean;
} & {
  mcp_config: StoredMcpConfig | null;
  /** Provider -> host; null without any token. */
  provider_tokens_set: Record<string, string | null> | null;
  /** Providers that have not accepted their token yet; null without any. */
  provider_tokens_unverified: ProviderType[] | null;
  /** Once the operator's defaults are applied. */
  llm_source?: LlmSource;
};

/** The settings as responses show them. */
export type ShownSettings = { [Member in PlainColumn]: Settings[Member] } & {
  [Key in SettingsKeyColumn]: null;
} & { [Key in SettingsKeyColumn as `${Key}_set`]: boolean } & {
  secrets_store: { provider_tokens: Record<string, never>; custom_secrets: Record<string, never> };
  mcp_config: StoredMcpConfig | null;
  provider_tokens_set: Record<string, string | null>;
  llm_source: LlmSource;
};

/** New values by column, keys still in clear; a column that is not here keeps its value. */
export type SettingsChanges = ReadonlyMap<SettingsColumn, string | number | boolean | null>;

/** The keys among a user's settings, in clear: for agents and their sandboxes, never for a log or another response. */
export type SettingsKeys = Record<SettingsKeyColumn, string | null>;

const ENTRIES: readonly [SettingsMember, Setting][] = Object.entries(SETTINGS) as [SettingsMember, Setting][];

export const SETTINGS_COLUMNS = ENTRIES.filter(([, { kind }]) => kind !== 'elsewhere').map(
  ([member]) => member as SettingsColumn,
);

export const SETTINGS_KEY_COLUMNS = SETTINGS_COLUMNS.filter(isKeyColumn);

export function isKeyColumn(column: SettingsColumn): column is SettingsKeyColumn {
  return SETTINGS[column].kind === 'key';
}

/** What an encrypted key is bound to: copied to another user or column it does not decrypt. */
export function settingsBinding(column: SettingsKeyColumn | 'details', userId: string): string {
  return `settings.${column}:${userId}`;
}

export const SETTINGS_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  ...SETTINGS_KEY_COLUMNS,
  'details' as const,
].map((column) => ({
  table: 'settings',
  column,
  keyColumns: ['user_id'],
  binding: ({ user_id = '' }: Record<string, string>) => settingsBinding(column, user_id),
}));

/** Which columns a request changes, and to what. */
export function settingsChanges(dto: SettingsDto): SettingsChanges {
  const changes = new Map<SettingsColumn, string | number | boolean | null>();
  for (const column of SETTINGS_COLUMNS) {
    const { kind, nullKeeps, blankClears, formKeeps }: Setting = SETTINGS[column];
    const value = dto[column];
    const isBlank = typeof value === 'string' && value.trim() === '';
    const isKept =
      value === undefined ||
      (value === null && nullKeeps === true) ||
      // The mask is not a key: the nested settings show it in place of one, and clients send it back.
      (kind === 'key' && value === MASK) ||
      (isBlank && formKeeps === true && dto.provider_tokens_set !== undefined);
    if (!isKept) {
      changes.set(column, isBlank && blankClears === true ? null : value);
    }
  }
  return changes;
}

/** The columns of a user who stored nothing. */
export const INITIAL_COLUMNS = Object.fromEntries(
  SETTINGS_COLUMNS.map((column) => [column, (SETTINGS[column] as Setting).default ?? null]),
) as Pick<Settings, SettingsColumn>;

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
  for (const [member, { kind, default: preset = null }] of ENTRIES) {
    shown[member] = kind === 'plain' ? (row[member as PlainColumn] ?? preset) : null;
  }
  shown['secrets_store'] = { provider_tokens: {}, custom_secrets: {} };
  shown['mcp_config'] = row.mcp_config;
  for (const key of SETTINGS_KEY_COLUMNS) {
    shown[`${key}_set`] = row[`${key}_set`];
  }
  shown['provider_tokens_set'] = row.provider_tokens_set ?? {};
  shown['llm_source'] = row.llm_source ?? null;
  return shown as ShownSettings;
}
