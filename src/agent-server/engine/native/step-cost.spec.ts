import { describe, expect, it } from '@jest/globals';
import { stepCost } from './step-cost.js';

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
});
