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
    expect(nextAttempt(attempts, NOW, 0)?.toISOString() ?? null).toBe(expected);
  });

  it('waits a little longer at random', () => {
    expect(nextAttempt(3, NOW, 0.5)?.toISOString()).toBe('2026-11-22T12:02:06.000Z');
  });
});
