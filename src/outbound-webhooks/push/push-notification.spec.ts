import { describe, expect, it } from '@jest/globals';
import { notificationOf } from './push-notification.js';

const ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';
const PULL = { repository: 'octo/app', number: 17 };

describe('notificationOf', () => {
  it.each([
    ['conversation.waiting_for_confirmation', {}, 'waiting', 'Waits for you'],
    ['conversation.finished', {}, 'finished', 'Finished'],
    ['conversation.error', { error: { detail: 'of the model' } }, 'failed', 'Failed'],
    ['conversation.stuck', {}, 'failed', 'Failed'],
    ['conversation.start_failed', { detail: 'of git' }, 'failed', 'Failed to start'],
    [
      'pull_request.reached',
      { ...PULL, reason: 'The pull request is green.' },
      'pull_request',
      'octo/app #17: The pull request is green.',
    ],
  ] as const)('of %s', (type, data, kind, body) => {
    expect(notificationOf({ type, data: { conversation_id: ID, ...data }, title: 'Mend it' })).toEqual({
      kind,
      title: 'Mend it',
      body,
      path: `/console/conversations${type.endsWith('start_failed') ? '' : `/${ID}`}`,
      topic: ID,
    });
  });

  it.each([
    'conversation.running',
    'conversation.paused',
    'pull_request.opened',
    'budget.threshold',
  ] as const)('is none of %s', (type) => {
    expect(notificationOf({ type, data: { conversation_id: ID } })).toBeNull();
  });

  it.each([
    [null, 'Conversation 8d7b2'],
    ['x'.repeat(300), 'x'.repeat(200)],
  ])('has a title for %j', (title, expected) => {
    const event = { type: 'conversation.finished', data: { conversation_id: ID }, title } as const;
    expect(notificationOf(event)?.title).toBe(expected);
  });
});
