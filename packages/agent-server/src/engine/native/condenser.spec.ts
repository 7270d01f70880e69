import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import {
  actionEvent,
  condensationEvent,
  messageEvent,
  observationEvent,
  systemPromptEvent,
} from '../../../../../test/fakes/sample-events.js';
import { forgettable } from './condenser.js';

/** One event takes about 100 tokens in the log; a result of that length 1,000 more. */
const LONG = 'x'.repeat(4_000);

function turn(id: string): AgentEvent[] {
  return [actionEvent(id, `answer-${id}`), observationEvent(id, LONG)];
}

const head = [messageEvent('task', 'user', 'do it'), systemPromptEvent('Be good.')];

function idsOf(events: AgentEvent[], keepTokens: number): string[] | undefined {
  return forgettable(events, keepTokens)?.events.map(({ id }) => id);
}

describe('forgettable', () => {
  it('keeps the task, the system prompt and the newest turns', () => {
    const events = [...head, ...turn('a'), ...turn('b'), ...turn('c'), ...turn('d')];
    expect(idsOf(events, 3_000)).toEqual(['a', 'a-result', 'b', 'b-result']);
    expect(forgettable(events, 3_000)?.offset).toBe(2);
  });

  it('keeps the last turn, however large', () => {
    expect(idsOf([...head, ...turn('a'), ...turn('b'), ...turn('c')], 0)).toEqual([
      'a',
      'a-result',
      'b',
      'b-result',
    ]);
  });

  it('never separates a response from its calls and results', () => {
    const together = [
      actionEvent('a', 'one'),
      actionEvent('b', 'one'),
      observationEvent('a', LONG),
      messageEvent('late', 'user', 'hurry'),
      observationEvent('b', LONG),
    ];
    expect(idsOf([...head, ...turn('z'), ...turn('y'), ...together, ...turn('c')], 1_200)).toEqual([
      'z',
      'z-result',
      'y',
      'y-result',
      'a',
      'b',
      'a-result',
      'late',
      'b-result',
    ]);
    expect(idsOf([...head, ...turn('z'), ...turn('y'), ...together], 1_200)).toEqual([
      'z',
      'z-result',
      'y',
      'y-result',
    ]);
  });

  it('includes an earlier summary', () => {
    const events = [
      ...head,
      ...turn('a'),
      condensationEvent('c1', ['a', 'a-result'], 'before', 2),
      ...turn('b'),
      ...turn('c'),
    ];
    expect(idsOf(events, 1_200)).toEqual(['c1', 'b', 'b-result']);
  });

  it('returns null for a short history', () => {
    expect(forgettable([...head, ...turn('a')], 0)).toBeNull();
    expect(forgettable([...head, ...turn('a'), ...turn('b')], 100_000)).toBeNull();
    expect(forgettable([], 0)).toBeNull();
  });
});
