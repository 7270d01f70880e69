import { afterEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { ProviderTokenRepository } from '../../src/git-providers/tokens/provider-token.repository.js';
import { until } from '../support/until.js';
import { type FakeRealm, keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import type { FakeRequest, FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

const TASKS = '/api/user/suggested-tasks';

interface ReplicaOptions {
  kind?: string;
  host?: string | null;
  /** Of the first replica. */
  databaseUrl?: string;
}

describe('GET /api/user/suggested-tasks with enterprise_sso', () => {
  let hosts: GitHosts;
  let keycloak: FakeServer;
  let app: TestApp;
  let beforeAnswer: (asked: FakeRequest) => Promise<void>;

  afterEach(async () => {
    await app.close();
    await Promise.all([hosts.close(), keycloak.close()]);
  });

  const start = async (
    kind: 'github' | 'gitlab',
    ssoHost: (hosts: GitHosts) => string | null,
  ): Promise<FakeRealm> => {
    hosts = await startGitHosts();
    const realm = sampleRealm(hosts.worlds[kind].token);
    beforeAnswer = () => Promise.resolve();
    keycloak = await startFakeKeycloak(realm, { gate: (asked) => beforeAnswer(asked) });
    app = await replica(realm, { kind, host: ssoHost(hosts) });
    return realm;
  };

  const replica = (
    realm: FakeRealm,
    { kind = 'github', host = null, databaseUrl }: ReplicaOptions = {},
  ): Promise<TestApp> => {
    const environment = {
      ...hosts.environment,
      ENTERPRISE_SSO_ISSUER: `${keycloak.origin}/realms/main`,
      ENTERPRISE_SSO_ALIAS: realm.alias,
      ENTERPRISE_SSO_KIND: kind,
      ENTERPRISE_SSO_CLIENT_ID: realm.clientId,
      ENTERPRISE_SSO_CLIENT_SECRET: realm.clientSecret,
      ...(host !== null && { ENTERPRISE_SSO_HOST: host }),
    };
    return createTestApp(environment, databaseUrl);
  };

  it.each<['github' | 'gitlab', string, (hosts: GitHosts) => string | null]>([
    ['github', 'no host', () => null],
    ['github', 'the public name', () => 'github.com'],
    ['github', 'the public name, spelled differently', () => 'https://GitHub.com/'],
    ['github', 'the server of GITHUB_API_URL', ({ github }) => github.origin],
    ['gitlab', 'the public name', () => 'gitlab.com'],
    ['gitlab', 'the server of GITLAB_API_URL', ({ gitlab }) => `${gitlab.origin}/`],
  ])('shows work of the same %s once: %s', async (kind, _name, ssoHost) => {
    const { accessTokens } = await start(kind, ssoHost);
    await request(app.url)
      .post('/api/add-git-providers')
      .set(app.user.headers)
      .send({
        provider_tokens: {
          [kind]: hosts.tokens.provider_tokens[kind],
          enterprise_sso: { token: accessTokens[0] },
        },
      })
      .expect(200);

    const { headers, status } = await request(app.url).get(TASKS).set(app.user.headers);

    expect(status).toBe(200);
    expect(headers['x-provider-status']).toBe(`${kind};status=ok;count=7, enterprise_sso;status=ok;count=0`);
  });

  describe('whose refresh token rotates', () => {
    const AFTER_BROKER_TOKEN_MS = 301_000;

    /** Stored, and about to be exchanged by the next call. */
    const storeRotating = async (): Promise<{ client: TokensClient; realm: FakeRealm }> => {
      const realm = await start('github', () => null);
      realm.rotates = true;
      const client = new TokensClient(app, app.user);
      await client.postTokens({ enterprise_sso: { token: keycloakToken('Offline', 'first') } });
      app.clock.advance(AFTER_BROKER_TOKEN_MS);
      return { client, realm };
    };

    it('keeps the work read with the replaced one', async () => {
      const { client, realm } = await storeRotating();
      const before = realm.refreshTokens[0];
      const first = await request(app.url).get(TASKS).set(app.user.headers).expect(200);
      expect(realm.refreshTokens[0]).not.toBe(before);
      hosts.clearFaults();

      const second = await request(app.url).get(TASKS).set(app.user.headers).expect(200);

      expect(second.text).toBe(first.text);
      expect(hosts.github.requests).toEqual([]);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });

    it('works in two replicas that exchange it at the same time', async () => {
      const { client, realm } = await storeRotating();
      const second = await replica(realm, { databaseUrl: app.databaseUrl });
      second.clock.advance(AFTER_BROKER_TOKEN_MS);
      const claims = [app, second].map((replica) =>
        jest.spyOn(replica.app.get(ProviderTokenRepository), 'claimToken'),
      );
      let underWay = 0;
      const most: number[] = [];
      beforeAnswer = async ({ path }) => {
        if (path.endsWith('/openid-connect/token')) {
          underWay += 1;
          most.push(underWay);
          await until(() => claims.every((claim) => claim.mock.calls.length > 0));
          underWay -= 1;
        }
      };
      const answers = await Promise.all(
        [app, second].map(({ url }) => request(url).get(TASKS).set(app.user.headers)),
      );
      await second.close();

      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(answers[1]?.body).toEqual(answers[0]?.body);
      expect(most).toEqual([1, 1]);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });

    it.each([TASKS, '/api/user/info'])('stores the last one of two rotations in %s', async (path) => {
      const { client, realm } = await storeRotating();
      // Refused by the git host, so that Keycloak is asked a second time.
      hosts.github.injectFault({ kind: 'status', status: 401 });
      keycloak.requests.length = 0;

      await request(app.url).get(path).set(app.user.headers).expect(401);

      const exchanges = keycloak.requests.filter(({ path: asked }) =>
        asked.endsWith('/openid-connect/token'),
      );
      expect(exchanges).toHaveLength(2);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });
  });
});
