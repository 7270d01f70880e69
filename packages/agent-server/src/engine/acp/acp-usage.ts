import type { EngineHost } from '../agent-engine.js';
import { stepCost } from '../limits.js';
import type { PromptResponse } from './acp-schemas.js';

/** Adds the usage of a turn, as far as the agent reports it. Reported costs are counted by `countCost`. */
export async function countTurn(host: EngineHost, response: PromptResponse, isStep: boolean): Promise<void> {
  const { promptTokens, completionTokens } = tokensOf(response);
  const { modelPrices, llm } = host.settings;
  // A cost that the agent reports itself would be counted twice.
  const tellsCost = typeof host.memory()['costSeen'] === 'number' && host.memory()['tellsCost'] === true;
  const costUsd = tellsCost ? 0 : stepCost(modelPrices, llm.model, { promptTokens, completionTokens });
  if (isStep || promptTokens > 0 || completionTokens > 0) {
    await host.addUsage({ promptTokens, completionTokens, costUsd, isStep });
  }
}

/** Adds the cost of the session since the agent's last report. */
export async function countCost(
  host: EngineHost,
  { amount, currency }: { amount: number; currency: string },
): Promise<void> {
  if (currency.toUpperCase() !== 'USD') {
    return;
  }
  const memory = host.memory();
  const seen = typeof memory['costSeen'] === 'number' ? memory['costSeen'] : 0;
  // A restarted agent may count from zero again.
  const more = amount < seen ? amount : amount - seen;
  await host.remember({ ...memory, costSeen: amount, tellsCost: true });
  if (more > 0) {
    await host.addUsage({ promptTokens: 0, completionTokens: 0, costUsd: more, isStep: false });
  }
}

function tokensOf({ usage, _meta: meta }: PromptResponse): {
  promptTokens: number;
  completionTokens: number;
} {
  if (usage) {
    const { inputTokens, outputTokens, cachedReadTokens, cachedWriteTokens } = usage;
    return {
      promptTokens: inputTokens + cachedReadTokens + cachedWriteTokens,
      completionTokens: outputTokens,
    };
  }
  const counted = meta?.quota.token_count;
  return { promptTokens: counted?.input_tokens ?? 0, completionTokens: counted?.output_tokens ?? 0 };
}
