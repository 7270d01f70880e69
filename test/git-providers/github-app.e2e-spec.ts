import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { InstallationTokens } from '../../src/git-providers/tokens/installation-tokens.js';
import {
  type CloneAccess,
  RepositoryAccessService,
} from '../../src/git-providers/repository-access.service.js';
import type { FakeGithubApp, FakeIssued } from '../fakes/fake-github.app.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { APP_PERMISSIONS, githubApp } from '../support/github-app.js';
import { TokensClient } from '../support/tokens-client.js';

const MINUTE_MS = 60_000;
const REPOSITORY = 'octo/app';

describe('the GitHub App of the operator', () => {
  const open: { close(): Promise<void> }[] = [];
  let hosts: GitHosts;
  let app: TestApp;
  let user: TestUser;
  let github: FakeGithubApp;
  let environment: Record<string, string>;

  const isIssue = ({ method, path }: FakeRequest): boolean =>
    method === 'POST' && path.endsWith('/access_tokens');
  const issues = (): number => hosts.github.requests.filter(isIssue).length;
  const standIn = async (entry: object = {}, at = app, who = user): Promise<void> => {
    const { status } = await new TokensClient(at, who).postTokens({
      github: { installation: true, ...entry },
    });
    expect(status).toBe(200);
  };
  const inGroups = async (groups: string[], seenAt: Date): Promise<void> => {
    await app.dataSource.query('DELETE FROM user_identities WHERE user_id = $1', [user.id]);
    await app.dataSource.query(
      `INSERT INTO user_identities (id, user_id, issuer, subject, email_verified, has_role, last_seen_at, git)
       VALUES (gen_random_uuid(), $1::uuid, $2, $1::text, true, true, $3, $4)`,
      [user.id, hosts.github.origin, seenAt, JSON.stringify({ login: null, groups })],
    );
  };
  const clone = async (repository = REPOSITORY, at = app, who = user): Promise<CloneAccess> =>
    await at.app.get(RepositoryAccessService).cloneAccess(who.id, 'github', repository);
  const issuedTo = ({ credential }: CloneAccess): FakeIssued | undefined =>
    github.issued.get(credential?.password ?? '');
  const start = async (other: Record<string, string>): Promise<TestApp> => {
    const another = await createTestApp({ ...environment, ...other }, app.databaseUrl);
    open.push(another);
    return another;
  };

  beforeAll(async () => {
    hosts = await startGitHosts();
    hosts.worlds.github.repositories = hosts.worlds.github.repositories.map((each) =>
      each.name === REPOSITORY ? { ...each, branches: ['feature'] } : each,
    );
    const made = githubApp();
    github = made.app;
    environment = { ...hosts.environment, ...made.environment };
    app = await createTestApp(environment);
  });
  beforeEach(async () => {
    hosts.clearFaults();
    const { app: fresh } = githubApp();
    Object.assign(github, fresh, { now: () => app.clock.now(), behindMs: 0, lifetimeMs: 3_600_000 });
    hosts.worlds.github.app = github;
    // What one test left is too old for the next.
    app.clock.advance(120 * MINUTE_MS);
    user = await app.createUser();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(async () => {
    await app.close();
    await hosts.close();
  });

  it('gives a token for one repository and what a sandbox needs', async () => {
    await standIn();
    const access = await clone();
    expect(access).toMatchObject({
      url: `${hosts.github.origin}/octo/app.git`,
      credential: { username: 'x-access-token', password: expect.stringMatching(/^ghs_/) },
    });
    expect(issuedTo(access)).toMatchObject({
      repositories: ['app'],
      permissions: { contents: 'write', pull_requests: 'write', metadata: 'read' },
    });
  });

  it('adds what the operator names, as far as the installation has it', async () => {
    await standIn();
    const other = await start({
      GITHUB_APP_SANDBOX_PERMISSIONS: 'workflows:write,packages:write,issues:read',
    });
    const { permissions } = issuedTo(await clone(REPOSITORY, other)) ?? {};
    expect(permissions).toEqual({
      contents: 'write',
      pull_requests: 'write',
      metadata: 'read',
      packages: 'read',
      issues: 'read',
    });
  });

  it('uses a token until ten minutes before the end that GitHub says, once for all who ask at once', async () => {
    await standIn();
    const first = await Promise.all([...Array(8).keys()].map(() => clone()));
    expect(new Set(first.map(({ credential }) => credential?.password)).size).toBe(1);
    expect(issues()).toBe(1);
    app.clock.advance(49 * MINUTE_MS);
    expect(await clone()).toEqual(first[0]);
    app.clock.advance(2 * MINUTE_MS);
    expect(await clone()).not.toEqual(first[0]);
    expect(issues()).toBe(2);
  });

  it('goes on with the old token while GitHub is in trouble, and does not ask with each request', async () => {
    await standIn();
    const first = await clone();
    app.clock.advance(52 * MINUTE_MS);
    hosts.github.injectFault({ kind: 'status', status: 503, body: 'Busy' });
    expect(await clone()).toEqual(first);
    const asked = hosts.github.requests.length;
    expect(await clone()).toEqual(first);
    expect(hosts.github.requests.length).toBe(asked);
    app.clock.advance(8 * MINUTE_MS);
    await expect(clone()).rejects.toMatchObject({ code: 'upstream_error' });
  });

  it('signs by the clock of GitHub where that of the machine is ahead', async () => {
    github.behindMs = 5 * MINUTE_MS;
    await standIn();
    expect((await clone()).credential?.password).toMatch(/^ghs_/);
  });

  it('gives our own calls a token of their own', async () => {
    await standIn();
    await clone();
    const changes = app.app.get(RepositoryAccessService);
    const opened = await changes.changeRequests(user.id, 'github', REPOSITORY, (host) =>
      host.open({
        repository: REPOSITORY,
        sourceBranch: 'feature',
        targetBranch: 'main',
        title: 'A change',
        body: '',
        draft: false,
      }),
    );
    expect(opened.number).toBeGreaterThan(0);
    const [, own] = [...github.issued.values()];
    expect(own).toMatchObject({
      repositories: ['app'],
      permissions: { pull_requests: 'write', issues: 'read', checks: 'read' },
    });
    expect(own?.permissions).not.toHaveProperty('actions');
  });

  it('asks who may write to a repository, though it is no user itself', async () => {
    await standIn();
    const rights = await app.app
      .get(RepositoryAccessService)
      .rightsOf(user.id, 'github', REPOSITORY, { name: 'mona', id: null, isOwner: false });
    expect(rights).toMatchObject({ isSelf: false });
  });

  it.each([
    ['is not installed', 'strange/thing', /not installed for strange\/thing/],
    ['has not the repository selected', 'octo/other', /not installed for octo\/other/],
  ])(
    'that %s leaves a public repository to be cloned without a token, and says what to do',
    async (_what, name, words) => {
      github.installations = github.installations.map((each) => ({ ...each, repositories: ['app'] }));
      await standIn();
      expect(await clone(name)).toMatchObject({ credential: null, withheld: expect.stringMatching(words) });
    },
  );

  it.each<[string, () => void, string, RegExp]>([
    [
      'is suspended',
      () => Object.assign(github.installations[0] ?? {}, { isSuspended: true }),
      'forbidden',
      /suspended.*owner of octo/,
    ],
    [
      'may only read',
      () =>
        Object.assign(github.installations[0] ?? {}, {
          permissions: { ...APP_PERMISSIONS, contents: 'read' },
        }),
      'forbidden',
      /lacks contents: write/,
    ],
    ['has another id', () => Object.assign(github, { id: '1' }), 'forbidden', /GITHUB_APP_ID/],
  ])(
    'that %s is no reason to clone without a token: who can mend it is said',
    async (_what, change, code, words) => {
      await standIn();
      change();
      await expect(clone()).rejects.toMatchObject({ code, message: expect.stringMatching(words) });
    },
  );

  it.each([
    [
      'a repository that it lost meanwhile',
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
      /does not have the repository/,
    ],
    [
      'a permission that it lost meanwhile',
      422,
      'The permissions requested are not granted to this installation.',
      /lacks/,
    ],
    [
      'an installation that was suspended meanwhile',
      403,
      'This installation has been suspended',
      /suspended/,
    ],
  ])('says what to do for %s', async (_what, status, message, words) => {
    await standIn();
    hosts.github.injectFault({ kind: 'status', status, body: { message } }, { match: isIssue });
    await expect(clone()).rejects.toMatchObject({ message: expect.stringMatching(words) });
  });

  it('counts a limit of requests as one, and keeps no secret in what it says', async () => {
    await standIn();
    const headers = { 'retry-after': '30' };
    hosts.github.injectFault(
      { kind: 'status', status: 403, headers, body: { message: 'rate limit' } },
      { match: isIssue },
    );
    await expect(clone()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 30 });
  });

  describe('stands in', () => {
    it('for nobody who has not asked, nor unless the operator says so, also of those who have asked before', async () => {
      const other = await start({ GITHUB_APP_FOR: 'none' });
      const { status, body } = await new TokensClient(other, user).postTokens({
        github: { installation: true },
      });
      expect([status, body.errors?.[0]?.msg ?? JSON.stringify(body)]).toEqual([
        422,
        expect.stringMatching(/GITHUB_APP_FOR/),
      ]);
      expect((await clone()).credential).toBeNull();

      await standIn();
      expect(await clone(REPOSITORY, other)).toMatchObject({
        credential: null,
        withheld: expect.stringMatching(/GITHUB_APP_FOR/),
      });
      await expect(
        other.app.get(RepositoryAccessService).changeRequests(user.id, 'github', REPOSITORY, async () => 1),
      ).rejects.toMatchObject({ code: 'forbidden' });
      expect(issues()).toBe(0);
    });

    it.each([
      ['reads_only = true', 'only reads'],
      ['disabled_at = now()', 'is disabled'],
    ])('not for a user with %s', async (change) => {
      await standIn();
      await app.dataSource.query(`UPDATE users SET ${change} WHERE id = $1`, [user.id]);
      expect((await clone()).credential).toBeNull();
    });

    it('for members of a group in the repositories of its owner alone, as long as they are seen', async () => {
      const other = await start({
        GITHUB_APP_FOR: 'dev=octo/*, ops=octo/infra',
        OIDC_ISSUER: hosts.github.origin,
        OIDC_AUDIENCE: 'slipway',
      });
      const identity = async (groups: string[], seenDaysAgo = 0): Promise<void> =>
        inGroups(groups, new Date(other.clock.now() - seenDaysAgo * 86_400_000));
      await standIn();
      const token = async (repository: string): Promise<string | null> =>
        (await clone(repository, other)).credential?.password ?? null;
      expect(await token(REPOSITORY)).toBeNull();
      await identity(['ops']);
      expect(await token(REPOSITORY)).toBeNull();
      await identity(['dev']);
      expect(await token(REPOSITORY)).toMatch(/^ghs_/);
      expect(await token('strange/app')).toBeNull();
      await identity(['dev'], 31);
      expect(await token(REPOSITORY)).toBeNull();
      const forMembers = await start({ OIDC_ISSUER: hosts.github.origin, OIDC_AUDIENCE: 'slipway' });
      expect((await clone(REPOSITORY, forMembers)).credential).toBeNull();
      await identity([], 29);
      expect((await clone(REPOSITORY, forMembers)).credential?.password).toMatch(/^ghs_/);
    });

    it('for the other repositories of a list that names one which is not there', async () => {
      const other = await start({
        GITHUB_APP_FOR: 'dev=octo/app,dev=octo/misspelt',
        OIDC_ISSUER: hosts.github.origin,
        OIDC_AUDIENCE: 'slipway',
      });
      await standIn();
      await inGroups(['dev'], new Date(other.clock.now()));
      const tokens = other.app.get(InstallationTokens, { strict: false });
      const [installation] = await tokens.installationsFor(user.id);
      if (installation === undefined) {
        throw new Error('nothing stands in');
      }
      const token = await tokens.ownerToken(user.id, installation);
      expect(github.issued.get(token)?.repositories).toEqual(['app']);
      const without = { ...installation, id: 78, repositories: ['other'] };
      github.installations = [without];
      await expect(tokens.ownerToken(user.id, without)).rejects.toMatchObject({
        code: 'insufficient_scope',
      });
    });

    it.each([
      ['beside a token', { installation: true, token: 'ghp_x' }],
      ['at another host', { installation: true, host: 'git.example.com' }],
      ['of another provider', { installation: true }, 'gitlab'],
      ['with a login that is none', { installation: true, login: 'a b' }],
      ['as a login without it', { login: 'octocat' }],
    ])('not %s', async (_what, entry, provider = 'github') => {
      const { status } = await new TokensClient(app, user).postTokens({ [provider]: entry });
      expect(status).toBe(422);
    });

    it('until a token is stored, or the entry is removed', async () => {
      await standIn({ login: 'octocat' });
      expect(await new TokensClient(app, user).stored()).toMatchObject([
        { installation: true, login: 'octocat' },
      ]);
      await new TokensClient(app, user).postTokens({ github: { token: hosts.worlds.github.token } });
      expect(await new TokensClient(app, user).stored()).toMatchObject([
        { installation: false, login: null },
      ]);
      await standIn();
      await new TokensClient(app, user).postTokens({ github: null });
      expect(await new TokensClient(app, user).stored()).toEqual([]);
    });
  });

  it('gives no token for a repository that another owner has by now, where GitHub leads the old name', async () => {
    github.installations = [
      ...github.installations,
      { id: 78, owner: 'strange', permissions: APP_PERMISSIONS },
    ];
    const moved = { id: 78, account: { login: 'strange' }, permissions: APP_PERMISSIONS, suspended_at: null };
    hosts.github.injectFault(
      { kind: 'status', status: 200, body: moved },
      { match: ({ path }) => path === `/repos/${REPOSITORY}/installation` },
    );
    await standIn();
    expect(await clone()).toMatchObject({
      credential: null,
      withheld: expect.stringMatching(/not installed for octo\/app/),
    });
    expect(hosts.github.requests.filter(isIssue).map(({ path }) => path)).not.toContain(
      '/app/installations/78/access_tokens',
    );
  });

  it('gives who writes a name in another case a token that is known by that name', async () => {
    await standIn();
    const tokens = app.app.get(InstallationTokens, { strict: false });
    for (const name of [REPOSITORY, 'Octo/App']) {
      const { url, credential } = await clone(name);
      expect(url).toContain(`/${name}.git`);
      expect(tokens.issuedIn(credential?.password ?? '')).toMatchObject([{ repository: name }]);
    }
  });

  it('knows each of more than a hundred installations', async () => {
    await standIn();
    const owners = [...Array(230).keys()].map((index) => `owner-${index}`);
    github.installations = owners.map((owner, id) => ({ id: id + 1, owner, permissions: APP_PERMISSIONS }));
    const tokens = app.app.get(InstallationTokens, { strict: false });
    expect((await tokens.installationsFor(user.id)).map(({ owner }) => owner)).toEqual(owners);
    const last = await tokens.readToken(user.id, { path: 'owner-229', isWide: true });
    expect(github.issued.get(last)?.owner).toBe('owner-229');
  });

  it('knows its own tokens, until they end', async () => {
    await standIn();
    const token = (await clone()).credential?.password ?? '';
    const tokens = app.app.get(InstallationTokens, { strict: false });
    expect(tokens.issuedIn(`a ${token}. b ghs_other`)).toEqual([{ token, repository: REPOSITORY }]);
    // A user may store megabytes of these, which a sandbox has concealed time and again.
    const compared = jest.spyOn(BoundedCache.prototype, 'has');
    expect(tokens.issuedIn(`${'ghs_'.repeat(10_000)}${token}`)).toEqual([{ token, repository: REPOSITORY }]);
    expect(compared.mock.calls.length).toBeLessThan(5);
    compared.mockRestore();
    app.clock.advance(61 * MINUTE_MS);
    expect(tokens.issuedIn(token)).toEqual([]);
  });
});
