import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RepositoryAccessService } from '../../src/git-providers/repository-access.service.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

describe('RepositoryAccessService', () => {
  const open: { close(): Promise<void> }[] = [];
  let hosts: GitHosts;
  let shared: TestApp;
  let app: TestApp;
  let client: TokensClient;

  beforeAll(async () => {
    hosts = await startGitHosts();
    shared = await createTestApp(hosts.environment);
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
    await hosts.close();
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
});
