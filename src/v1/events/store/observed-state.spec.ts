import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { stateInEvents } from './observed-state.js';

function update(key: string, value: unknown): AgentEvent {
  return {
    kind: 'ConversationStateUpdateEvent',
    id: 'a',
    timestamp: '2026-01-31T12:00:00',
    source: 'environment',
    key,
    value,
  };
}

function finish(call: unknown): AgentEvent {
  const members = { tool_name: 'finish', action: { kind: 'FinishAction' }, tool_call: call };
  return { ...update('', null), kind: 'ActionEvent', source: 'agent', ...members } as never;
}

const USAGE = { model_name: 'm', accumulated_cost: 1.5 };
const METRICS = {
  model_name: 'm',
  accumulated_cost: 1.5,
  cost_source: 'catalogue',
  max_budget_per_task: null,
  accumulated_token_usage: null,
};

describe('stateInEvents', () => {
  it.each<[string, AgentEvent[], object]>([
    ['nothing', [], {}],
    ['another kind', [{ ...update('execution_status', 'running'), kind: 'PauseEvent', source: 'user' }], {}],
    [
      'a status',
      [update('execution_status', 'running')],
      { executionStatus: 'running', hasRun: true, error: null },
    ],
    [
      'the last status',
      [update('execution_status', 'running'), update('execution_status', 'paused')],
      { executionStatus: 'paused', hasRun: true, error: null },
    ],
    ['no status that is unknown', [update('execution_status', 'dreaming')], {}],
    ['metrics', [update('stats', { usage_to_metrics: { agent: USAGE } })], { metrics: METRICS }],
    [
      'metrics with the source of their cost',
      [update('stats', { usage_to_metrics: { agent: { ...USAGE, cost_source: 'provider' } } })],
      { metrics: { ...METRICS, cost_source: 'provider' } },
    ],
    [
      'metrics with a source that is none',
      [update('stats', { usage_to_metrics: { agent: { ...USAGE, cost_source: 'oracle' } } })],
      { metrics: METRICS },
    ],
    ['no metrics where there are none', [update('stats', null), update('stats', {})], {}],
    [
      'the whole state',
      [update('full_state', { execution_status: 'idle', title: 'T\0', metrics: USAGE })],
      { executionStatus: 'idle', error: null, title: 'T\u{FFFD}', metrics: METRICS },
    ],
    ['nothing of another key', [update('agent', { kind: 'Agent' })], {}],
    ['the result of a call', [finish({ arguments: '{"result":{"a":1}}' })], { result: { a: 1 } }],
    [
      'no result of a call that is none',
      [finish(undefined), finish(null), finish({ arguments: 1 }), finish({ arguments: '{' })],
      {},
    ],
  ])('finds %s', (_name, events, expected) => {
    expect(stateInEvents(events)).toEqual(expected);
  });
});
