import { describe, expect, it } from '@jest/globals';
import { statusEvent } from './webhook-event.js';
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

describe('statusEvent', () => {
  it.each([
    ['finished', 'conversation.finished'],
    ['waiting_for_confirmation', 'conversation.waiting_for_confirmation'],
    ['idle', undefined],
    ['ready', 'conversation.ready'],
    ['anything', undefined],
  ])('%s: %s', (status, type) => {
    expect(statusEvent(status, { conversationId: 'c', sandboxId: 's', error: null })?.type).toBe(type);
  });
});
