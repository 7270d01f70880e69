import { describe, expect, it } from '@jest/globals';
import { followedParts, toFollowed } from './bitbucket.changes.js';

interface Sent {
  pull?: object;
  statuses?: unknown;
  comments?: unknown;
}

function followed({ pull = {}, statuses = [], comments = [] }: Sent): ReturnType<typeof toFollowed> {
  const sent = {
    state: 'OPEN',
    links: { html: { href: 'https://bitbucket.org/octo/app/pull-requests/1' } },
    source: { commit: { hash: 'c0ffee' } },
    ...pull,
  };
  return toFollowed(
    {
      pull: followedParts.pullRequestSchema.parse(sent),
      statuses: { values: followedParts.statuses.parse(statuses), complete: true },
      comments: { values: followedParts.comments.parse(comments), complete: false },
      tasks: { values: [], complete: true },
      conflicts: 'no',
    },
    '{mona}',
  );
}

describe('followed pull requests of Bitbucket', () => {
  it.each([
    ['SUCCESSFUL', 'passed'],
    ['FAILED', 'failed'],
    ['STOPPED', 'failed'],
    ['INPROGRESS', 'pending'],
  ])('have a status %s as %s', (state, expected) => {
    const statuses = [
      { key: 'CI', state, updated_on: '2026-11-21T12:00:02Z', url: 'https://ci.example/2' },
      { key: 'CI', name: 'older', state: 'FAILED', updated_on: '2026-11-21T12:00:01Z' },
    ];
    expect(followed({ statuses }).checks).toEqual([
      { id: 'c0ffee CI', name: 'CI', state: expected, url: 'https://ci.example/2' },
    ]);
  });

  it.each([
    ['OPEN', 'open'],
    ['MERGED', 'merged'],
    ['DECLINED', 'closed'],
    ['SUPERSEDED', 'closed'],
  ])('are %s: %s', (state, expected) => {
    expect(followed({ pull: { state } }).state).toBe(expected);
  });

  it('are what they were when their branch is deleted', () => {
    const found = followed({ pull: { state: 'MERGED', source: { commit: null } } });
    expect(found).toMatchObject({ state: 'merged', headSha: '' });
  });

  it('have comments in their threads, also where the beginning was not read', () => {
    const comment = (id: number, members: object = {}) => ({
      id,
      user: { uuid: '{ada}', nickname: 'ada' },
      content: { raw: 'Why?' },
      created_on: `2026-11-21T12:00:0${id}Z`,
      ...members,
    });
    const inline = { path: 'a.ts', to: null, from: 3 };
    const { comments } = followed({
      comments: [
        comment(1, { inline, resolution: { type: 'comment_resolution' } }),
        comment(2, { parent: { id: 1 }, user: { uuid: '{mona}', nickname: 'mona' } }),
        comment(3, { parent: { id: 2 } }),
        comment(4, { parent: { id: 99 }, inline }),
        comment(5, { parent: { id: 6 } }),
        comment(6, { parent: { id: 5 } }),
        comment(7, { deleted: true }),
        comment(8, { pending: true }),
        { id: 9 },
      ],
    });
    expect(
      comments.map(({ id, threadId, line, own, resolved }) => [id, threadId, line, own, resolved]),
    ).toEqual([
      ['1', '1', 3, false, true],
      ['2', '1', 3, true, true],
      ['3', '1', 3, false, true],
      ['4', '99', 3, false, false],
      ['5', expect.any(String), null, false, null],
      ['6', expect.any(String), null, false, null],
    ]);
  });
});
