import type { AgentSettings } from './agent-settings.js';

const DEFAULT_MAX_ITERATIONS = 500;

/** How far an agent may go, as agent servers are told it. */
export interface AgentLimits {
  /** Steps after a message. */
  max_iterations: number;
  /** USD per conversation; null: no limit. */
  max_budget: number | null;
}

/** Limits for a conversation that begins, or goes on, with these settings. */
export function agentLimits({
  max_iterations: iterations,
  max_budget_per_task: budget,
}: Pick<AgentSettings, 'max_iterations' | 'max_budget_per_task'>): AgentLimits {
  return { max_iterations: iterations ?? DEFAULT_MAX_ITERATIONS, max_budget: budget };
}
