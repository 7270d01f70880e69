import { describe, expect, it } from '@jest/globals';
import { limitReached } from './limits.js';

describe('limitReached', () => {
  it.each([
    [{ maxIterations: 3, maxBudget: null }, { iterations: 2, costUsd: 99 }, undefined],
    [{ maxIterations: 3, maxBudget: null }, { iterations: 3, costUsd: 0 }, 'MaxIterationsReached'],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 0, costUsd: 0.99 }, undefined],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 0, costUsd: 1 }, 'MaxBudgetReached'],
    [{ maxIterations: 3, maxBudget: 1 }, { iterations: 3, costUsd: 1 }, 'MaxBudgetReached'],
  ])('%j after %j: %s', (settings, totals, code) => {
    expect(limitReached(settings, totals)?.code).toBe(code);
  });
});
