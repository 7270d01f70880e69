import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import {
  actionEvent,
  condensationEvent,
  messageEvent,
  observationEvent,
  systemPromptEvent,
} from '../../../../../test/fakes/sample-events.js';
import { forgettable, transcript } from './condenser.js';

/** One event takes about 100 tokens in the log; a result of that length 1,000 more. */
const LONG = 'x'.repeat(4_000);

function turn(id: string): AgentEvent[] {
  return [actionEvent(id, `answer-${id}`), observationEvent(id, LONG)];
}

const head = [messageEvent('task', 'user', 'do it'), systemPromptEvent('Be good.')];

function idsOf(events: AgentEvent[], keepTokens: number): string | undefined {
  return forgettable(events, keepTokens)
    ?.events.map(({ id }) => id)
    .join(' ');
}

describe('forgettable', () => {
  it('keeps the task, the system prompt and the newest turns', () => {
    const events = [...head, ...turn('a'), ...turn('b'), ...turn('c'), ...turn('d')];
    expect(idsOf(events, 3_000)).toBe('a a-result b b-result');
    expect(forgettable(events, 3_000)?.offset).toBe(2);
  });

  it('keeps the last turn, however large', () => {
    expect(idsOf([...head, ...turn('a'), ...turn('b'), ...turn('c')], 0)).toBe('a a-result b b-result');
  });

  it('never separates a response from its calls and results', () => {
    const together = [
      actionEvent('a', 'one'),
      actionEvent('b', 'one'),
      observationEvent('a', LONG),
      messageEvent('late', 'user', 'hurry'),
      observationEvent('b', LONG),
    ];
    expect(idsOf([...head, ...turn('z'), ...turn('y'), ...together, ...turn('c')], 1_200)).toBe(
      'z z-result y y-result a b a-result late b-result',
    );
    expect(idsOf([...head, ...turn('z'), ...turn('y'), ...together], 1_200)).toBe('z z-result y y-result');
  });

  it('includes an earlier summary', () => {
    const events = [
      ...head,
      ...turn('a'),
      condensationEvent('c1', ['a', 'a-result'], 'before', 2),
      ...turn('b'),
      ...turn('c'),
    ];
    expect(idsOf(events, 1_200)).toBe('c1 b b-result');
  });

  it('returns null for a short history', () => {
    expect(forgettable([...head, ...turn('a')], 0)).toBeNull();
    expect(forgettable([...head, ...turn('a'), ...turn('b')], 100_000)).toBeNull();
    expect(forgettable([], 0)).toBeNull();
  });
});

describe('transcript', () => {
  const wish = `${LONG}${LONG} never touch the lock file ${LONG}${LONG}`;
  const turns = Array.from({ length: 20 }, () => observationEvent('a', `${LONG} of the result ${LONG}`));

  it.each([
    ['a message of the user', messageEvent('m', 'user', wish)],
    ['an earlier summary', condensationEvent('c', ['x'], wish, 2)],
  ])('has the whole of %s, and the ends of results', (_, event) => {
    const text = transcript([...turns, event, ...turns], 200_000);
    expect(text).toContain(wish);
    expect(text).not.toContain('of the result');
    expect(text.length).toBeGreaterThan(40 * 4_000);
  });

  it('shows less of each result rather than nothing of what stands between them', () => {
    const text = transcript([...turns, messageEvent('m', 'user', wish), ...turns], 50_000);
    expect(text).toContain(wish);
    expect(text.length).toBeLessThanOrEqual(50_000);
  });

  it('is never longer than what fits', () => {
    const text = transcript([messageEvent('m', 'user', wish), ...turns], 1_000);
    expect(text.length).toBeLessThan(1_100);
  });
});
