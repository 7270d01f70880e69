import type { AgentDialect } from './agent-dialect.js';
import type { AgentSettings } from './agent-settings.js';

/** What of the settings the agent server in the sandbox cannot do, a sentence each. */
export function settingsNotes(
  dialect: AgentDialect,
  { max_budget_per_task: budget, search_api_key: searchKey }: AgentSettings,
): string[] {
  if (dialect === 'slipway') {
    return [];
  }
  return [
    ...(budget === null ? [] : ['max_budget_per_task is not enforced by the agent server of this sandbox.']),
    ...(searchKey === null ? [] : ['search_api_key: the agent server of this sandbox has no web search.']),
  ];
}
