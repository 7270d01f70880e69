import { describe, expect, it } from '@jest/globals';
import { followedMergeSchema, toFollowed } from './gitlab.changes.js';

const MERGE = {
  state: 'opened',
  webUrl: 'https://gitlab.example/gitlab/octo/app/-/merge_requests/1',
  diffHeadSha: 'c0ffee',
};

function followed(members: object): ReturnType<typeof toFollowed> {
  return toFollowed(followedMergeSchema.parse({ ...MERGE, ...members }), 'mona');
}

function job(status: string, members: object = {}): object {
  return { id: 'gid://gitlab/Ci::Build/7', name: 'unit', status, allowFailure: false, ...members };
}

describe('followed merge requests', () => {
  it.each([
    ['SUCCESS', false, 'passed'],
    ['SKIPPED', false, 'passed'],
    ['MANUAL', false, 'passed'],
    ['FAILED', false, 'failed'],
    ['FAILED', true, 'passed'],
    ['CANCELED', false, 'failed'],
    ['RUNNING', false, 'pending'],
    ['WAITING_FOR_RESOURCE', true, 'pending'],
    ['A_NEW_ONE', false, 'pending'],
  ])('have a job %s (may fail: %s) as %s', (status, allowFailure, state) => {
    const webPath = '/gitlab/octo/app/-/jobs/7';
    const jobs = { nodes: [job(status, { allowFailure, webPath })] };
    expect(followed({ headPipeline: { jobs } }).checks).toEqual([
      { id: '7', name: 'unit', state, url: 'https://gitlab.example/gitlab/octo/app/-/jobs/7' },
    ]);
  });

  // https://github.com/smarkets/marge-bot/issues/195, https://github.com/sortie-ai/sortie/issues/827
  it.each([
    ['MANUAL', ['passed', 'passed', 'failed']],
    ['RUNNING', ['passed', 'pending', 'failed']],
  ])('have what waits for a person in a pipeline that is %s as %j', (status, states) => {
    const jobs = { nodes: [job('MANUAL'), job('CREATED'), job('FAILED')] };
    expect(followed({ headPipeline: { status, jobs } }).checks.map(({ state }) => state)).toEqual(states);
  });

  it.each<[string | null, string, string[], boolean]>([
    ['SUCCESS', 'SUCCESS', ['passed', 'passed'], false],
    ['FAILED', 'SUCCESS', ['passed', 'failed'], false],
    ['RUNNING', 'SUCCESS', ['passed', 'pending'], false],
    ['FAILED', 'FAILED', ['failed'], false],
    [null, 'SUCCESS', ['passed'], true],
  ])(
    'of which not all jobs are listed have the pipeline, which is %s, beside one that is %s: %j',
    (status, one, states, hidden) => {
      const jobs = { nodes: [job(one)], pageInfo: { hasNextPage: true } };
      const { checks, truncated } = followed({
        headPipeline: { status, jobs },
      });
      expect([checks.map(({ state }) => state), truncated]).toEqual([states, hidden]);
      expect(checks.slice(1)).toEqual(
        states.slice(1).map((state) => ({
          id: 'pipeline-c0ffee',
          name: 'the pipeline',
          state,
          url: `${MERGE.webUrl}/pipelines`,
        })),
      );
    },
  );

  it.each([
    [[], 'MERGEABLE', false],
    [[{ id: 'gid://gitlab/User/1' }], 'MERGEABLE', true],
    [[{ id: 'gid://gitlab/User/1' }], 'CI_STILL_RUNNING', true],
    [[{ id: 'gid://gitlab/User/1' }], 'NOT_APPROVED', false],
    [[{ id: 'gid://gitlab/User/1' }], 'REQUESTED_CHANGES', false],
  ])('are approved by %j with %s: %s', (nodes, detailedMergeStatus, approved) => {
    expect(followed({ approvedBy: { nodes }, detailedMergeStatus }).approved).toBe(approved);
  });

  it.each([
    ['opened', 'open'],
    ['locked', 'open'],
    ['merged', 'merged'],
    ['closed', 'closed'],
  ])('are %s: %s', (state, expected) => {
    expect(followed({ state }).state).toBe(expected);
  });

  it('are what they were when their branch is deleted', () => {
    expect(followed({ state: 'merged', diffHeadSha: null })).toMatchObject({ state: 'merged', headSha: '' });
  });

  it('have what people wrote in discussions', () => {
    const note = (id: string, members: object = {}) => ({
      id: `gid://gitlab/DiffNote/${id}`,
      system: false,
      author: { username: 'ada' },
      maxAccessLevelOfAuthor: 'Maintainer',
      body: 'Why?',
      createdAt: `2026-11-21T12:00:0${id}Z`,
      ...members,
    });
    const bot = { username: 'project_7_bot', bot: true };
    const discussion = (id: string, ...nodes: object[]) => ({
      id: `gid://gitlab/DiffDiscussion/${id}`,
      resolvable: true,
      resolved: false,
      notes: { nodes, pageInfo: {} },
    });
    const { comments, truncated } = followed({
      discussions: {
        pageInfo: { hasPreviousPage: true },
        nodes: [
          discussion(
            'abc1',
            note('1', { position: { filePath: 'a.ts', newLine: null, oldLine: 4 } }),
            note('2', { author: { username: 'mona' }, maxAccessLevelOfAuthor: 'Guest' }),
            note('3', { system: true, body: 'changed this line' }),
            note('6', { maxAccessLevelOfAuthor: 'Reporter' }),
            note('7', { maxAccessLevelOfAuthor: null }),
            note('8', { author: bot, maxAccessLevelOfAuthor: 'Guest' }),
            note('9', { author: bot, maxAccessLevelOfAuthor: null }),
            ...[true, false].map((isBot) =>
              note(isBot ? '10' : '11', {
                author: { username: 'GitLabDuo', bot: isBot },
                maxAccessLevelOfAuthor: null,
                createdAt: '2026-11-21T12:00:10Z',
              }),
            ),
          ),
          discussion('../../x', note('4')),
          discussion('abc2', note('5/notes')),
        ],
      },
    });
    expect(comments).toMatchObject([
      { id: '1', threadId: 'abc1', path: 'a.ts', line: 4, own: false, mayWrite: true, resolved: false },
      { id: '2', threadId: 'abc1', author: 'mona', own: true, mayWrite: false },
      { id: '4', threadId: 'x' },
      { id: '6', mayWrite: false },
      { id: '7', mayWrite: false },
      { id: '8', isBot: true },
      // The account of a stranger's token is a stranger.
      { id: '9', isBot: false, mayWrite: false },
      { id: '10', isBot: true },
      { id: '11', isBot: false, mayWrite: false },
    ]);
    expect([comments.length, truncated]).toEqual([9, true]);
  });

  it.each([
    [null, null, true],
    [3, 2, false],
    [4, 2, true],
  ])(
    'hide open threads when %s are resolvable, %s resolved, and one open is read: %s',
    (all, resolved, hidden) => {
      const found = followed({
        resolvableDiscussionsCount: all,
        resolvedDiscussionsCount: resolved,
        discussions: {
          pageInfo: { hasPreviousPage: true },
          nodes: [{ id: 'gid://gitlab/DiffDiscussion/a', resolvable: true, resolved: false }],
        },
      });
      expect(found.truncated).toBe(hidden);
    },
  );
});
