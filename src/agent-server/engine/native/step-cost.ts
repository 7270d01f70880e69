import type { EngineSettings } from '../agent-engine.js';

/**
 * Cost of a step in USD, null when nobody knows the model's price. A price is looked up under the name in the
 * settings, then without its provider.
 */
export function stepCost(
  prices: EngineSettings['modelPrices'],
  model: string,
  usage: { promptTokens: number; completionTokens: number },
): number | null {
  const price = own(prices, model) ?? own(prices, model.slice(model.indexOf('/') + 1));
  return price === undefined
    ? null
    : (usage.promptTokens * price.input + usage.completionTokens * price.output) / 1_000_000;
}

function own(
  prices: EngineSettings['modelPrices'],
  name: string,
): { input: number; output: number } | undefined {
  return Object.hasOwn(prices, name) ? prices[name] : undefined;
}
