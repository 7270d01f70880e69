import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { GuardedHttpClient, type GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { BitbucketProvider } from '../src/bitbucket/bitbucket.provider.js';
import type { CallBounds, ProviderWork } from '../src/git-provider.js';
import type { RetryTiming } from '../src/provider-http.js';
import { type FakeBitbucketOptions, startFakeBitbucket } from '../../../test/fakes/fake-bitbucket.js';
import { addCheck, addComment, followedOf } from '../../../test/fakes/fake-followed.js';
import { type FakeRequest, FakeServer } from '../../../test/fakes/fake-server.js';
import type { FakeChangeRequest, FakeWorld } from '../../../test/fakes/fake-world.js';
import { RequestWaves } from '../../../test/support/request-waves.js';
import { describeGitProvider } from './git-provider.contract.js';
import { AT_ONCE, clientOptions, harnessOf } from './git-provider.harness.js';

const HOUR_MS = 60 * 60 * 1000;
/** Less than a test may take. */
const MAX_WAIT_MS = 50_000;

/** Does what `until` does, without timers, as those are fake. */
async function turnUntil(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS;
  while (!condition()) {
    if (performance.now() > deadline) {
      throw new Error('the condition never held');
    }
    await turn();
  }
}

/** Sees how many calls are open at once, which no server can see exactly. */
class CountingHttpClient extends GuardedHttpClient {
  peak = 0;
  open = 0;

  override async fetch(url: string | URL, init?: GuardedRequestInit): Promise<Response> {
    this.open += 1;
    this.peak = Math.max(this.peak, this.open);
    try {
      return await super.fetch(url, init);
    } finally {
      this.open -= 1;
    }
  }
}

describeGitProvider(
  'Bitbucket Cloud',
  async (world) => {
    const server = await startFakeBitbucket(world);
    const auth = { token: world.token, host: null };
    return harnessOf([server], auth, (http) => new BitbucketProvider(http, urlsOf(server, AT_ONCE)));
  },
  {
    issues: false,
    repositoryTimes: true,
    archives: false,
    forks: true,
    forking: { owner: 'mona', ref: () => null, maintainers: false },
    mirrors: false,
    maxChangeRequests: 20,
    lists: {
      installations: ['mona', 'octo'],
      octo: 'octo',
      stars: false,
      defaultBranches: true,
      branchTimes: true,
      protection: false,
    },
    authorization: (token) => `Bearer ${token}`,
    user: { email: null },
    follow: { shaLength: 12, mayWrite: false, logs: true, statuses: true, requestsForTwelve: 62 },
    clone: {
      url: () => 'https://bitbucket.org/octo/app.git',
      credential: { username: 'x-token-auth' },
    },
    pages: {
      match: ({ path }) => path.endsWith('/user/workspaces') || path.endsWith('/comments'),
      body: (next) => ({ values: [{ workspace: { slug: 'octo' } }], next }),
    },
  },
);

describe('BitbucketProvider', () => {
  let servers: FakeServer[];
  let http: CountingHttpClient;
  let provider: BitbucketProvider;
  let delays: number[];
  let elapsedMs: number;

  beforeEach(() => {
    servers = [];
    delays = [];
    elapsedMs = 0;
  });

  afterEach(async () => {
    await Promise.all(servers.map((server) => server.close()));
    await http.close();
  });

  async function start(
    world: FakeWorld,
    options: FakeBitbucketOptions = {},
    alsoAllowed?: FakeServer,
  ): Promise<FakeServer> {
    const fake = await startFakeBitbucket(world, options);
    servers.push(fake);
    http = new CountingHttpClient(clientOptions(fake, ...(alsoAllowed ? [alsoAllowed] : [])));
    const now = (): number => Date.now() + elapsedMs;
    const delay = async (ms: number): Promise<void> => void delays.push(ms);
    provider = new BitbucketProvider(http, urlsOf(fake, { now, random: () => 0.5, delay }));
    return fake;
  }

  async function findWork(token = TOKEN): Promise<ProviderWork> {
    return await provider.findWork({ token, host: null, ...callOf(elapsedMs) });
  }

  it('follows open tasks, which are no comments, and answers them', async () => {
    const world = twoWorkspaces();
    const [pull] = world.changeRequests;
    const ref = { repository: pull?.repository ?? '', number: pull?.number ?? 0 };
    await start(world);
    const call = { token: TOKEN, host: null, ...callOf(0) };
    const followed = pull && followedOf(pull);
    const root = pull && addComment(pull, 'ada', 'Twice?', { path: 'a.ts', line: 4 });
    const task = { author: 'ada', createdAt: '2026-11-21T12:00:00Z', resolved: false };
    followed?.tasks.push(
      { ...task, id: 7, root: null, body: 'Write the docs' },
      { ...task, id: 8, root: root?.id ?? null, body: 'Do it once' },
      { ...task, id: 9, root: null, body: 'Done', resolved: true },
    );
    const [found] = await provider.changeRequests(call, (changes) => changes.read([ref]));
    const asked = found?.comments.filter(({ body }) => body.startsWith('Task: ')) ?? [];
    expect(asked).toMatchObject([
      {
        id: 'task-7',
        author: 'ada',
        body: 'Task: Write the docs',
        threadId: null,
        path: null,
        resolved: false,
      },
      { id: 'task-8', author: 'ada', body: 'Task: Do it once', threadId: String(root?.id), resolved: false },
    ]);
    for (const each of asked) {
      await provider.changeRequests(call, (changes) => changes.reply(ref, each, `As asked: ${each.body}`));
    }
    const answers = followed?.comments.slice(-2) ?? [];
    expect(answers.map((answer) => [answer.root === root?.id, answer.body])).toEqual([
      [false, 'As asked: Task: Write the docs'],
      [true, 'As asked: Task: Do it once'],
    ]);
  });

  it("reads no log of another repository, whatever a stranger's status names as its page", async () => {
    const world = twoWorkspaces();
    const [pull, , other] = world.changeRequests;
    const check = other && addCheck(other, 'unit', { state: 'failed', log: 'secret' });
    await start(world);
    const call = { token: TOKEN, host: null, ...callOf(0) };
    const ref = { repository: pull?.repository ?? '', number: pull?.number ?? 0 };
    const url = `https://bitbucket.org/${other?.repository}/pipelines/results/${check?.id}`;
    const status = { id: 'x', name: 'x', state: 'failed' as const, url };
    const outputOf = (asked: typeof ref) =>
      provider.changeRequests(call, (changes) => changes.output(asked, status));
    expect(other?.repository).not.toBe(pull?.repository);
    expect(await outputOf(ref)).toBe('');
    expect(await outputOf({ repository: other?.repository ?? '', number: other?.number ?? 0 })).toBe(
      'secret',
    );
  });

  describe('round trips', () => {
    it('takes three cold and two warm, and one more for the redirect of conflicts', async () => {
      const waves = new RequestWaves();
      let head = 'first';
      await start(twoWorkspaces(), { gate: waves.gate, headOf: () => head });

      // Who and where; lists of two workspaces; three details of three requests beside two probes; redirects.
      waves.expect(2, 4, 9 + 6, 3);
      expect((await findWork()).changeRequests).toHaveLength(3);
      expect([waves.outstanding, waves.surplus]).toEqual([0, []]);

      // Comments have not changed, the tips have.
      head = 'second';
      waves.expect(4, 6 + 6, 3);
      expect((await findWork()).changeRequests).toHaveLength(3);
      expect([waves.outstanding, waves.surplus]).toEqual([0, []]);
    });

    it('asks who and where again after an hour', async () => {
      const fake = await start(twoWorkspaces());
      await findWork();
      await findWork();
      expect(countOf(fake, /\/user(\/workspaces)?$/)).toBe(2);
      elapsedMs = HOUR_MS + 1;
      await findWork();
      expect(countOf(fake, /\/user(\/workspaces)?$/)).toBe(4);
    });

    it('never has more than 24 requests in flight, and keeps the 20 newest pull requests', async () => {
      const changeRequests = Array.from({ length: 23 }, (_, index) =>
        change({ number: index + 1, minute: index }),
      );
      await start({ ...twoWorkspaces(), changeRequests });
      const work = await findWork();
      expect(http.peak).toBe(24);
      expect(work.truncated).toBe(true);
      expect(work.changeRequests.map(({ number }) => number)).toEqual(
        Array.from({ length: 20 }, (_, index) => 23 - index),
      );
    });

    it('never uses a removed address', async () => {
      const fake = await start(twoWorkspaces());
      await findWork();
      const removed = /^\/2\.0\/(workspaces|repositories|user\/permissions.*|pullrequests.*)$/;
      expect(countOf(fake, removed)).toBe(0);
      fake.injectFault({ kind: 'status', status: 410 }, { match: ({ path }) => path.endsWith('/user') });
      await expect(provider.getUser({ token: TOKEN, host: null, ...callOf() })).rejects.toMatchObject({
        code: 'unsupported',
      });
    });
  });

  describe('what is remembered', () => {
    it('asks for conflicts and comments again only when something changed', async () => {
      let head = 'first';
      const world = twoWorkspaces();
      const fake = await start(world, { headOf: () => head });
      const first = await findWork();
      const second = await findWork();
      expect(second).toEqual(first);
      expect([countOf(fake, /\/conflicts$/), countOf(fake, /\/comments$/)]).toEqual([3, 3]);
      expect(countOf(fake, /\/statuses$/)).toBe(6);

      head = 'second';
      world.changeRequests[0] = change({ number: 1, unresolved: 'thread', minute: 30 });
      const third = await findWork();
      expect(third.changeRequests.find(({ number }) => number === 1)).toMatchObject({
        unresolvedComments: 'yes',
      });
      expect([countOf(fake, /\/conflicts$/), countOf(fake, /\/comments$/)]).toEqual([6, 4]);
    });
  });

  describe('when parts fail', () => {
    it('calls conflicts unknown that a token may not see, and does not insist', async () => {
      const fake = await start({
        ...twoWorkspaces(),
        changeRequests: [change({ number: 1, conflicts: 'unknown' })],
      });
      const work = await findWork();
      await findWork();
      expect(work.changeRequests).toMatchObject([{ number: 1, conflicts: 'unknown', failingChecks: 'no' }]);
      expect(work.gaps).toEqual([]);
      expect(countOf(fake, /\/conflicts$/)).toBe(1);
    });

    it.each([403, 404])(
      'keeps the other workspaces when one answers %i, and looks for them anew',
      async (status) => {
        const fake = await start(twoWorkspaces());
        fake.injectFault({ kind: 'status', status }, { match: isTeam });
        const work = await findWork();
        expect(work.changeRequests.map(({ repository }) => repository.name)).toEqual(['solo/tool']);
        expect(work.gaps).toEqual(['insufficient_scope']);
        fake.clearFaults();
        expect(await findWork()).toMatchObject({ gaps: [], truncated: false });
        expect(countOf(fake, /\/user\/workspaces$/)).toBe(2);
      },
    );

    it('fails when no workspace answers', async () => {
      const fake = await start(twoWorkspaces());
      fake.injectFault(
        { kind: 'status', status: 403 },
        { match: ({ path }) => !path.startsWith('/2.0/user') },
      );
      await expect(findWork()).rejects.toMatchObject({ code: 'insufficient_scope' });
    });

    it('loses one signal to one failing request', async () => {
      const fake = await start(twoWorkspaces());
      fake.injectFault(
        { kind: 'status', status: 500 },
        { match: ({ path }) => path.endsWith('/1/statuses') },
      );
      const work = await findWork();
      expect(work.changeRequests.find(({ number }) => number === 1)?.failingChecks).toBe('unknown');
      expect(work.changeRequests.find(({ number }) => number === 2)?.failingChecks).toBe('yes');
      expect(work.gaps).toEqual(['unavailable']);
    });
  });

  it('keeps what it has when details do not come before the deadline', async () => {
    const fake = await start(twoWorkspaces());
    fake.injectFault({ kind: 'hang' }, { match: ({ path }) => path.endsWith('/1/statuses') });
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
    const working = findWork();
    try {
      await turnUntil(() => countOf(fake, /\/1\/statuses$/) > 0 && http.open <= 1);
      await jest.advanceTimersByTimeAsync(60_000);
    } finally {
      jest.useRealTimers();
    }
    const work = await working;
    expect(work.gaps).toEqual(['timeout']);
    expect(work.changeRequests.map(({ number, failingChecks }) => [number, failingChecks])).toEqual([
      [3, 'no'],
      [2, 'yes'],
      [1, 'unknown'],
    ]);
  });

  describe('rate limits', () => {
    it('gives up comments and probes near the limit', async () => {
      const fake = await start(twoWorkspaces(), { headers: { 'x-ratelimit-nearlimit': 'true' } });
      const work = await findWork();
      expect([countOf(fake, /\/comments$/), countOf(fake, /\/src\//)]).toEqual([0, 0]);
      expect([countOf(fake, /\/conflicts$/), countOf(fake, /\/statuses$/)]).toEqual([3, 3]);
      expect(work.changeRequests.map(({ unresolvedComments }) => unresolvedComments)).toEqual([
        'unknown',
        'unknown',
        'unknown',
      ]);
      expect(work).toMatchObject({ probedRepositories: [], gaps: ['rate_limited'] });
    });

    it('asks nothing more after a refusal and keeps what it has', async () => {
      const changeRequests = Array.from({ length: 20 }, (_, index) => change({ number: index + 1 }));
      const fake = await start({ ...twoWorkspaces(), changeRequests });
      fake.injectFault(
        { kind: 'status', status: 429, headers: { 'retry-after': '41' } },
        { match: isDetail },
      );
      const work = await findWork();
      expect(work.changeRequests).toHaveLength(20);
      expect(work.gaps).toEqual(['rate_limited']);
      expect(fake.requests.filter(isDetail).length).toBeLessThanOrEqual(24);
      expect(delays).toEqual([]);
    });
  });

  describe('credentials', () => {
    it('go as Basic where they have a name', async () => {
      const token = 'jane@example.com:api-token';
      const fake = await start({ ...twoWorkspaces(), token });
      await findWork(token);
      expect(new Set(fake.requests.map(({ headers }) => headers['authorization']))).toEqual(
        new Set([`Basic ${Buffer.from(token).toString('base64')}`]),
      );
    });

    it('never follow a page to another origin, not even one that may be called', async () => {
      const other = await FakeServer.start(() => ({ body: { values: [] } }));
      servers.push(other);
      const world = { ...twoWorkspaces(), changeRequests: [change({ number: 1 })] };
      const fake = await start(world, {}, other);
      fake.injectFault(
        { kind: 'status', status: 200, body: { values: [], next: `${other.origin}/2.0/more` } },
        { match: ({ path }) => path.endsWith('/comments') },
      );
      const work = await findWork();
      expect(other.requests).toEqual([]);
      expect(work.changeRequests).toMatchObject([{ unresolvedComments: 'unknown' }]);
    });
  });

  it('follows pages of comments to the open thread', async () => {
    const fake = await start({
      ...twoWorkspaces(),
      changeRequests: [change({ number: 1, unresolved: 'thread' })],
    });
    const path = '/2.0/repositories/team/service/pullrequests/1/comments';
    fake.injectFault(
      { kind: 'status', status: 200, body: { values: [], next: `${fake.origin}${path}?page=1&pagelen=100` } },
      { times: 1, match: (request) => request.path === path },
    );
    expect((await findWork()).changeRequests).toMatchObject([{ unresolvedComments: 'yes' }]);
    expect(countOf(fake, /\/comments$/)).toBe(2);
  });

  it('suggests nothing for a repository whose root is too long to read', async () => {
    const fake = await start(twoWorkspaces());
    const path = '/2.0/repositories/team/service/src/HEAD/';
    const body = { values: [{ path: 'a' }], next: `${fake.origin}${path}` };
    fake.injectFault({ kind: 'status', status: 200, body }, { match: (request) => request.path === path });
    const { probedRepositories } = await findWork();
    expect(probedRepositories.map(({ name }) => name)).toEqual(['solo/tool']);
    expect(fake.requests.filter((request) => request.path === path)).toHaveLength(3);
  });
});

const TOKEN = 'oauth-access-token';

function isTeam({ path }: FakeRequest): boolean {
  return /^\/2\.0\/(workspaces\/team|repositories\/team$)/.test(path);
}

function isDetail({ path }: FakeRequest): boolean {
  return /\/(pullrequests\/\d+|src)\//.test(path);
}

function urlsOf({ origin }: FakeServer, timing: RetryTiming) {
  return { apiUrl: `${origin}/2.0`, cloneUrl: 'https://bitbucket.org', timing };
}

function callOf(elapsedMs = 0): CallBounds {
  return { signal: new AbortController().signal, deadlineAt: Date.now() + elapsedMs + 60_000 };
}

function countOf(fake: FakeServer, path: RegExp): number {
  return fake.requests.filter((request) => path.test(request.path)).length;
}

function change(given: Partial<FakeChangeRequest> & { number: number; minute?: number }): FakeChangeRequest {
  const { minute = given.number, ...rest } = given;
  return {
    repository: 'team/service',
    title: `Change ${given.number}`,
    updatedAt: new Date(Date.UTC(2026, 10, 20, 8, minute)).toISOString(),
    ...rest,
  };
}

/** Three open pull requests in two workspaces, two repositories worth probing. */
function twoWorkspaces(): FakeWorld {
  return {
    token: TOKEN,
    user: { id: 'jane-1', login: 'jane', name: 'Jane', email: null },
    repositories: [
      { name: 'team/service', activeAt: '2026-11-20T09:00:00Z' },
      { name: 'solo/tool', activeAt: '2026-11-19T09:00:00Z' },
    ],
    changeRequests: [
      change({ number: 1, checks: 'passing' }),
      change({ number: 2, checks: 'failing' }),
      change({ number: 3, repository: 'solo/tool', conflicts: 'yes', checks: 'pending' }),
    ],
    issues: [],
  };
}
