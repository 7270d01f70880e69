import type { EngineSettings, NewEvent } from './agent-engine.js';

export interface Limit {
  code: 'MaxIterationsReached' | 'MaxBudgetReached';
  detail: string;
}

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

/** Cost of a step in USD; null without a price for the model's name, with or without its provider. */
export function stepCost(
  prices: EngineSettings['modelPrices'],
  model: string,
  usage: { promptTokens: number; completionTokens: number },
): number | null {
  const price = ownPrice(prices, model) ?? ownPrice(prices, model.slice(model.indexOf('/') + 1));
  return price === undefined
    ? null
    : (usage.promptTokens * price.input + usage.completionTokens * price.output) / 1_000_000;
}

function ownPrice(
  prices: EngineSettings['modelPrices'],
  name: string,
): { input: number; output: number } | undefined {
  return Object.hasOwn(prices, name) ? prices[name] : undefined;
}

/** Tells the user that something cannot continue, or not as configured. */
export function conversationFailure(code: string, detail: string): NewEvent {
  return { kind: 'ConversationErrorEvent', source: 'environment', code, detail };
}
