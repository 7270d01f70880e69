import { jsonText } from '@slipway/common/json-access.js';
import { callCost, usd } from '@slipway/common/model-cost.js';
import type { EngineSettings, NewEvent, EngineHost } from './agent-engine.js';

export interface Limit {
  code: 'MaxIterationsReached' | 'MaxBudgetReached';
  detail: string;
}

export function limitReached(
  { maxIterations, maxBudget }: Pick<EngineSettings, 'maxIterations' | 'maxBudget'>,
  { iterations, costUsd }: { iterations: number; costUsd: number },
): Limit | null {
  if (maxBudget !== null && costUsd >= maxBudget) {
    const detail =
      `The conversation has cost ${usd(costUsd)} and its limit (max_budget_per_task) is ` +
      `${usd(maxBudget)}. Raise it in the settings and send a message to go on.`;
    return { code: 'MaxBudgetReached', detail };
  }
  if (iterations >= maxIterations) {
    const detail =
      `The agent made ${iterations} steps and its limit (max_iterations) is ${maxIterations}. Send a message to ` +
      `let it go on with a new count.`;
    return { code: 'MaxIterationsReached', detail };
  }
  return null;
}

/** Cost of a step in USD; null without a price for the model's name, with or without its provider. */
export function stepCost(
  prices: EngineSettings['modelPrices'],
  model: string,
  usage: { promptTokens: number; completionTokens: number } & CachedTokens,
): number | null {
  const priced = [model, model.slice(model.indexOf('/') + 1)].find((name) => Object.hasOwn(prices, name));
  const price = prices[priced ?? ''];
  if (price === undefined) {
    return null;
  }
  return callCost(price, {
    input: usage.promptTokens,
    output: usage.completionTokens,
    cacheRead: usage.cacheReadTokens,
    cacheWrite: usage.cacheWriteTokens,
  });
}

/** The parts of a prompt that were read from the provider's cache, and written to it. */
export interface CachedTokens {
  cacheReadTokens?: number | undefined;
  cacheWriteTokens?: number | undefined;
}

export function conversationFailure(code: string, detail: string): NewEvent {
  return { kind: 'ConversationErrorEvent', source: 'environment', code, detail };
}

/** Ends a run with an event that says why. */
export async function failRun(host: EngineHost, code: string, detail: string): Promise<void> {
  await host.append(conversationFailure(code, detail));
  await host.setStatus('error');
}

export interface CountedResponse extends CachedTokens {
  text: string;
  calls: readonly unknown[];
  /** The provider's count, like `completionTokens`; null if it gave none. */
  promptTokens: number | null;
  completionTokens: number | null;
  /** What the provider charges, in USD; if null, the known prices count. */
  costUsd: number | null;
}

const CHARACTERS_PER_TOKEN = 4;
const CHARACTERS_PER_IMAGE = 4_000;

/**
 * Counts a response and its cost, and reports once if an unknown price makes the budget unenforceable. The request
 * serves for an estimate when the provider does not count tokens.
 */
export async function countUsage(
  host: EngineHost,
  { llm, modelPrices, maxBudget }: EngineSettings,
  response: CountedResponse,
  request?: unknown,
  isStep = true,
): Promise<void> {
  const promptTokens = response.promptTokens ?? estimateTokens(request);
  const completionTokens = response.completionTokens ?? estimateTokens([response.text, response.calls]);
  const estimate = stepCost(modelPrices, llm.model, { ...response, promptTokens, completionTokens });
  const costUsd = response.costUsd ?? estimate;
  const costSource = response.costUsd === null ? (estimate === null ? 'unknown' : 'catalogue') : 'provider';
  await host.addUsage({ promptTokens, completionTokens, costUsd, costSource, isStep });
  if (costUsd === null && maxBudget !== null) {
    const detail =
      `No price is known for the model ${llm.model}: max_budget_per_task (${usd(maxBudget)}) is not enforced. The ` +
      `operator can give prices in MODEL_PRICES_FILE.`;
    await reportOnce(host, 'BudgetNotEnforced', detail);
  }
}

/** Appends the error unless the conversation already has one with this code. */
export async function reportOnce(host: EngineHost, code: string, detail: string): Promise<void> {
  const isReported = host
    .events()
    .some((event) => event.kind === 'ConversationErrorEvent' && event.code === code);
  if (!isReported) {
    await host.append(conversationFailure(code, detail));
  }
}

/** No server has a context that small, so that a smaller count is wrong. */
const LEAST_CUT = 1_000;

/** Ollama leaves out what its context does not hold, the instructions first, and says so in its own log alone. */
export async function reportCutPrompt(host: EngineHost, counted: number, prompt: unknown): Promise<void> {
  const text = counted < LEAST_CUT ? '' : (JSON.stringify(prompt, withoutOptional) ?? '');
  const tokens = Math.ceil(text.length / CHARACTERS_PER_TOKEN);
  if (tokens > 2 * counted) {
    const detail =
      `The model's server counted ${counted} tokens in a prompt of about ${tokens}. It may leave out what its context ` +
      `does not hold, as Ollama does: give it a larger one there (num_ctx, OLLAMA_CONTEXT_LENGTH).`;
    await reportOnce(host, 'PromptCut', detail);
  }
}

/** Templates of reasoning models leave out earlier reasoning, and models without vision are sent no images. */
function withoutOptional(name: string, member: unknown): unknown {
  const isOptional = ['reasoning', 'file'].includes(jsonText(member, 'type') ?? '');
  return isOptional || name === 'providerOptions' ? undefined : member;
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
