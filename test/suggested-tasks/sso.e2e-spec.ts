import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { ProviderTokenRepository } from '../../src/git-providers/tokens/provider-token.repository.js';
import { until } from '../support/until.js';
import { type FakeRealm, keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import type { FakeRequest, FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

const TASKS = '/api/user/suggested-tasks';
const AFTER_BROKER_TOKEN_MS = 301_000;

describe('GET /api/user/suggested-tasks with enterprise_sso', () => {
  let hosts: GitHosts;
  let realm: FakeRealm;
  let keycloak: FakeServer;
  let environment: Record<string, string>;
  let app: TestApp;
  let user: TestUser;
  let client: TokensClient;
  let beforeAnswer: ((asked: FakeRequest) => Promise<void>) | null;

  beforeAll(async () => {
    hosts = await startGitHosts();
    realm = sampleRealm(hosts.worlds.github.token);
    keycloak = await startFakeKeycloak(realm, { gate: async (asked) => beforeAnswer?.(asked) });
    environment = {
      ...hosts.environment,
      ENTERPRISE_SSO_ISSUER: `${keycloak.origin}/realms/main`,
      ENTERPRISE_SSO_ALIAS: realm.alias,
      ENTERPRISE_SSO_KIND: 'github',
      ENTERPRISE_SSO_HOST: `${hosts.github.origin}/`,
      ENTERPRISE_SSO_CLIENT_ID: realm.clientId,
      ENTERPRISE_SSO_CLIENT_SECRET: realm.clientSecret,
    };
    app = await createTestApp(environment);
  });

  beforeEach(async () => {
    hosts.clearFaults();
    beforeAnswer = null;
    user = await app.createUser();
    client = new TokensClient(app, user);
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([hosts.close(), keycloak.close()]);
  });

  const find = (path = TASKS, { url } = app): request.Test => request(url).get(path).set(user.headers);

  it('shows work of the same server once', async () => {
    const { github } = hosts.tokens.provider_tokens;
    await client.postTokens({ github, enterprise_sso: { token: realm.accessTokens[0] } });

    const { headers } = await find().expect(200);

    expect(headers['x-provider-status']).toBe('github;status=ok;count=7, enterprise_sso;status=ok;count=0');
  });

  describe('whose refresh token rotates', () => {
    let tokens = 0;

    /** Stored, and about to be exchanged by the next call. */
    beforeEach(async () => {
      tokens += 1;
      const token = keycloakToken('Offline', `token-${tokens}`);
      Object.assign(realm, { rotates: true, refreshTokens: [token] });
      await client.postTokens({ enterprise_sso: { token } });
      app.clock.advance(AFTER_BROKER_TOKEN_MS);
    });

    it('keeps the work read with the replaced one', async () => {
      const before = realm.refreshTokens[0];
      const first = await find().expect(200);
      expect(realm.refreshTokens[0]).not.toBe(before);
      hosts.clearFaults();

      const second = await find().expect(200);

      expect(second.text).toBe(first.text);
      expect(hosts.github.requests).toEqual([]);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });

    it('works in two replicas that exchange it at the same time', async () => {
      const second = await createTestApp(environment, app.databaseUrl);
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
      const answers = await Promise.all([app, second].map((replica) => find(TASKS, replica)));
      await second.close();
      jest.restoreAllMocks();

      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(answers[1]?.body).toEqual(answers[0]?.body);
      expect(most).toEqual([1, 1]);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });

    it.each([TASKS, '/api/user/info'])('stores the last one of two rotations in %s', async (path) => {
      // Refused by the git host, so that Keycloak is asked a second time.
      hosts.github.injectFault({ kind: 'status', status: 401 });
      keycloak.requests.length = 0;

      await find(path).expect(401);

      const exchanges = keycloak.requests.filter(({ path: asked }) =>
        asked.endsWith('/openid-connect/token'),
      );
      expect(exchanges).toHaveLength(2);
      expect((await client.stored()).map(({ token }) => token)).toEqual(realm.refreshTokens);
    });
  });
});
