import type { EngineSettings } from '../agent-engine.js';

export interface Limit {
  code: 'MaxIterationsReached' | 'MaxBudgetReached';
  detail: string;
}

/** The limit that forbids another step, if any. */
export function limitReached(
  { maxIterations, maxBudget }: Pick<EngineSettings, 'maxIterations' | 'maxBudget'>,
  { iterations, costUsd }: { iterations: number; costUsd: number },
): Limit | null {
  if (maxBudget !== null && costUsd >= maxBudget) {
    return {
      code: 'MaxBudgetReached',
      detail:
        `The conversation has cost ${costUsd.toFixed(4)} USD and its limit (max_budget_per_task) is ` +
        `${maxBudget} USD. Raise it in the settings and send a message to go on.`,
    };
  }
  if (iterations >= maxIterations) {
    return {
      code: 'MaxIterationsReached',
      detail:
        `The agent made ${iterations} steps and its limit (max_iterations) is ${maxIterations}. Send a message to ` +
        `let it go on with a new count.`,
    };
  }
  return null;
}
