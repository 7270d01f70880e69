import { describe, expect, it } from '@jest/globals';
import { subjectOf } from './event-subject.js';

const NONE = { number: null, title: null, url: null, by: null };

describe('subjectOf', () => {
  it.each<[string, unknown, object]>([
    [
      'an issue of GitHub',
      {
        issue: {
          id: 9,
          number: 23,
          title: 'Totals\n are wrong',
          html_url: 'https://github.com/o/a/issues/23',
        },
        sender: { login: 'ada' },
      },
      { number: 23, title: 'Totals are wrong', url: 'https://github.com/o/a/issues/23', by: 'ada' },
    ],
    [
      'a comment on a merge request of GitLab',
      {
        object_attributes: { id: 7, note: 'Please', url: 'https://gitlab.com/o/a/-/merge_requests/4#note_7' },
        merge_request: { iid: 4, title: 'Totals', url: 'https://gitlab.com/o/a/-/merge_requests/4' },
        user: { username: 'ada' },
      },
      { number: 4, title: 'Totals', url: 'https://gitlab.com/o/a/-/merge_requests/4', by: 'ada' },
    ],
    [
      'a pull request of Bitbucket',
      {
        pullrequest: {
          id: 5,
          title: 'Totals',
          links: { html: { href: 'https://bitbucket.org/o/a/pull-requests/5' } },
        },
        actor: { nickname: 'ada' },
      },
      { number: 5, title: 'Totals', url: 'https://bitbucket.org/o/a/pull-requests/5', by: 'ada' },
    ],
    ['an event of an own source', { type: 'deployed', title: 7 }, NONE],
    ['no object', 'text', NONE],
    [
      'an address of a script',
      { issue: { number: 1.5, title: 'a', html_url: 'javascript:alert(1)' } },
      { ...NONE, title: 'a' },
    ],
    [
      'an address with a name in it',
      { issue: { title: 'a\u202Eb', html_url: 'https://github.com@evil.example/' } },
      { ...NONE, title: 'a b' },
    ],
    [
      'a long title',
      { issue: { title: 'x'.repeat(5_000) } },
      { ...NONE, title: expect.stringMatching(/^x{100,120}…?$/) },
    ],
  ])('of %s', (_, payload, expected) => {
    expect(subjectOf('issues.labeled', payload)).toEqual({ key: 'issues.labeled', ...expected });
  });
});
