import { describe, expect, it } from '@jest/globals';
import { followedPullSchema, toFollowed } from './github.changes.js';

const PULL = { state: 'OPEN', url: 'https://github.com/octo/app/pull/1', headRefOid: 'c0ffee' };

function followed(members: object): ReturnType<typeof toFollowed> {
  return toFollowed(followedPullSchema.parse({ ...PULL, ...members }));
}

function checks(...nodes: object[]): object {
  return { statusCheckRollup: { contexts: { totalCount: nodes.length, nodes } } };
}

function run(id: number, name: string, members: object = {}): object {
  const passed = { status: 'COMPLETED', conclusion: 'SUCCESS' };
  return { kind: 'CheckRun', fullDatabaseId: id, name, ...passed, ...members };
}

function comment(id: number, members: object = {}): object {
  return {
    fullDatabaseId: String(id),
    author: { login: 'ada' },
    authorAssociation: 'MEMBER',
    viewerDidAuthor: false,
    isMinimized: false,
    body: 'Why?',
    createdAt: `2026-11-21T12:00:0${id}Z`,
    url: `https://github.com/octo/app/pull/1#${id}`,
    ...members,
  };
}

describe('followed pull requests', () => {
  it.each([
    ['QUEUED', null, 'pending'],
    ['IN_PROGRESS', null, 'pending'],
    ['WAITING', null, 'pending'],
    ['COMPLETED', 'SUCCESS', 'passed'],
    ['COMPLETED', 'NEUTRAL', 'passed'],
    ['COMPLETED', 'SKIPPED', 'passed'],
    ['COMPLETED', 'FAILURE', 'failed'],
    ['COMPLETED', 'CANCELLED', 'failed'],
    ['COMPLETED', 'TIMED_OUT', 'failed'],
    ['COMPLETED', 'ACTION_REQUIRED', 'failed'],
    ['COMPLETED', 'A_NEW_ONE', 'failed'],
  ])('have a run that is %s with %s as %s', (status, conclusion, state) => {
    expect(followed(checks(run(1, 'unit', { status, conclusion }))).checks).toMatchObject([
      { id: '1', state },
    ]);
  });

  it.each([
    ['SUCCESS', 'passed'],
    ['FAILURE', 'failed'],
    ['ERROR', 'failed'],
    ['PENDING', 'pending'],
    ['EXPECTED', 'pending'],
  ])('have a status %s as %s', (state, expected) => {
    const status = { kind: 'StatusContext', id: 'SC_1', context: 'ci', state, targetUrl: 'javascript:x' };
    expect(followed(checks(status)).checks).toEqual([{ id: 'SC_1', name: 'ci', state: expected, url: null }]);
  });

  it('have the newest run of each check of each workflow', () => {
    const of = (name: string) => ({ checkSuite: { workflowRun: { event: 'push', workflow: { name } } } });
    const found = followed(
      checks(
        run(12, 'unit', { ...of('CI'), conclusion: 'FAILURE' }),
        run(9, 'unit', of('CI')),
        run(10, 'unit', of('Nightly')),
        { kind: 'CheckRun', name: 'without a number' },
        { kind: 'Deployment' },
      ),
    );
    expect(found.checks.map(({ id, state }) => [id, state])).toEqual([
      ['12', 'failed'],
      ['10', 'passed'],
    ]);
    expect(found.truncated).toBe(true);
  });

  // https://github.com/Mergifyio/mergify/issues/5172, https://github.com/wechuli/allcheckspassed/issues/102
  it.each([
    ['by the run for another event', 2, 'unit', 'CI', ['passed']],
    ['by no later one', 0, 'unit', 'CI', ['failed', 'passed']],
    ['by no other job', 2, 'lint', 'CI', ['failed', 'passed']],
    ['by no other workflow', 2, 'unit', 'Nightly', ['failed', 'passed']],
  ])('have a cancelled run superseded %s', (_by, id, job, name, states) => {
    const of = (event: string, workflow: string): object => ({
      checkSuite: { workflowRun: { event, workflow: { name: workflow } } },
    });
    const cancelled = run(1, 'unit', { ...of('push', 'CI'), conclusion: 'CANCELLED' });
    const found = followed(checks(cancelled, run(id, job, of('pull_request', name)))).checks;
    expect(found.map(({ state }) => state)).toEqual(states);
  });

  it.each<[string | null, string, string[], boolean]>([
    ['SUCCESS', 'SUCCESS', ['passed', 'passed'], false],
    ['FAILURE', 'SUCCESS', ['passed', 'failed'], false],
    ['ERROR', 'SUCCESS', ['passed', 'failed'], false],
    ['PENDING', 'SUCCESS', ['passed', 'pending'], false],
    ['EXPECTED', 'SUCCESS', ['passed', 'pending'], false],
    ['FAILURE', 'FAILURE', ['failed'], false],
    [null, 'SUCCESS', ['passed'], true],
  ])(
    'of which not all can be read are %s together, beside one that is %s: %j',
    (state, conclusion, states, hidden) => {
      const contexts = { totalCount: 140, nodes: [run(1, 'unit', { conclusion }), null] };
      const { checks: all, truncated } = followed({ statusCheckRollup: { state, contexts } });
      expect([all.map((each) => each.state), truncated]).toEqual([states, hidden]);
    },
  );

  const GREEN = checks(run(1, 'lint'));
  function workflows(...nodes: object[]): object {
    return { commits: { nodes: [{ commit: { checkSuites: { nodes } } }] } };
  }
  function workflow(databaseId: number, status: string, conclusion: string | null = null): object {
    const url = 'https://github.com/octo/app/runs/1';
    const workflowRun = { url, event: 'push', workflow: { name: 'CI' } };
    return { databaseId, status, conclusion, workflowRun };
  }

  const over = (conclusion: string, id = 1): object => workflow(id, 'COMPLETED', conclusion);

  it.each<[string, object[], [string, string][]]>([
    // https://github.com/handarbeit/fabrik/issues/1822: a job is no check before it begins.
    ['that runs', [workflow(1, 'IN_PROGRESS')], [['CI', 'pending']]],
    // https://github.com/breferrari/vigia/issues/236
    ['that is queued', [workflow(1, 'QUEUED')], [['CI', 'pending']]],
    ['that waits for the approval of a person', [over('ACTION_REQUIRED')], [['CI', 'pending']]],
    ['whose file is wrong', [over('STARTUP_FAILURE')], [['CI (could not start)', 'failed']]],
    ['that is over, as its jobs tell', [over('FAILURE')], []],
    ['that ran again', [over('SUCCESS', 2), over('STARTUP_FAILURE')], []],
    // https://github.com/sourcegraph/sourcegraph-public-snapshot/pull/9058
    ['of an app that never reports', [{ databaseId: 1, status: 'QUEUED', workflowRun: null }], []],
  ])('have beside its jobs a workflow %s: %j', (_which, nodes, expected) => {
    const found = followed({ ...GREEN, ...workflows(...nodes) }).checks;
    expect(found.map(({ name, state }) => [name, state])).toEqual([['lint', 'passed'], ...expected]);
  });

  it.each([
    ['IN_PROGRESS', 'pending'],
    ['COMPLETED', 'failed'],
  ])('have a cancelled job of a workflow that is %s as %s', (status, state) => {
    const cancelled = checks(run(1, 'unit', { conclusion: 'CANCELLED' }));
    expect(followed({ ...cancelled, ...workflows(workflow(2, status)) }).checks[0]).toMatchObject({ state });
  });

  it.each([
    [null, [], false],
    [null, ['APPROVED'], true],
    [null, ['APPROVED', 'CHANGES_REQUESTED'], false],
    ['REVIEW_REQUIRED', ['APPROVED'], false],
    ['APPROVED', [], true],
    ['CHANGES_REQUESTED', ['APPROVED'], false],
  ])('are approved by the decision %s and the reviews %j: %s', (reviewDecision, states, approved) => {
    const latestOpinionatedReviews = { nodes: states.map((state) => ({ state })) };
    expect(followed({ reviewDecision, latestOpinionatedReviews }).approved).toBe(approved);
  });

  it('have what is public of threads, comments and reviews', () => {
    const thread = (members: object) => ({
      isResolved: false,
      path: 'a.ts',
      line: null,
      originalLine: 7,
      root: { nodes: [{ fullDatabaseId: '3' }] },
      ...members,
    });
    const { comments, truncated } = followed({
      reviewThreads: {
        totalCount: 1,
        nodes: [
          thread({
            comments: {
              totalCount: 9,
              nodes: [comment(4, { state: 'SUBMITTED' }), comment(5, { state: 'PENDING', body: 'a draft' })],
            },
          }),
          null,
          { isResolved: 'no' },
        ],
      },
      comments: {
        totalCount: 2,
        nodes: [
          comment(1, { author: null, authorAssociation: 'NONE' }),
          comment(2, { isMinimized: true, body: 'spam' }),
        ],
      },
      reviews: { totalCount: 1, nodes: [comment(6, { body: '', state: 'APPROVED' })] },
    });
    expect(comments).toMatchObject([
      { id: 'issuecomment-1', threadId: null, author: 'ghost', mayWrite: null, resolved: null },
      { id: 'discussion_r4', threadId: '3', path: 'a.ts', line: 7, mayWrite: null, resolved: false },
    ]);
    expect([comments.length, truncated]).toEqual([2, false]);
  });

  it.each<[string | null, string, object, object?]>([
    ['User', 'COMMENTED', { isBot: false, mayWrite: false }, { authorCanPushToRepository: false }],
    // A member whose membership is private.
    ['User', 'COMMENTED', { isBot: false, mayWrite: true }, { authorCanPushToRepository: true }],
    ['User', 'CHANGES_REQUESTED', { isBot: false, mayWrite: null }, { authorAssociation: 'COLLABORATOR' }],
    ['Bot', 'COMMENTED', { isBot: true, mayWrite: null }],
    // An app that was let in is no stranger, though it cannot push.
    ['Bot', 'CHANGES_REQUESTED', { isBot: false, mayWrite: null }],
    // Of an account that was deleted.
    [null, 'COMMENTED', { isBot: false, mayWrite: null }],
  ])('have the review of a %s that is %s as %j', (kind, state, expected, members = {}) => {
    // Without the [bot] that REST appends: https://github.com/anthropics/claude-code-action/issues/1514
    const author = kind && { kind, login: 'coderabbitai' };
    const review = comment(1, { state, author, authorAssociation: 'NONE', ...members });
    expect(followed({ reviews: { nodes: [review] } }).comments).toMatchObject([expected]);
  });

  it.each([
    ['OWNER', true],
    // Either may have the right to read alone.
    ['MEMBER', null],
    ['COLLABORATOR', null],
    // Members whose membership is private are shown as these.
    ['CONTRIBUTOR', null],
    ['NONE', null],
  ])(
    'have a comment of %s as of one who may write: %s; null: GitHub is asked',
    (authorAssociation, mayWrite) => {
      const nodes = [comment(1, { authorAssociation })];
      expect(followed({ comments: { nodes } }).comments).toMatchObject([{ mayWrite }]);
    },
  );

  it.each([
    [2, [true, false], false],
    [101, [true, true], true],
    [2, [false, false], true],
  ])(
    'hide open threads when of %s these are resolved: %j, and one is read: %s',
    (totalCount, resolved, hidden) => {
      const thread = { isResolved: false, comments: { nodes: [] } };
      const found = followed({
        threadStates: { totalCount, nodes: resolved.map((isResolved) => ({ isResolved })) },
        reviewThreads: { nodes: [thread] },
      });
      expect(found.truncated).toBe(hidden);
    },
  );

  it('keep the comments of writers and of the account itself where strangers write more than are kept', () => {
    const stranger = { authorAssociation: 'NONE', createdAt: '2026-11-21T12:00:09Z' };
    const strangers = Array.from({ length: 99 }, (_none, index) => comment(100 + index, stranger));
    const own = comment(1, { authorAssociation: 'NONE', viewerDidAuthor: true });
    const nodes = [own, comment(2, { authorAssociation: 'MEMBER' }), ...strangers];
    const ids = followed({ comments: { nodes: nodes.slice(1) } }).comments.map(({ id }) => id);
    expect(ids).toHaveLength(100);
    const kept = followed({
      comments: { nodes: nodes.slice(1) },
      reviews: { nodes: [{ ...own, state: 'COMMENTED' }] },
    });
    expect(kept.comments.map(({ id }) => id).toSorted()).toEqual(['issuecomment-2', 'pullrequestreview-1']);
  });

  it('hide no open threads of strangers, whatever their number', () => {
    const by = (authorAssociation: string) => ({
      isResolved: false,
      comments: { nodes: [{ authorAssociation }] },
    });
    const truncated = (associations: string[]) =>
      followed({ threadStates: { totalCount: associations.length, nodes: associations.map(by) } }).truncated;
    expect(truncated(['NONE', 'FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR', 'MANNEQUIN'])).toBe(false);
    expect(truncated(['NONE', 'MEMBER'])).toBe(true);
  });

  it('may lack everything else', () => {
    expect(followed({})).toEqual({
      state: 'open',
      url: PULL.url,
      headSha: 'c0ffee',
      conflicts: 'unknown',
      approved: false,
      checks: [],
      comments: [],
      truncated: false,
    });
  });
});
