import type { SettingsKeys, SettingsRow } from '../../../settings/settings-table.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-spec.js';

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

/** @param row null for a user who stored no settings: everything is null then */
export function agentSettings(
  row: Omit<AgentSettings, keyof SettingsKeys> | null,
  keys: SettingsKeys,
): AgentSettings {
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

const DEFAULT_MAX_ITERATIONS = 500;

/** How far an agent may go, as agent servers take it. */
interface AgentLimits {
  /** Steps per message. */
  max_iterations: number;
  /** USD per conversation; null: no limit. */
  max_budget: number | null;
}

export function agentLimits({
  max_iterations: iterations,
  max_budget_per_task: budget,
}: Pick<AgentSettings, 'max_iterations' | 'max_budget_per_task'>): AgentLimits {
  return { max_iterations: iterations ?? DEFAULT_MAX_ITERATIONS, max_budget: budget };
}

/**
 * Which agent server runs in a sandbox: ours, with members and routes that the published schema lacks, or a stock one,
 * which gets what the schema knows and no more.
 */
export type AgentDialect = 'slipway' | 'stock';

/** @param spec null when it is not configured any more */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? 'slipway' : 'stock';
}
