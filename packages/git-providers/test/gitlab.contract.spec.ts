import { describe, expect, it } from '@jest/globals';
import { GitlabProvider } from '../src/gitlab/gitlab.provider.js';
import { addComment } from '../../../test/fakes/fake-followed.js';
import type { FakeRequest, FakeServer } from '../../../test/fakes/fake-server.js';
import { type FakeGitlabOptions, startFakeGitlab } from '../../../test/fakes/fake-gitlab.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import { RequestWaves } from '../../../test/support/request-waves.js';
import { describeGitProvider } from './git-provider.contract.js';
import { describeFollow } from './git-provider.follow.contract.js';
import {
  AT_ONCE,
  failureOf,
  type GitProviderCapabilities,
  type GitProviderHarness,
  harnessOf,
  harnessOpener,
} from './git-provider.harness.js';
import { describeWork } from './git-provider.work.contract.js';

const isGraphql = (request: FakeRequest) => request.path.endsWith('/graphql');
const isRest = (request: FakeRequest) => request.path.includes('/v4/');

function graphqlAnswers(server: FakeServer, body: unknown): void {
  server.injectFault({ kind: 'status', status: 200, body }, { match: isGraphql });
}

function documentsOf(server: FakeServer): string[] {
  return server.requests
    .filter(isGraphql)
    .map(({ body }) => (body.includes('resolvableDiscussionsCount') ? 'primary' : 'fallback'));
}

async function openGitlab(
  world: FakeWorld,
  options: FakeGitlabOptions & { now?: () => number } = {},
): Promise<GitProviderHarness> {
  const server = await startFakeGitlab(world, options);
  const timing = { ...AT_ONCE, now: options.now ?? Date.now };
  const urls = { apiUrl: `${server.origin}/api`, cloneUrl: 'https://gitlab.com', timing };
  const auth = { token: world.token, host: null };
  return harnessOf([server], auth, (http) => new GitlabProvider(http, urls));
}

const CAPABILITIES: GitProviderCapabilities = {
  issues: true,
  repositoryTimes: true,
  archives: true,
  forks: false,
  forking: { owner: 'mona', ref: (number) => `refs/merge-requests/${number}/head`, maintainers: true },
  mirrors: false,
  maxChangeRequests: 50,
  lists: {
    installations: [],
    octo: null,
    stars: true,
    defaultBranches: true,
    branchTimes: true,
    protection: true,
  },
  authorization: (token) => `Bearer ${token}`,
  follow: {
    shaLength: 40,
    mayWrite: true,
    logs: true,
    statuses: false,
    misfit: 'unauthorized',
    requestsForTwelve: 4,
  },
  clone: { url: () => 'https://gitlab.com/octo/app.git', credential: { username: 'oauth2' } },
};

describeGitProvider('GitLab', openGitlab, CAPABILITIES);

describe('GitLab before the discussion counters', () => {
  const openOld = (world: FakeWorld) => openGitlab(world, { old: true });
  const follow = { ...CAPABILITIES.follow, requestsForTwelve: 5, doubtsThreads: true };
  describeWork(openOld, CAPABILITIES);
  describeFollow(openOld, { ...CAPABILITIES, follow });
});

