import { describe, expect, it } from '@jest/globals';
import { BitbucketDataCenterProvider } from '../src/bitbucket-data-center/bitbucket-data-center.provider.js';
import {
  type FakeBitbucketDataCenterOptions,
  startFakeBitbucketDataCenter,
} from '../../../test/fakes/fake-bitbucket-data-center.js';
import { GitProviderError } from '../src/git-provider.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import { RequestWaves } from '../../../test/support/request-waves.js';
import { describeGitProvider } from './git-provider.contract.js';
import {
  AT_ONCE,
  failureOf,
  type GitProviderHarness,
  harnessOf,
  harnessOpener,
} from './git-provider.harness.js';

const DASHBOARD = '/rest/api/latest/dashboard/pull-requests';
const RECENT = '/rest/api/latest/profile/recent/repos';
const STATS = '/rest/build-status/latest/commits/stats';

describeGitProvider('Bitbucket Data Center', openHarness, {
  issues: false,
  repositoryTimes: false,
  archives: true,
  forks: true,
  forking: { owner: '~mona', ref: (number) => `refs/pull-requests/${number}/from`, maintainers: false },
  mirrors: false,
  maxChangeRequests: 50,
  lists: {
    installations: ['mona', 'octo'],
    octo: 'octo',
    stars: false,
    defaultBranches: false,
    branchTimes: false,
    protection: false,
  },
  authorization: (token) => `Bearer ${token}`,
  follow: { shaLength: 40, mayWrite: false, logs: false, statuses: true, requestsForTwelve: 49 },
  clone: {
    url: (origin) => `${origin}/scm/octo/app.git`,
    credential: { username: 'mona' },
    bearer: (origin) => `${origin}/scm`,
  },
});

describe('BitbucketDataCenterProvider', () => {
  const open = harnessOpener(openHarness);

  it('takes two round trips, with one question for all builds', async () => {
    const waves = new RequestWaves();
    const { provider, call } = await open(undefined, { gate: waves.gate });
    // Two lists; the builds of five pull requests beside three looks into each of three repositories.
    waves.expect(2, 1 + 9);
    expect((await provider.findWork(call)).changeRequests).toHaveLength(5);
    expect([waves.outstanding, waves.surplus]).toEqual([0, []]);
  });

  it('works below a context path', async () => {
    const { provider, call, server } = await open(undefined, { contextPath: '/context' });
    const there = { ...call, host: `${server.origin}/context` };
    expect(await provider.findWork(there)).toMatchObject({ gaps: [], truncated: false });
    expect(await provider.checkToken(there)).toEqual({ status: 'valid' });
  });

  it.each([
    [DASHBOARD, 403, 'insufficient_scope', { changeRequests: 0, recentRepositories: 3 }],
    [DASHBOARD, 404, 'unsupported', { changeRequests: 0, recentRepositories: 3 }],
    [RECENT, 404, 'unsupported', { changeRequests: 5, recentRepositories: 0 }],
    [STATS, 404, 'unsupported', { changeRequests: 5, recentRepositories: 3 }],
    [STATS, 500, 'unavailable', { changeRequests: 5, recentRepositories: 3 }],
  ])('keeps the rest when %s answers %i', async (path, status, code, counts) => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'status', status }, { match: (request) => request.path === path });
    const work = await provider.findWork(call);
    expect(work.gaps).toEqual([code]);
    expect({
      changeRequests: work.changeRequests.length,
      recentRepositories: work.recentRepositories.length,
    }).toEqual(counts);
  });

  it('knows of no failing checks when builds cannot be asked for', async () => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'status', status: 403 }, { match: ({ path }) => path === STATS });
    const { changeRequests } = await provider.findWork(call);
    expect(new Set(changeRequests.map(({ failingChecks }) => failingChecks))).toEqual(new Set(['unknown']));
  });

  it('leaves out a repository that cannot be looked into', async () => {
    const { provider, call, server } = await open();
    server.injectFault(
      { kind: 'status', status: 403 },
      { match: ({ path }) => path.endsWith('/octo/repos/app/browse') },
    );
    const work = await provider.findWork(call);
    expect(work.probedRepositories.map(({ name }) => name)).toEqual(['octo/library', 'mona/notes']);
    expect(work.gaps).toEqual(['insufficient_scope']);
  });

  it('suggests nothing for a repository whose root is too long to read', async () => {
    const { provider, call, server } = await open();
    server.injectFault(
      {
        kind: 'status',
        status: 200,
        body: { children: { isLastPage: false, values: [{ path: { toString: 'a' } }] } },
      },
      { match: ({ path }) => path.endsWith('/octo/repos/app/browse') },
    );
    const { probedRepositories } = await provider.findWork(call);
    expect(probedRepositories.map(({ name }) => name)).toEqual(['octo/library', 'mona/notes']);
  });

  it('looks into five repositories at most', async () => {
    const repositories = Array.from({ length: 8 }, (_, index) => ({
      name: `PROJ/service-${index}`,
      activeAt: `2026-11-0${index + 1}T00:00:00Z`,
    }));
    const world: FakeWorld = { ...sampleWorld(), repositories, changeRequests: [] };
    const { provider, call, server } = await open(world);
    const work = await provider.findWork(call);
    expect(work.probedRepositories).toHaveLength(5);
    expect(server.requests.filter(({ path }) => path === STATS)).toEqual([]);
  });

  it('gives no verdict on a token whose user the server does not name', async () => {
    const { provider, call, server } = await open();
    server.injectFault({ kind: 'status', status: 200, body: { version: '9.4.0' } });
    expect(await provider.checkToken(call)).toEqual({ status: 'unverified', code: 'unsupported' });
  });

  it('finds the default branch of an old server', async () => {
    const world = sampleWorld();
    const { provider, call } = await open(world, { old: true });
    const request = {
      repository: 'octo/library',
      sourceBranch: 'fix/it',
      targetBranch: null,
      title: 'Fix it',
      body: '',
      draft: false,
    };
    await provider.changeRequests(call, (changes) => changes.open(request));
    expect(world.changeRequests.at(-1)).toMatchObject({ targetBranch: 'trunk' });
  });

  it('has no default server', async () => {
    const { provider, call, server } = await open();
    const nowhere = { ...call, host: null };
    expect((await failureOf(provider.findWork(nowhere))).code).toBe('unsupported');
    expect(() => provider.cloneUrl(null, 'octo/app')).toThrow(GitProviderError);
    expect(await provider.checkToken(nowhere)).toEqual({ status: 'unverified', code: 'unsupported' });
    expect(server.requests).toEqual([]);
  });
});

async function openHarness(
  world: FakeWorld,
  options: FakeBitbucketDataCenterOptions = {},
): Promise<GitProviderHarness> {
  const server = await startFakeBitbucketDataCenter(world, options);
  const urls = { apiUrl: '', cloneUrl: '', timing: AT_ONCE };
  const auth = { token: world.token, host: server.origin };
  return harnessOf([server], auth, (http) => new BitbucketDataCenterProvider(http, urls));
}
