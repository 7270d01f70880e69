import type { EngineHost, EngineSettings } from '../agent-engine.js';
import { conversationFailure, stepCost } from '../limits.js';
import type { ModelResponse } from './model-call.js';

const CHARACTERS_PER_TOKEN = 4;
const CHARACTERS_PER_IMAGE = 4_000;

/**
 * Counts a response and its cost, and reports once if an unknown price makes the budget unenforceable. The request
 * serves for an estimate when the provider does not count tokens.
 */
export async function countUsage(
  host: EngineHost,
  { llm, modelPrices, maxBudget }: EngineSettings,
  response: ModelResponse,
  request?: unknown,
  isStep = true,
): Promise<void> {
  const promptTokens = response.promptTokens ?? estimateTokens(request);
  const completionTokens = response.completionTokens ?? estimateTokens([response.text, response.calls]);
  const costUsd = stepCost(modelPrices, llm.model, { promptTokens, completionTokens });
  await host.addUsage({ promptTokens, completionTokens, costUsd, isStep });
  if (costUsd === null && maxBudget !== null) {
    const detail =
      `No price is known for the model ${llm.model}: max_budget_per_task (${maxBudget} USD) is not enforced. The ` +
      `operator can give prices in MODEL_PRICES_FILE.`;
    const isReported = host
      .events()
      .some((event) => event.kind === 'ConversationErrorEvent' && event.code === 'BudgetNotEnforced');
    if (!isReported) {
      await host.append(conversationFailure('BudgetNotEnforced', detail));
    }
  }
}

/** Estimates how many tokens a value takes in a prompt: good enough for limits, not for billing. */
export function estimateTokens(value: unknown): number {
  let images = 0;
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === 'string' && member.startsWith('data:')) {
      images += 1;
      return '';
    }
    return member;
  });
  return Math.ceil(((text ?? '').length + images * CHARACTERS_PER_IMAGE) / CHARACTERS_PER_TOKEN);
}
