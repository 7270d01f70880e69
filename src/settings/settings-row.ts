import type { StoredMcpConfig } from '../mcp-config/mcp-config.types.js';
import type { StoredSettingsDto } from './dto/stored-settings.dto.js';
import { isKeyColumn, SETTINGS_COLUMNS } from './settings-columns.js';
import { SETTINGS_DEFAULTS } from './settings-defaults.js';
import type { Settings } from './settings.entity.js';

type KeyMembers = 'llm_api_key' | 'search_api_key' | 'sandbox_api_key';
type OwnMembers = Omit<Settings, KeyMembers | 'userId' | 'user' | 'createdAt' | 'updatedAt'>;

/** One row of {@link LOAD_SETTINGS}; settings are null throughout for a user without any. */
export type SettingsRow = { [Member in keyof OwnMembers]: OwnMembers[Member] | null } & {
  llm_api_key_set: boolean;
  search_api_key_set: boolean;
  sandbox_api_key_set: boolean;
  mcp_config: StoredMcpConfig | null;
  /** Provider -> host; null without any token. */
  provider_tokens_set: Record<string, string | null> | null;
};

const shownColumns = SETTINGS_COLUMNS.map((column) =>
  isKeyColumn(column) ? `s.${column} IS NOT NULL AS ${column}_set` : `s.${column}`,
);

/** Everything `GET /api/settings` shows, in one statement. No row: nothing was stored for the user ($1). */
export const LOAD_SETTINGS = `
  SELECT ${shownColumns.join(', ')}, m.config AS mcp_config, t.hosts AS provider_tokens_set
  FROM (VALUES ($1::uuid)) AS owner (id)
  LEFT JOIN settings s ON s.user_id = owner.id
  LEFT JOIN mcp_configs m ON m.user_id = owner.id
  LEFT JOIN LATERAL (
    SELECT json_object_agg(provider, host ORDER BY provider) AS hosts FROM provider_tokens WHERE user_id = owner.id
  ) t ON true
  WHERE s.user_id IS NOT NULL OR m.user_id IS NOT NULL OR t.hosts IS NOT NULL`;

/** What a user has who stored nothing. */
export function emptySettingsRow(): SettingsRow {
  return {
    language: null,
    agent: null,
    max_iterations: null,
    security_analyzer: null,
    confirmation_mode: null,
    llm_model: null,
    llm_base_url: null,
    remote_runtime_resource_factor: null,
    enable_default_condenser: null,
    enable_sound_notifications: null,
    enable_proactive_conversation_starters: null,
    enable_solvability_analysis: null,
    user_consents_to_analytics: null,
    sandbox_base_container_image: null,
    sandbox_runtime_container_image: null,
    max_budget_per_task: null,
    email: null,
    email_verified: null,
    git_user_name: null,
    git_user_email: null,
    llm_api_key_set: false,
    search_api_key_set: false,
    sandbox_api_key_set: false,
    mcp_config: null,
    provider_tokens_set: null,
  };
}

/** The answer to a row, members in the order of the API document. */
export function toStoredSettingsDto(row: SettingsRow): StoredSettingsDto {
  return {
    language: row.language,
    agent: row.agent,
    max_iterations: row.max_iterations,
    security_analyzer: row.security_analyzer,
    confirmation_mode: row.confirmation_mode,
    llm_model: row.llm_model,
    llm_api_key: null,
    llm_base_url: row.llm_base_url,
    remote_runtime_resource_factor: row.remote_runtime_resource_factor,
    secrets_store: { provider_tokens: {}, custom_secrets: {} },
    enable_default_condenser: row.enable_default_condenser ?? SETTINGS_DEFAULTS.enable_default_condenser,
    enable_sound_notifications:
      row.enable_sound_notifications ?? SETTINGS_DEFAULTS.enable_sound_notifications,
    enable_proactive_conversation_starters:
      row.enable_proactive_conversation_starters ?? SETTINGS_DEFAULTS.enable_proactive_conversation_starters,
    enable_solvability_analysis:
      row.enable_solvability_analysis ?? SETTINGS_DEFAULTS.enable_solvability_analysis,
    user_consents_to_analytics: row.user_consents_to_analytics,
    sandbox_base_container_image: row.sandbox_base_container_image,
    sandbox_runtime_container_image: row.sandbox_runtime_container_image,
    mcp_config: row.mcp_config,
    search_api_key: null,
    sandbox_api_key: null,
    max_budget_per_task: row.max_budget_per_task,
    email: row.email,
    email_verified: row.email_verified,
    git_user_name: row.git_user_name,
    git_user_email: row.git_user_email,
    llm_api_key_set: row.llm_api_key_set,
    search_api_key_set: row.search_api_key_set,
    sandbox_api_key_set: row.sandbox_api_key_set,
    provider_tokens_set: row.provider_tokens_set ?? {},
  };
}
