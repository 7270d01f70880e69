import { describe, expect, it } from '@jest/globals';
import {
  actionEvent,
  errorEvent,
  messageEvent,
  observationEvent,
} from '../../../../test/fakes/sample-events.js';
import type { AgentEvent } from '../../../agent-protocol/events.js';
import { isStuck, mustConfirm } from './agent-loop.js';

describe('mustConfirm', () => {
  it.each([
    ['never', true, 'HIGH', false],
    ['always', true, 'LOW', true],
    ['always', false, 'HIGH', false],
    ['risky', true, 'LOW', false],
    ['risky', true, 'MEDIUM', false],
    ['risky', true, 'HIGH', true],
    ['risky', true, 'UNKNOWN', true],
    ['risky', false, 'UNKNOWN', false],
  ] as const)('%s, tool that asks %s, risk %s: %s', (policy, asks, risk, waits) => {
    expect(mustConfirm(policy, asks, risk)).toBe(waits);
  });
});

function turns(count: number, result: (id: string, index: number) => AgentEvent, from = 0): AgentEvent[] {
  return Array.from({ length: count }, (_, index) => `t${index + from}`).flatMap((id, index) => [
    actionEvent(id, id),
    result(id, index),
  ]);
}
const same = (id: string) => observationEvent(id, 'same');
const failing = (id: string) => errorEvent(id, 'the same error');

describe('isStuck', () => {
  it.each([
    ['four times the same', turns(4, same), true],
    ['three times', turns(3, same), false],
    ['four times the same error', turns(4, failing), true],
    ['other results', turns(4, (id, index) => observationEvent(id, `result ${index}`)), false],
    ['an open call', [...turns(3, same), actionEvent('open', 'open')], false],
    ['another call between', [...turns(2, same), ...turns(1, failing, 2), ...turns(3, same, 3)], false],
    [
      'a user message in between',
      [...turns(2, same), messageEvent('m', 'user', 'go on'), ...turns(3, same, 2)],
      false,
    ],
    ['nothing', [], false],
  ])('%s: %#', (_, events, stuck) => {
    expect(isStuck(events)).toBe(stuck);
  });
});
