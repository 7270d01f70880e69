import { describe, expect, it } from '@jest/globals';
import { nextAttempt } from './webhook.sender.js';

const NOW = new Date('2026-11-22T12:00:00Z');

describe('nextAttempt', () => {
  it.each([
    [1, '2026-11-22T12:00:05.000Z'],
    [2, '2026-11-22T12:00:30.000Z'],
    [5, '2026-11-22T12:30:00.000Z'],
    [10, '2026-11-23T08:00:00.000Z'],
    [11, null],
  ])('after %i attempts: %s', (attempts, expected) => {
    expect(nextAttempt(attempts, NOW, { random: 0 })?.toISOString() ?? null).toBe(expected);
  });

  it.each([
    ['as long as the server asks', 3, 240, '2026-11-22T12:04:00.000Z'],
    ['no shorter, should it ask for less', 3, 1, '2026-11-22T12:02:00.000Z'],
    ['an hour, should it ask for days', 3, 259_200, '2026-11-22T13:00:00.000Z'],
    ['as it would, after the last attempt', 11, 240, null],
  ])('waits %s', (_, attempts, wait, expected) => {
    expect(nextAttempt(attempts, NOW, { wait, random: 0 })?.toISOString() ?? null).toBe(expected);
  });

  it('waits a little longer at random', () => {
    expect(nextAttempt(3, NOW, { random: 0.5 })?.toISOString()).toBe('2026-11-22T12:02:06.000Z');
  });
});
