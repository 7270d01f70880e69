import { expect, it } from '@jest/globals';
import { agentLimits } from './agent-settings.js';

it.each([
  [
    { max_iterations: null, max_budget_per_task: null },
    { max_iterations: 500, max_budget: null },
  ],
  [
    { max_iterations: 7, max_budget_per_task: 0 },
    { max_iterations: 7, max_budget: 0 },
  ],
])('%j: %j', (settings, expected) => {
  expect(agentLimits(settings)).toEqual(expected);
});
