import type { SettingsKeys } from '../../../settings/settings-keys.reader.js';
import type { SettingsRow } from '../../../settings/settings-row.js';

/** The settings that say how an agent works, with their keys in clear. */
export type AgentSettings = Pick<
  SettingsRow,
  | 'llm_model'
  | 'llm_base_url'
  | 'agent'
  | 'max_iterations'
  | 'max_budget_per_task'
  | 'confirmation_mode'
  | 'security_analyzer'
  | 'enable_default_condenser'
  | 'language'
  | 'git_user_name'
  | 'git_user_email'
> &
  Pick<SettingsKeys, 'llm_api_key' | 'search_api_key'>;

/** Picks them from what is stored; everything is null for a user who stored nothing. */
export function agentSettings(row: SettingsRow | null, keys: SettingsKeys): AgentSettings {
  return {
    llm_model: row?.llm_model ?? null,
    llm_base_url: row?.llm_base_url ?? null,
    agent: row?.agent ?? null,
    max_iterations: row?.max_iterations ?? null,
    max_budget_per_task: row?.max_budget_per_task ?? null,
    confirmation_mode: row?.confirmation_mode ?? null,
    security_analyzer: row?.security_analyzer ?? null,
    enable_default_condenser: row?.enable_default_condenser ?? null,
    language: row?.language ?? null,
    git_user_name: row?.git_user_name ?? null,
    git_user_email: row?.git_user_email ?? null,
    llm_api_key: keys.llm_api_key,
    search_api_key: keys.search_api_key,
  };
}
