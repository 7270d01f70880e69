import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import {
  actionEvent,
  errorEvent,
  messageEvent,
  observationEvent,
} from '../../../../../test/fakes/sample-events.js';
import { repeatedCalls } from './loop-detection.js';

function turns(count: number, result: (id: string, index: number) => AgentEvent, from = 0): AgentEvent[] {
  return Array.from({ length: count }, (_, index) => `t${index + from}`).flatMap((id, index) => [
    actionEvent(id, id),
    result(id, index),
  ]);
}
const same = (id: string) => observationEvent(id, 'same');
const failing = (id: string) => errorEvent(id, 'the same error');

/** One letter per call; capitals took a second. All calls with the same letter are equal. */
function calls(letters: string): AgentEvent[] {
  return letters.split('').flatMap((letter, index) => {
    const id = `${letter}${index}`;
    const thought = letter.toLowerCase();
    const start = Date.parse('2026-01-31T12:00:00Z') + index * 10_000;
    const end = start + (letter === thought ? 999 : 1_000);
    return [
      {
        ...actionEvent(id, id, { action: { kind: 'ThinkAction', thought } }),
        timestamp: new Date(start).toISOString(),
      },
      { ...observationEvent(id, 'same'), timestamp: new Date(end).toISOString() },
    ];
  });
}

describe('repeatedCalls', () => {
  it.each([
    ['four times the same', turns(4, same), 1],
    ['three times', turns(3, same), null],
    ['four times the same error', turns(4, failing), 1],
    ['other results', turns(4, (id, index) => observationEvent(id, `result ${index}`)), null],
    ['an open call', [...turns(4, same), actionEvent('open', 'open')], null],
    ['another call between', [...turns(2, same), ...turns(1, failing, 2), ...turns(3, same, 3)], null],
    [
      'a user message in between',
      [...turns(2, same), messageEvent('m', 'user', 'go on'), ...turns(3, same, 2)],
      null,
    ],
    ['nothing', [], null],
  ])('%s', (_, events, period) => {
    expect(repeatedCalls(events)).toBe(period);
  });

  it.each([
    ['abababa', null],
    ['abababab', 2],
    ['xyabababab', 2],
    ['bababababa', 2],
    ['abcabcabcab', null],
    ['abcabcabcabc', 3],
    ['abcdabcdabcdabcdabcd', null],
    ['aabaabaabaab', 3],
    ['aaab', null],
    ['AAAAAAAAA', null],
    ['AAAAAAAAAA', 1],
    ['aaaA', null],
    ['aaaaAAA', null],
    ['aaAaAaaaaa', 1],
    ['bAbAbAbAbAbAbAbAbA', null],
    ['bAbAbAbAbAbAbAbAbAbA', 2],
  ])('%s', (letters, period) => {
    expect(repeatedCalls(calls(letters))).toBe(period);
  });

  it('counts the calls of one response from the end of the one before', () => {
    const at = (event: AgentEvent, second: number): AgentEvent => ({
      ...event,
      timestamp: new Date(Date.parse('2026-01-31T12:00:00Z') + second * 1000).toISOString(),
    });
    const actions = ['a', 'b', 'c', 'd'].map((id) => at(actionEvent(id, 'r'), 0));
    const results = ['a', 'b', 'c', 'd'].map((id, index) => at(same(id), (index + 1) * 0.9));
    expect(repeatedCalls([...actions, ...results])).toBe(1);
  });
});
