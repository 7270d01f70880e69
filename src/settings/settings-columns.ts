import type { SettingsDto } from './settings.dto.js';
import type { Settings } from './settings.entity.js';

/** Members of the settings that are columns of their table, in the order of the API document. */
export const SETTINGS_COLUMNS = [
  'language',
  'agent',
  'max_iterations',
  'security_analyzer',
  'confirmation_mode',
  'llm_model',
  'llm_api_key',
  'llm_base_url',
  'remote_runtime_resource_factor',
  'enable_default_condenser',
  'enable_sound_notifications',
  'enable_proactive_conversation_starters',
  'enable_solvability_analysis',
  'user_consents_to_analytics',
  'sandbox_base_container_image',
  'sandbox_runtime_container_image',
  'search_api_key',
  'sandbox_api_key',
  'max_budget_per_task',
  'email',
  'email_verified',
  'git_user_name',
  'git_user_email',
] as const satisfies readonly (keyof SettingsDto & keyof Settings)[];

export type SettingsColumn = (typeof SETTINGS_COLUMNS)[number];

/** Columns that hold encrypted keys. */
export const SETTINGS_KEY_COLUMNS = [
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
] as const satisfies readonly SettingsColumn[];

export type SettingsKeyColumn = (typeof SETTINGS_KEY_COLUMNS)[number];

export function isKeyColumn(column: SettingsColumn): column is SettingsKeyColumn {
  return SETTINGS_KEY_COLUMNS.some((key) => key === column);
}

/** What an encrypted key is bound to: copied to another user or column it does not decrypt. */
export function settingsBinding(column: SettingsKeyColumn, userId: string): string {
  return `settings.${column}:${userId}`;
}