describe('GitLab specials', () => {
  const start = harnessOpener(openGitlab);

  it('is asked for a project by the path that it had before it was moved', async () => {
    const world = sampleWorld();
    const moved = world.repositories.find(({ name }) => name === 'octo/app');
    Object.assign(moved ?? {}, { formerName: 'octo/before' });
    const { provider, call } = await start(world);
    const change = world.changeRequests.find(({ number }) => number === 15);
    if (!change) {
      throw new Error('the world has no such change request');
    }
    addComment(change, 'ada', 'Why?', { path: 'a.ts' });
    const ref = { repository: 'octo/before', number: change.number };
    const wanted = { sourceBranch: 'fix/it', targetBranch: null, title: 'Fix it', body: '', draft: false };

    const [found, gone] = await provider.changeRequests(call, (changes) =>
      changes.read([ref, { repository: 'octo/none', number: 1 }]),
    );
    const [asked] = found?.comments ?? [];
    const answer =
      asked && (await provider.changeRequests(call, (changes) => changes.reply(ref, asked, 'So.')));
    const opened = await provider.changeRequests(call, (changes) => changes.open({ ...ref, ...wanted }));

    expect([found?.url, gone]).toEqual(['https://code.example/octo/app/15', null]);
    expect(answer?.id).toEqual(expect.any(String));
    expect(opened.url).toBe('https://code.example/octo/app/16');
  });

  it('takes titles as long as those of GitHub, of drafts too', async () => {
    const { provider, call, world } = await start();
    const request = { repository: 'octo/app', sourceBranch: 'fix/it', targetBranch: null, body: '' };
    const title = 'x'.repeat(256);
    await provider.changeRequests(call, (changes) => changes.open({ ...request, title, draft: true }));
    expect(world.changeRequests.at(-1)).toMatchObject({ title: 'x'.repeat(248), draft: true });
  });

  it('looks for conflicts when REST is asked, but not for GraphQL, so REST is asked where it did not', async () => {
    const world = sampleWorld();
    const [change] = world.changeRequests;
    Object.assign(change ?? {}, { conflicts: 'yes', isUnchecked: true });
    const { provider, call, server } = await start(world);
    const ref = { repository: change?.repository ?? '', number: change?.number ?? 0 };
    const conflicts = async () => {
      const [found] = await provider.changeRequests(call, (changes) => changes.read([ref]));
      return found?.conflicts;
    };
    server.injectFault(
      { kind: 'status', status: 403 },
      { match: ({ path }) => path.endsWith(`/${ref.number}`), times: 1 },
    );
    expect([await conflicts(), await conflicts(), await conflicts()]).toEqual(['unknown', 'unknown', 'yes']);
    const asked = server.requests.filter(({ path }) => path.endsWith(`/merge_requests/${ref.number}`));
    expect(asked).toHaveLength(2);
  });

  it('looks for conflicts of listed merge requests when it is asked to, which is done where it did not', async () => {
    const world = sampleWorld();
    const [change] = world.changeRequests;
    Object.assign(change ?? {}, { conflicts: 'yes', isUnchecked: true });
    const { provider, call, server } = await start(world);
    const isRecheck = ({ path }: { path: string }): boolean => path.endsWith('/v4/merge_requests');
    const look = async () => {
      const { changeRequests, gaps } = await provider.findWork(call);
      return [changeRequests.find(({ number }) => number === change?.number)?.conflicts, gaps];
    };
    server.injectFault({ kind: 'status', status: 403 }, { match: isRecheck, times: 1 });
    expect([await look(), await look(), await look()]).toEqual([
      ['unknown', []],
      ['unknown', []],
      ['yes', []],
    ]);
    expect(server.requests.filter(isRecheck)).toHaveLength(2);
  });

  it('needs one round trip: both requests are sent before either is answered', async () => {
    const waves = new RequestWaves();
    waves.expect(2);
    const { provider, call, server } = await start(undefined, { gate: waves.gate });
    await provider.findWork(call);
    expect({ outstanding: waves.outstanding, surplus: waves.surplus }).toEqual({
      outstanding: 0,
      surplus: [],
    });
    expect(server.requests.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'GET /api/v4/issues',
      'POST /api/graphql',
    ]);
  });

  it('keeps the relative root of a host', async () => {
    const { provider, call, server } = await start();
    const nested = { ...call, host: `${server.origin}/tools/gitlab` };
    expect(await provider.checkToken(nested)).toEqual({ status: 'valid' });
    await provider.findWork(nested);
    expect(new Set(server.requests.map(({ path }) => path))).toEqual(
      new Set(['/tools/gitlab/api/graphql', '/tools/gitlab/api/v4/issues']),
    );
  });

  describe('one half', () => {
    it.each([
      [429, { 'retry-after': '9' }, 'rate_limited'],
      [404, {}, 'unsupported'],
    ] as const)('GraphQL failing with %i leaves the issues', async (status, headers, code) => {
      const { provider, call, server } = await start();
      server.injectFault({ kind: 'status', status, headers }, { match: isGraphql });
      const work = await provider.findWork(call);
      expect(work).toMatchObject({ changeRequests: [], recentRepositories: [], gaps: [code] });
      // Nothing tells the repositories' times now: the issues' own stand for them.
      expect(work.issues.map(({ repository }) => repository)).toEqual([
        { name: 'octo/app', activeAt: Date.parse('2026-11-17T10:00:00Z'), usable: true },
        { name: 'mona/notes', activeAt: Date.parse('2026-11-01T12:00:00Z'), usable: true },
      ]);
    });

    it('REST failing leaves everything else', async () => {
      const { provider, call, server } = await start();
      server.injectFault({ kind: 'status', status: 403 }, { match: isRest });
      const work = await provider.findWork(call);
      expect(work.changeRequests).toHaveLength(5);
      expect(work).toMatchObject({ issues: [], gaps: ['insufficient_scope'] });
    });

    it('REST answering something else than a list is a gap', async () => {
      const { provider, call, server } = await start();
      server.injectFault({ kind: 'status', status: 200, body: { message: 'hello' } }, { match: isRest });
      expect(await provider.findWork(call)).toMatchObject({
        issues: [],
        gaps: ['unavailable'],
      });
    });

    it('a rejection in either half decides when both fail', async () => {
      const { provider, call, server } = await start();
      server.injectFault({ kind: 'status', status: 502 }, { match: isGraphql });
      server.injectFault({ kind: 'status', status: 401 }, { match: isRest });
      expect((await failureOf(provider.findWork(call))).code).toBe('unauthorized');
    });
  });

  describe('GraphQL that answers 200', () => {
    it('without a user is a rejection', async () => {
      const { provider, call, server } = await start();
      graphqlAnswers(server, { data: { currentUser: null, recent: { nodes: [] }, probe: { nodes: [] } } });
      server.injectFault({ kind: 'status', status: 401 }, { match: isRest });
      expect((await failureOf(provider.findWork(call))).code).toBe('unauthorized');
      expect(await provider.checkToken(call)).toEqual({ status: 'invalid' });
    });

    it.each([
      ['Timeout on validation of query', 'timeout'],
      ['Internal server error', 'unavailable'],
      ['Query has complexity of 300, which exceeds max complexity of 250', 'unsupported'],
    ] as const)('with only the error "%s" gives no verdict on a token', async (message, code) => {
      const { provider, call, server } = await start();
      graphqlAnswers(server, { errors: [{ message }] });
      expect(await provider.checkToken(call)).toEqual({
        status: 'unverified',
        code,
        said: message,
      });
      expect(await provider.findWork(call)).toMatchObject({ gaps: [code] });
    });

    it('with data and errors keeps the data', async () => {
      const { provider, call, server } = await start();
      graphqlAnswers(server, {
        data: {
          currentUser: { username: 'mona', authoredMergeRequests: { nodes: [] } },
          recent: { nodes: [] },
          probe: null,
        },
        errors: [{ message: 'Timeout on Project.repository', path: ['probe'] }],
      });
      const work = await provider.findWork(call);
      expect(work).toMatchObject({ gaps: ['timeout'], probedRepositories: [] });
      expect(work.issues).toHaveLength(2);
    });

    it('with a missing part and no reason is a gap all the same', async () => {
      const { provider, call, server } = await start();
      graphqlAnswers(server, {
        data: {
          currentUser: { username: 'mona', authoredMergeRequests: null },
          recent: { nodes: [] },
          probe: null,
        },
      });
      expect((await provider.findWork(call)).gaps).toEqual(['unavailable']);
    });
  });

  describe('a server before the discussion counters', () => {
    it('is remembered for an hour', async () => {
      let now = Date.now();
      const { provider, call, server } = await start(undefined, { old: true, now: () => now });
      await provider.findWork(call);
      await provider.findWork(call);
      expect(documentsOf(server)).toEqual(['primary', 'fallback', 'fallback']);
      now += 3_600_001;
      await provider.findWork({ ...call, deadlineAt: now + 60_000 });
      expect(documentsOf(server).slice(3)).toEqual(['primary', 'fallback']);
    });

    it('says nothing about other servers', async () => {
      const { provider, call, server } = await start(undefined, { old: true });
      await provider.findWork(call);
      server.requests.length = 0;
      await provider.findWork({ ...call, host: `${server.origin}/other` });
      expect(documentsOf(server)).toEqual(['primary', 'fallback']);
    });
  });
});
