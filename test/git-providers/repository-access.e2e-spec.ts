import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RepositoryAccessService } from '../../src/git-providers/repository-access.service.js';
import type { HostActor, ProviderType } from '@slipway/git-providers/git-provider.js';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import { keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeMember, FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

const MEMBERS: FakeMember[] = [
  { id: '71', login: 'writer', permission: 'write' },
  { id: '72', login: 'reader', permission: 'read' },
];
const REPOSITORY = 'octo/app';
const dataCenterWorld: FakeWorld = { ...sampleWorld(), token: 'datacenter-4217token' };

type Kind = 'github' | 'gitlab' | 'bitbucket' | 'bitbucket_data_center';

/** As the events of each kind name an account. */
const ACTORS: Record<Kind, (id: string, login: string) => HostActor> = {
  github: (id, login) => ({ name: login, id, isOwner: false }),
  gitlab: (id) => ({ name: id, id, isOwner: false }),
  bitbucket: (id) => ({ name: `{${id}}`, id: `{${id}}`, isOwner: false }),
  bitbucket_data_center: (id, login) => ({ name: login, id, isOwner: false }),
};
const KINDS = Object.keys(ACTORS) as Kind[];

describe('RepositoryAccessService', () => {
  const open: { close(): Promise<void> }[] = [];
  let hosts: GitHosts;
  let dataCenter: FakeServer;
  let shared: TestApp;
  let app: TestApp;
  let client: TokensClient;

  beforeAll(async () => {
    hosts = await startGitHosts();
    dataCenter = await startFakeBitbucketDataCenter(dataCenterWorld);
    for (const world of [...Object.values(hosts.worlds), dataCenterWorld]) {
      world.members = MEMBERS;
      world.repositories.push({ name: 'octo/public', activeAt: '2026-11-20T16:45:12Z', isPublic: true });
    }
    shared = await createTestApp({ ...hosts.environment, GIT_HOST_ALLOWLIST: dataCenter.origin });
  });

  beforeEach(async () => {
    app = shared;
    client = new TokensClient(app, await app.createUser());
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });

  afterAll(async () => {
    await shared.close();
    await Promise.all([hosts.close(), dataCenter.close()]);
  });

  /** Of another operator. */
  async function start(environment: Record<string, string>): Promise<void> {
    app = await createTestApp({ ...hosts.environment, ...environment }, shared.databaseUrl);
    open.push(app);
    client = new TokensClient(app, app.user);
  }

  function find(provider: ProviderType | null, repository: string) {
    return app.app.get(RepositoryAccessService).cloneAccess(client.user.id, provider, repository);
  }

  it('names the address, on the host of the API where only that was moved, and the credential', async () => {
    await client.post(hosts.tokens);

    expect(await find('github', 'octo/app')).toEqual({
      provider: 'github',
      url: `${hosts.github.origin}/octo/app.git`,
      credential: { username: 'x-access-token', password: hosts.worlds.github.token },
    });
    expect(await find('gitlab', 'group/sub/project')).toEqual({
      provider: 'gitlab',
      url: `${hosts.gitlab.origin}/group/sub/project.git`,
      credential: { username: 'oauth2', password: hosts.worlds.gitlab.token },
    });
    expect(await find('bitbucket', 'octo/app')).toEqual({
      provider: 'bitbucket',
      url: `${hosts.bitbucket.origin}/octo/app.git`,
      credential: { username: 'x-bitbucket-api-token-auth', password: 'bucket4217token' },
    });
  });

  it('takes the clone addresses of the operator, and the host of a token that has one', async () => {
    await start({
      GITHUB_CLONE_URL: 'http://127.0.0.1:9418/mirror/',
      GIT_HOST_ALLOWLIST: hosts.gitlab.origin,
    });
    const { provider_tokens: tokens } = hosts.tokens;
    await client.postTokens({
      github: tokens.github,
      gitlab: { ...tokens.gitlab, host: hosts.gitlab.origin },
    });

    expect((await find('github', 'octo/app')).url).toBe('http://127.0.0.1:9418/mirror/octo/app.git');
    expect((await find('gitlab', 'octo/app')).url).toBe(`${hosts.gitlab.origin}/octo/app.git`);
  });

  it('goes to the first provider where the name is possible when none is named', async () => {
    await client.post(hosts.tokens);

    expect(await find(null, 'octo/app')).toMatchObject({ provider: 'github' });
    expect(await find(null, 'group/sub/project')).toMatchObject({ provider: 'gitlab' });
  });

  it('goes to the provider whose token there is', async () => {
    await client.postTokens({ bitbucket: hosts.tokens.provider_tokens.bitbucket });

    expect(await find(null, 'octo/app')).toMatchObject({ provider: 'bitbucket' });
  });

  it('clones anonymously without a token', async () => {
    expect(await find(null, 'octo/app')).toEqual({
      provider: 'github',
      url: `${hosts.github.origin}/octo/app.git`,
      credential: null,
    });
    expect(await find('gitlab', 'a/b/c')).toMatchObject({
      url: `${hosts.gitlab.origin}/a/b/c.git`,
      credential: null,
    });
  });

  it('refuses what is no name with a sentence', async () => {
    await client.post(hosts.tokens);

    for (const repository of ['octo', 'octo/--upload-pack=x', 'https://github.com/octo/app']) {
      await expect(find(null, repository)).rejects.toMatchObject({
        name: 'DomainError',
        message: expect.stringContaining('is not named owner/name'),
      });
    }
  });

  it('never holds another user’s token', async () => {
    await client.post(hosts.tokens);
    client = new TokensClient(app, await app.createUser());

    expect((await find('github', 'octo/app')).credential).toBeNull();
  });

  describe('enterprise_sso', () => {
    async function startSso(stored: string, rotates = false) {
      const realm = { ...sampleRealm(hosts.worlds.gitlab.token), rotates };
      const keycloak = await startFakeKeycloak(realm);
      open.push(keycloak);
      await start({
        ENTERPRISE_SSO_ISSUER: `${keycloak.origin}/realms/main`,
        ENTERPRISE_SSO_ALIAS: realm.alias,
        ENTERPRISE_SSO_KIND: 'gitlab',
        ENTERPRISE_SSO_HOST: hosts.gitlab.origin,
        ENTERPRISE_SSO_CLIENT_ID: realm.clientId,
        ENTERPRISE_SSO_CLIENT_SECRET: realm.clientSecret,
      });
      await client.postTokens({ enterprise_sso: { token: stored } });
      return realm;
    }

    it('gives the git server’s own token, and keeps the successor of a rotated one', async () => {
      const given = keycloakToken('Offline', 'first');
      const realm = await startSso(given, true);
      const successor = { provider: 'enterprise_sso', host: null, verified: true };
      expect(await client.stored()).toMatchObject([{ ...successor, token: realm.refreshTokens[0] }]);

      expect(await find('enterprise_sso', 'octo/app')).toEqual({
        provider: 'enterprise_sso',
        url: `${hosts.gitlab.origin}/octo/app.git`,
        credential: { username: 'oauth2', password: hosts.worlds.gitlab.token },
      });
      expect(realm.refreshTokens).not.toContain(given);
      expect(await client.stored()).toMatchObject([{ ...successor, token: realm.refreshTokens[0] }]);
    });

    it('says that a sign-in is needed', async () => {
      const realm = await startSso(keycloakToken('Bearer', 'first'));
      realm.linked = false;
      app.clock.advance(600_000);

      await expect(find('enterprise_sso', 'octo/app')).rejects.toMatchObject({
        code: 'invalid_git_token',
        message: expect.stringContaining('sign in again'),
      });
    });
  });

  describe('rights', () => {
    beforeEach(() => {
      hosts.clearFaults();
      dataCenter.clearFaults();
    });

    async function storeToken(kind: Kind): Promise<void> {
      const tokens =
        kind === 'bitbucket_data_center'
          ? { bitbucket: { token: dataCenterWorld.token, host: dataCenter.origin } }
          : { [kind]: { token: hosts.worlds[kind].token } };
      await client.postTokens(tokens);
    }

    function rightsOf(kind: Kind, id: string, login: string, repository = REPOSITORY) {
      const actor = ACTORS[kind](id, login);
      return app.app
        .get(RepositoryAccessService)
        .rightsOf(client.user.id, { source: kind }, repository, actor);
    }

    it.each(KINDS)('accounts of %s may what the host says', async (kind) => {
      await storeToken(kind);
      for (const [id, login, repository, mayWrite, isSelf] of [
        ['71', 'writer', REPOSITORY, true, false],
        ['72', 'reader', REPOSITORY, false, false],
        ['79', 'stranger', REPOSITORY, false, false],
        ['79', 'stranger', 'octo/public', false, false],
        ['4217', 'mona', REPOSITORY, true, true],
      ] as const) {
        const rights = await rightsOf(kind, id, login, repository);
        expect([login, repository, rights]).toEqual([login, repository, { mayWrite, isSelf }]);
      }
    });

    it('an account is asked for once in five minutes, whatever the case of the repository', async () => {
      await storeToken('github');
      await rightsOf('github', '71', 'writer');
      const asked = hosts.github.requests.length;
      await rightsOf('github', '71', 'writer', 'Octo/App');
      expect(hosts.github.requests).toHaveLength(asked);
      await rightsOf('github', '72', 'reader');
      expect(hosts.github.requests.length).toBeGreaterThan(asked);
    });

    it.each(KINDS)('an account of %s is asked for again after the host has failed', async (kind) => {
      await storeToken(kind);
      const server = kind === 'bitbucket_data_center' ? dataCenter : hosts[kind];
      server.injectFault({ kind: 'status', status: 503 });
      await expect(rightsOf(kind, '71', 'writer')).rejects.toMatchObject({ kind: 'bad_gateway' });
      server.clearFaults();
      expect(await rightsOf(kind, '71', 'writer')).toMatchObject({ mayWrite: true });
    });

    it('an account that has taken the name of another one may nothing', async () => {
      await storeToken('github');
      expect(await rightsOf('github', '99', 'writer')).toEqual({ mayWrite: false, isSelf: false });
      expect(await rightsOf('github', '99', 'mona')).toEqual({ mayWrite: false, isSelf: false });
    });

    it('an app of GitHub is no account', async () => {
      await storeToken('github');
      expect(await rightsOf('github', '80', 'helper[bot]')).toEqual({ mayWrite: false, isSelf: false });
    });

    it('without the right to ask, there is no answer', async () => {
      hosts.worlds.bitbucket.isNoAdministrator = true;
      await storeToken('bitbucket');
      await expect(rightsOf('bitbucket', '71', 'writer')).rejects.toMatchObject({ kind: 'bad_gateway' });
      expect(await rightsOf('bitbucket', '4217', 'mona')).toEqual({ mayWrite: true, isSelf: true });
    });

    it('without a token of the kind, there is no answer', async () => {
      await storeToken('gitlab');
      await expect(rightsOf('github', '71', 'writer')).rejects.toMatchObject({ code: 'no_git_provider' });
    });
  });
});
