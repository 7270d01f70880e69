import { describe, expect, it } from '@jest/globals';
import { followedParts, toFollowed } from './bitbucket-data-center.changes.js';

function followed({
  merge = {},
  builds = [],
  activities = [],
}: {
  merge?: object;
  builds?: object[];
  activities?: object[];
}): ReturnType<typeof toFollowed> {
  return toFollowed(
    {
      pull: followedParts.pullRequestSchema.parse({ state: 'OPEN', fromRef: { latestCommit: 'c0ffee' } }),
      merge: followedParts.mergeSchema.parse(merge),
      builds: followedParts.buildsSchema.parse({ isLastPage: true, values: builds }),
      activities: followedParts.activitiesSchema.parse({ isLastPage: true, values: activities }),
    },
    'mona',
  );
}

function comment(id: number, members: object = {}): object {
  return { id, text: 'Why?', author: { name: 'ada' }, createdDate: id, severity: 'NORMAL', ...members };
}

function added(told: object, members: object = {}): object {
  return { action: 'COMMENTED', commentAction: 'ADDED', comment: told, ...members };
}

describe('followed pull requests of Data Center', () => {
  it.each([
    ['SUCCESSFUL', 'passed'],
    ['FAILED', 'failed'],
    ['CANCELLED', 'failed'],
    ['INPROGRESS', 'pending'],
    ['UNKNOWN', 'pending'],
  ])('have a build %s as %s', (state, expected) => {
    expect(followed({ builds: [{ key: 'CI', state, url: 'ftp://ci.example' }] }).checks).toEqual([
      { id: 'c0ffee CI', name: 'CI', state: expected, url: null },
    ]);
  });

  it.each([
    [{ conflicted: true }, 'yes'],
    [{ conflicted: false }, 'no'],
    [{}, 'unknown'],
  ])('have conflicts by %j: %s', (merge, conflicts) => {
    expect(followed({ merge }).conflicts).toBe(conflicts);
  });

  it('have comments once, in their threads, and not those that were deleted or are drafts', () => {
    const reply = comment(2, { author: { name: 'mona' } });
    const draft = comment(7, { author: { name: 'mona' }, state: 'PENDING' });
    const { comments } = followed({
      activities: [
        { action: 'APPROVED' },
        added(reply),
        { action: 'COMMENTED', commentAction: 'DELETED', comment: comment(3) },
        added(comment(3)),
        added(comment(1, { comments: [reply, draft] }), { commentAnchor: { path: 'a.ts', line: 4 } }),
        added(comment(4, { severity: 'BLOCKER', state: 'OPEN' })),
        added(comment(5)),
        added({ id: 6 }),
        added(comment(8, { state: 'PENDING' })),
      ],
    });
    expect(
      comments.map(({ id, threadId, line, own, resolved }) => [id, threadId, line, own, resolved]),
    ).toEqual([
      ['1', '1', 4, false, false],
      ['2', '1', 4, true, false],
      ['4', '4', null, false, false],
      ['5', '5', null, false, null],
    ]);
  });

  it('have replies that are nested without an end up to a depth', () => {
    let nested = comment(60);
    for (let id = 59; id > 0; id -= 1) {
      nested = comment(id, { comments: [nested] });
    }
    expect(followed({ activities: [added(nested)] }).comments).toHaveLength(20);
  });
});
