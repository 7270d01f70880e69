import { describe, expect, it } from '@jest/globals';
import { keyMatches, mismatch } from './trigger.dto.js';

const LABELED = { action: 'labeled', label: { name: 'agent' } };

describe('a key', () => {
  it.each([
    ['push', 'push', true],
    ['push', '*', true],
    ['issues.labeled', 'issues.*', true],
    ['issues', 'issues.*', true],
    ['issues.labeled', 'issues', false],
    ['issues_other.x', 'issues.*', false],
    ['repo.refs_changed', 'repo.refs_changed', true],
    // As Bitbucket writes its own keys.
    ['pullrequest.created', 'pullrequest:created', true],
    ['pr.comment.added', 'pr:comment.*', true],
    // Of a source of the user's own.
    ['Issue:create', 'Issue:create', true],
  ])('%s fits %s: %s', (key, pattern, fits) => {
    expect(keyMatches(key, pattern)).toBe(fits);
  });
});

describe('an event', () => {
  const event = { source: 'github', key: 'issues.labeled', payload: LABELED };
  it.each([
    ['that it waits for', { on: ['push', 'issues.*'] }, null],
    ['of another source', { source: 'gitlab', on: '*' }, 'It waits for events of gitlab.'],
    ['of another kind', { on: 'push' }, 'It waits for push, and the event is issues.labeled.'],
    [
      'that its filter refuses',
      { on: '*', filter: "label.name == 'x'" },
      'Its filter is false for the event.',
    ],
    [
      'that it cannot judge',
      { on: '*', filter: `@${' | [@, @]'.repeat(60)}` },
      'Its filter failed: the expression takes too long for this event.',
    ],
  ])('%s starts it, or says why not', (_what, members, reason) => {
    expect(mismatch({ type: 'event', source: 'github', ...members }, event)).toBe(reason);
  });

  it('starts no schedule', () => {
    expect(mismatch({ type: 'cron', schedule: '* * * * *', timezone: 'UTC' }, event)).toContain('schedule');
  });
});
