import type { EngineHost, EngineSettings } from '../agent-engine.js';
import { conversationFailure } from './conversation-failure.js';
import type { StepAnswer } from './model-step.js';
import { stepCost } from './step-cost.js';
import { estimateTokens } from './token-estimate.js';

/**
 * Counts an answer and its cost; says so, once, when a budget cannot be kept because nobody knows the price.
 *
 * @param request what was sent, to be estimated when the provider did not count
 * @param isStep whether it was a step of the agent
 */
export async function countUsage(
  host: EngineHost,
  { llm, modelPrices, maxBudget }: EngineSettings,
  answer: StepAnswer,
  request?: unknown,
  isStep = true,
): Promise<void> {
  const promptTokens = answer.promptTokens ?? estimateTokens(request);
  const completionTokens = answer.completionTokens ?? estimateTokens([answer.text, answer.calls]);
  const costUsd = stepCost(modelPrices, llm.model, { promptTokens, completionTokens });
  await host.addUsage({ promptTokens, completionTokens, costUsd, isStep });
  if (costUsd === null && maxBudget !== null) {
    const detail =
      `No price is known for the model ${llm.model}: max_budget_per_task (${maxBudget} USD) is not kept. The ` +
      `operator can give prices in MODEL_PRICES_FILE.`;
    const said = host
      .events()
      .some((event) => event.kind === 'ConversationErrorEvent' && event.code === 'BudgetNotEnforced');
    if (!said) {
      await host.append(conversationFailure('BudgetNotEnforced', detail));
    }
  }
}
