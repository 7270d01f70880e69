import { describe, expect, it, jest } from '@jest/globals';
import {
  addCheck,
  addComment,
  addWorkflow,
  approve,
  requestChanges,
  STRANGER,
} from '../../../test/fakes/fake-followed.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import { RequestWaves } from '../../../test/support/request-waves.js';
import { describeGitProvider } from './git-provider.contract.js';
import { failureOf } from './git-provider.harness.js';
import { githubOpener, isQuery, NOW, openGithub, variablesOf } from './github.harness.js';

describeGitProvider('GitHub', openGithub, {
  issues: true,
  repositoryTimes: true,
  archives: true,
  forks: true,
  forking: { owner: 'mona', ref: (number) => `refs/pull/${number}/head`, maintainers: true },
  mirrors: true,
  maxChangeRequests: 50,
  lists: {
    installations: ['81'],
    octo: '81',
    stars: true,
    defaultBranches: true,
    branchTimes: false,
    protection: true,
  },
  authorization: (token) => `Bearer ${token}`,
  follow: { shaLength: 40, mayWrite: false, logs: true, statuses: true, requestsForTwelve: 2 },
  clone: { url: () => 'https://github.com/octo/app.git', credential: { username: 'x-access-token' } },
});

describe('GithubProvider', () => {
  const open = githubOpener();

  describe('requests', () => {
    it('takes one round trip of two requests', async () => {
      const waves = new RequestWaves();
      waves.expect(2);
      const { provider, call } = await open(undefined, { gate: waves.gate });
      await provider.findWork(call);
      expect([waves.outstanding, waves.surplus]).toEqual([0, []]);
    });

    it('finds an Enterprise Server at its own addresses', async () => {
      const { provider, call, server } = await open();
      const own = { ...call, host: server.origin };
      expect((await provider.findWork(own)).changeRequests).toHaveLength(5);
      expect(await provider.checkToken(own)).toEqual({ status: 'valid' });
      expect(await provider.getUser(own)).toMatchObject({ login: 'mona' });
      expect([...new Set(server.requests.map(({ path }) => path))]).toEqual(['/api/graphql', '/api/v3/user']);
    });

    it('says nothing on the console', async () => {
      const { provider, call, server } = await open();
      const consoles = (['debug', 'info', 'log', 'warn', 'error'] as const).map((level) =>
        jest.spyOn(console, level).mockImplementation(() => {}),
      );
      server.injectFault({
        kind: 'status',
        status: 200,
        headers: { deprecation: 'Sat, 01 Aug 2026 00:00:00 GMT' },
        body: { id: 1, login: 'mona' },
      });
      await provider.getUser(call);
      server.clearFaults();
      server.injectFault({ kind: 'status', status: 404 });
      await failureOf(provider.getUser(call));
      const calls = consoles.flatMap((spy) => spy.mock.calls);
      jest.restoreAllMocks();
      expect(calls).toEqual([]);
    });
  });

  it('opens one although that of another branch at the same commit is listed', async () => {
    const world = sampleWorld();
    const branches = ['fix/it', 'fix/too'];
    Object.assign(world.repositories.find(({ name }) => name === 'octo/app') ?? {}, {
      branches,
      twins: [branches],
    });
    const { provider, call } = await open(world);
    const numbers: number[] = [];
    for (const sourceBranch of ['fix/too', 'fix/it', 'fix/too']) {
      const wanted = { repository: 'octo/app', sourceBranch, targetBranch: 'main', title: 'Fix', body: '' };
      const opened = await provider.changeRequests(call, (changes) =>
        changes.open({ ...wanted, draft: false }),
      );
      numbers.push(opened.number);
    }
    expect(numbers).toEqual([16, 17, 16]);
  });

  it('reads approvals of those who may write, and no others', async () => {
    const world = sampleWorld();
    const { provider, call } = await open(world);
    const change = world.changeRequests.find(({ number }) => number === 15);
    const isApproved = async (): Promise<unknown> => {
      const ref = { repository: 'octo/app', number: 15 };
      const [shown] = await provider.changeRequests(call, (changes) => changes.read([ref]));
      return shown?.approved;
    };
    for (const [review, login, approved] of [
      [approve, STRANGER, false],
      [approve, 'ada', true],
      [requestChanges, STRANGER, true],
      [requestChanges, 'ada', false],
    ] as const) {
      if (change) {
        review(change, login);
      }
      expect([login, await isApproved()]).toEqual([login, approved]);
    }
  });

  describe('mergeability that GitHub computes in the background', () => {
    it('is read once more after a second', async () => {
      const { provider, call, server, delays } = await open(withConflicts('later'));
      const { changeRequests, gaps } = await provider.findWork(call);
      expect(changeRequests.map(({ conflicts }) => conflicts)).toEqual(['yes', 'no', 'no', 'no', 'no']);
      expect([gaps, delays, server.requests.length]).toEqual([[], [1_000], 3]);
      expect(variablesOf(server.requests[2])).toEqual({ ids: [expect.stringMatching(/^PR_/)] });
    });

    it('stays unknown when it is not ready then either', async () => {
      const { provider, call, server } = await open(withConflicts('unknown'));
      const { changeRequests, gaps } = await provider.findWork(call);
      expect(changeRequests.map(({ conflicts }) => conflicts)).toEqual(['unknown', 'no', 'no', 'no', 'no']);
      expect([gaps, server.requests.length]).toEqual([[], 3]);
    });

    it('is not read again when the time is short', async () => {
      const { provider, call, server, delays } = await open(withConflicts('later'));
      const { changeRequests } = await provider.findWork({ ...call, deadlineAt: NOW + 2_400 });
      expect(changeRequests.map(({ conflicts }) => conflicts)).toEqual(['unknown', 'no', 'no', 'no', 'no']);
      expect([delays, server.requests.length]).toEqual([[], 2]);
    });

    it('is a gap when the second reading fails, and everything else stays', async () => {
      const { provider, call, server } = await open(withConflicts('later'));
      server.injectFault({ kind: 'status', status: 429 }, { match: isQuery('RecheckMergeable') });
      const { changeRequests, issues, gaps } = await provider.findWork(call);
      expect(changeRequests.map(({ conflicts }) => conflicts)).toEqual(['unknown', 'no', 'no', 'no', 'no']);
      expect([issues.length, gaps]).toEqual([2, ['rate_limited']]);
    });
  });

  it('tells of checks that a fine-grained token may not read whether all have passed', async () => {
    const world = { ...sampleWorld(), isFineGrained: true };
    const [change] = world.changeRequests;
    const { provider, call } = await open(world);
    const check = change && addCheck(change, 'unit', { state: 'failed', log: 'no' });
    const ref = { repository: 'octo/app', number: 12 };
    const checks = async () =>
      (await provider.changeRequests(call, (changes) => changes.read([ref])))[0]?.checks ?? [];
    const [failed, ...others] = await checks();
    expect([failed, others]).toEqual([
      {
        id: expect.stringMatching(/^rollup-[0-9a-f]{40}$/),
        name: 'all checks together',
        state: 'failed',
        url: expect.stringMatching(/\/12\/checks$/),
      },
      [],
    ]);
    expect(failed && (await provider.changeRequests(call, (changes) => changes.output(ref, failed)))).toBe(
      '',
    );
    Object.assign(check ?? {}, { state: 'passed' });
    expect(await checks()).toMatchObject([{ id: failed?.id, state: 'passed' }]);
  });

  // https://github.com/handarbeit/fabrik/issues/1822: a job is no check before it begins.
  it('tells of workflows whose jobs have not begun', async () => {
    const { provider, call, world } = await open();
    const [change] = world.changeRequests;
    const workflow = change && addWorkflow(change, 'CI');
    const read = () =>
      provider.changeRequests(call, (changes) => changes.read([{ repository: 'octo/app', number: 12 }]));
    expect((await read())[0]?.checks).toMatchObject([{ name: 'CI', state: 'pending' }]);
    Object.assign(workflow ?? {}, { conclusion: 'STARTUP_FAILURE' });
    expect((await read())[0]?.checks).toMatchObject([{ name: 'CI (could not start)', state: 'failed' }]);
  });

  describe('an old Enterprise Server', () => {
    it('numbers comments in its own way, and keeps logs itself', async () => {
      const world = sampleWorld();
      const [change] = world.changeRequests;
      const { provider, call, server } = await open(world, { missingFields: ['fullDatabaseId'] });
      const own = { ...call, host: server.origin };
      const comment = change && addComment(change, 'ada', 'Why?', { path: 'a.ts' });
      const check = change && addCheck(change, 'unit', { state: 'failed', log: 'expected 1, got 2' });
      const ref = { repository: 'octo/app', number: 12 };
      const [found] = await provider.changeRequests(own, (changes) => changes.read([ref]));
      expect(found?.comments).toMatchObject([{ id: `discussion_r${comment?.id}` }]);
      const [told] = found?.checks ?? [];
      expect(told?.id).toBe(String(check?.id));
      expect(told && (await provider.changeRequests(own, (changes) => changes.output(ref, told)))).toBe(
        'expected 1, got 2',
      );
      expect([...new Set(server.requests.map(({ path }) => path.split('/').slice(0, 3).join('/')))]).toEqual([
        '/api/graphql',
        '/api/v3',
      ]);
    });
  });

  describe('a server that lacks newer fields', () => {
    it('is asked again without them, and from then on at once', async () => {
      const missingFields = ['latestOpinionatedReviews', 'isMirror'];
      const { provider, call, server } = await open(undefined, { missingFields });
      const work = await provider.findWork(call);
      expect(work.gaps).toEqual([]);
      expect(work.changeRequests.map(({ unresolvedComments }) => unresolvedComments)).toEqual([
        'yes',
        'no',
        // Requested changes without a thread cannot be seen there.
        'no',
        'no',
        'no',
      ]);
      expect(work.probedRepositories.filter(({ writable }) => writable)).toHaveLength(3);
      expect(server.requests).toHaveLength(4);
      expect(await provider.findWork(call)).toEqual(work);
      expect(server.requests).toHaveLength(6);
    });

    it('is unsupported when it lacks more than those', async () => {
      const { provider, call } = await open(undefined, { missingFields: ['viewer'] });
      expect((await failureOf(provider.findWork(call))).code).toBe('unsupported');
    });
  });
});

/** The sample world; its newest change request has conflicts as given. */
function withConflicts(conflicts: 'unknown' | 'later'): FakeWorld {
  const world = sampleWorld();
  const [first, ...others] = world.changeRequests;
  return { ...world, changeRequests: first ? [{ ...first, conflicts }, ...others] : [] };
}
