import { describe, expect, it } from '@jest/globals';
import { limitReached, stepCost } from './limits.js';

describe('limitReached', () => {
  it.each([
    [{ maxIterations: 3, maxBudget: null }, { iterations: 2, costUsd: 99 }, undefined],
    [{ maxIterations: 3, maxBudget: null }, { iterations: 3, costUsd: 0 }, 'MaxIterationsReached'],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 0, costUsd: 0.99 }, undefined],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 0, costUsd: 1 }, 'MaxBudgetReached'],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 3, costUsd: 1 }, 'MaxBudgetReached'],
    [{ maxIterations: 3, maxBudget: 0 }, { iterations: 0, costUsd: 0 }, 'MaxBudgetReached'],
  ])('%j after %j: %s', (settings, totals, code) => {
    expect(limitReached(settings, totals)?.code).toBe(code);
  });

  it('rounds amounts', () => {
    const detail = limitReached(
      { maxIterations: 3, maxBudget: 5 / 3 },
      { iterations: 0, costUsd: 1.7 },
    )?.detail;
    expect(detail).toContain('has cost 1.7 USD and its limit (max_budget_per_task) is 1.66667 USD. Raise it');
  });
});

const prices = { 'openai/gpt-5': { input: 1, output: 10 }, claude: { input: 3, output: 15 } };
const usage = { promptTokens: 1_000_000, completionTokens: 100_000 };

describe('stepCost', () => {
  it.each([
    ['openai/gpt-5', 2],
    ['anthropic/claude', 4.5],
    ['claude', 4.5],
    ['gpt-5', null],
    ['toString', null],
  ])('%s costs %s', (model, cost) => {
    expect(stepCost(prices, model, usage)).toBe(cost);
  });

  it('is less for what the cache of the provider had', () => {
    const cached = { ...usage, cacheReadTokens: 800_000, cacheWriteTokens: 100_000 };
    const own = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 };
    expect(stepCost({ claude: own }, 'claude', cached)).toBeCloseTo(0.3 + 0.24 + 0.375 + 1.5);
    expect(stepCost(prices, 'claude', cached)).toBe(4.5);
  });
});
