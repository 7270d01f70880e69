import { expect, it } from '@jest/globals';
import type { ConversationStatus, MetricsSnapshot } from '@slipway/agent-protocol/conversation-api.js';
import { needsCredentialRefresh } from './credential-refresh.service.js';

const spent = (cost: number, budget: number | null): MetricsSnapshot => ({
  model_name: 'openai/a',
  accumulated_cost: cost,
  max_budget_per_task: budget,
  accumulated_token_usage: null,
});

it.each<[ConversationStatus | null, MetricsSnapshot | null, boolean]>([
  [null, null, false],
  ['running', null, false],
  ['finished', spent(9, null), false],
  ['finished', spent(0.9, 1), false],
  ['finished', spent(1, 1), true],
  ['idle', spent(0, 0), true],
  ['error', null, true],
  ['error', spent(0, 1), true],
])('a conversation that is %s with %j: %s', (status, metrics, expected) => {
  expect(needsCredentialRefresh({ execution_status: status, metrics })).toBe(expected);
});
