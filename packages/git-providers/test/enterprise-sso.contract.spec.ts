import { describe, expect, it } from '@jest/globals';
import { keycloakToken } from '../../../test/fakes/fake-keycloak.js';
import type { FakeServer, Fault } from '../../../test/fakes/fake-server.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import { until } from '../../../test/support/until.js';
import { openSso, type SsoOptions, ssoOpener } from './enterprise-sso.harness.js';
import { describeAccess } from './git-provider.contract.js';
import { describeFaults } from './git-provider.faults.contract.js';
import { failureOf } from './git-provider.harness.js';

function brokerFails(keycloak: FakeServer, fault: Fault, times = Infinity): void {
  keycloak.injectFault(fault, { times, match: ({ path }) => path.includes('/broker/') });
}

const CAPABILITIES = {
  rejection: 'reauth_required' as const,
  authorization: () => `Bearer ${sampleWorld().token}`,
  clone: {
    url: (origin: string) => `${origin}/octo/app.git`,
    credential: { username: 'oauth2', password: sampleWorld().token },
    token: sampleWorld().token,
  },
};

const offline: SsoOptions = {
  apiVersion: 'v2',
  realm: { rotates: true },
  stored: keycloakToken('Offline', 'first'),
};
// The rest is GitLab's adapter.
describe('Enterprise SSO with an offline token', () => {
  const setUp = (world: FakeWorld) => openSso(world, offline);
  describeFaults(setUp, CAPABILITIES);
  describeAccess(setUp, CAPABILITIES);
});

describe('Enterprise SSO specials', () => {
  const start = ssoOpener();

  it('uses what the user has stored meanwhile, not an older token that could not be stored', async () => {
    const [first, fresh] = [keycloakToken('Offline', 'first'), keycloakToken('Offline', 'fresh')];
    const { provider, call, keycloak, realm } = await start({
      realm: { rotates: true, refreshTokens: [first, fresh] },
      stored: first,
    });
    const lost = { claimToken: async () => first, replaceToken: () => Promise.reject(new Error('lost')) };
    expect(await failureOf(provider.findWork({ ...call, ...lost }))).toMatchObject({ code: 'unavailable' });
    keycloak.requests.length = 0;
    const stored: string[] = [];
    const replaceToken = async (token: string): Promise<void> => void stored.push(token);
    await provider.findWork({ ...call, claimToken: async () => fresh, replaceToken });

    expect(keycloak.requests[0]?.body).toContain(`refresh_token=${fresh}`);
    expect(stored).toEqual([realm.refreshTokens.at(-1)]);
  });

  it('reads GitHub-style form answers', async () => {
    const { provider, call } = await start({ realm: { format: 'form' } });
    expect((await provider.findWork(call)).changeRequests).toHaveLength(5);
  });

  it('asks version 1 with the stored token, and tells the git host nothing of it', async () => {
    const { provider, call, keycloak, server } = await start();
    await provider.findWork(call);
    expect(
      keycloak.requests.map(({ method, path, headers }) => [method, path, headers['authorization']]),
    ).toEqual([['GET', '/realms/main/broker/corporate-git/token', `Bearer ${call.token}`]]);
    expect(JSON.stringify(server.requests)).not.toContain(call.token);
  });

  it('asks version 2 with the client, and sends no authorization header', async () => {
    const { provider, call, keycloak, realm } = await start({ apiVersion: 'v2' });
    await provider.findWork(call);
    const [request] = keycloak.requests;
    expect([request?.method, request?.headers['authorization']]).toEqual(['POST', undefined]);
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      client_id: realm.clientId,
      client_secret: realm.clientSecret,
      token: call.token,
    });
  });

  it('asks Keycloak nothing after the deadline', async () => {
    const { provider, call, keycloak } = await start();
    const late = { ...call, deadlineAt: Date.now() - 1 };
    expect((await failureOf(provider.getUser(late))).code).toBe('timeout');
    expect(keycloak.requests).toEqual([]);
  });

  it('is of the kind of its git host', async () => {
    expect((await start()).provider.kind).toBe('gitlab');
  });

  describe('Keycloak refusing', () => {
    it.each([
      ['a provider without stored tokens (SAML)', { storesTokens: false }, 'v1', 'unsupported'],
      ['a user who is not linked', { linked: false }, 'v1', 'not_linked'],
      ['a user who is not linked', { linked: false }, 'v2', 'not_linked'],
      ['a user who may not read tokens', { mayReadTokens: false }, 'v1', 'reauth_required'],
      ['a user who may not read tokens', { mayReadTokens: false }, 'v2', 'reauth_required'],
      ['an expired token of the git host', { renews: false }, 'v1', 'reauth_required'],
      ['an expired token of the git host', { renews: false }, 'v2', 'reauth_required'],
      ['an alias that does not exist', { alias: 'other' }, 'v1', 'unavailable'],
      ['an alias that does not exist', { alias: 'other' }, 'v2', 'unavailable'],
    ] as const)('%s (%j, %s): %s', async (_, change, apiVersion, code) => {
      const { provider, call, realm, server } = await start({ apiVersion });
      Object.assign(realm, change);
      expect((await failureOf(provider.findWork(call))).code).toBe(code);
      expect((await failureOf(provider.getUser(call))).code).toBe(code);
      expect(await provider.checkToken(call)).toEqual({ status: 'unverified', code });
      expect(server.requests).toEqual([]);
    });

    it.each(['v1', 'v2'] as const)('the stored token (%s) is definite', async (apiVersion) => {
      const { provider, call, realm } = await start({ apiVersion });
      realm.accessTokens.length = 0;
      expect((await failureOf(provider.findWork(call))).code).toBe('reauth_required');
      expect(await provider.checkToken(call)).toEqual({ status: 'invalid' });
    });

    it.each([
      ['a wrong secret', { clientSecret: 'wrong' }],
      [
        'a wrong secret for a refresh token',
        { clientSecret: 'wrong', stored: keycloakToken('Offline', 'first') },
      ],
      ['an unknown client', { clientId: 'unknown' }],
    ])("the operator's client (%s) is not the user's fault", async (_, options) => {
      const { provider, call } = await start({ apiVersion: 'v2', ...options });
      expect(await provider.checkToken(call)).toEqual({
        status: 'unverified',
        code: 'unavailable',
      });
    });

    it('is not remembered', async () => {
      const { provider, call, realm } = await start({ realm: { linked: false } });
      await failureOf(provider.findWork(call));
      realm.linked = true;
      expect((await provider.findWork(call)).issues).toHaveLength(2);
    });
  });

  describe('Keycloak in trouble', () => {
    it.each<[string, Fault, string]>([
      ['500', { kind: 'status', status: 500 }, 'unavailable'],
      ['429', { kind: 'status', status: 429, headers: { 'retry-after': '7' } }, 'rate_limited'],
      ['a login page', { kind: 'status', status: 200, body: '<h1>Sign in</h1>' }, 'unavailable'],
      ['an empty answer', { kind: 'status', status: 200, body: {} }, 'unavailable'],
      ['a broken connection', { kind: 'reset' }, 'unavailable'],
    ])('%s', async (_, fault, code) => {
      const { provider, call, keycloak } = await start();
      brokerFails(keycloak, fault);
      expect((await failureOf(provider.findWork(call))).code).toBe(code);
    });

    it('once is asked again', async () => {
      const { provider, call, keycloak } = await start();
      brokerFails(keycloak, { kind: 'status', status: 502 }, 1);
      expect((await provider.findWork(call)).issues).toHaveLength(2);
      expect(keycloak.requests).toHaveLength(2);
    });

    it('is not waited for by a caller who stops, and the answer still serves the others', async () => {
      const gate = Promise.withResolvers<void>();
      const { provider, call, keycloak } = await start({ gate: () => gate.promise });
      const caller = new AbortController();
      const stopped = failureOf(provider.getUser({ ...call, signal: caller.signal }));
      const waiting = provider.getUser(call);
      await until(() => keycloak.requests.length > 0);
      caller.abort();
      expect((await stopped).code).toBe('timeout');
      gate.resolve();
      expect((await waiting).login).toBe('mona');
      expect(keycloak.requests).toHaveLength(1);
    });
  });

  describe("the git host's token", () => {
    it('is fetched once for concurrent and later calls', async () => {
      const { provider, call, keycloak } = await start();
      await Promise.all([1, 2, 3].map(() => provider.findWork(call)));
      await provider.getUser(call);
      expect(keycloak.requests).toHaveLength(1);
    });

    it('is kept until a minute before it expires', async () => {
      let now = Date.now();
      const { provider, call, keycloak } = await start({ now: () => now, realm: { expiresIn: 100 } });
      const ask = () => provider.getUser({ ...call, deadlineAt: now + 60_000 });
      for (const [ms, requests] of [
        [0, 1],
        [39_999, 1],
        [2, 2],
      ] as const) {
        now += ms;
        await ask();
        expect(keycloak.requests).toHaveLength(requests);
      }
    });

    it('is not kept when it is about to expire', async () => {
      const { provider, call, keycloak } = await start({ realm: { expiresIn: 30 } });
      await provider.getUser(call);
      await provider.getUser(call);
      expect(keycloak.requests).toHaveLength(2);
    });

    it.each(['findWork', 'getUser', 'checkToken'] as const)(
      'is fetched once more when the host refuses it (%s)',
      async (method) => {
        const { provider, call, keycloak, realm, world } = await start();
        const before = await provider[method](call);
        world.token = 'renewed-token-of-mona';
        realm.forgeToken = world.token;
        expect(await provider[method](call)).toEqual(before);
        expect(keycloak.requests).toHaveLength(2);
      },
    );

    it('that the host refuses twice needs a new sign-in', async () => {
      const { provider, call, keycloak, realm, world } = await start();
      world.token = 'what-the-host-wants';
      expect((await failureOf(provider.findWork(call))).code).toBe('reauth_required');
      realm.forgeToken = 'another-stale-token';
      expect(await provider.checkToken(call)).toEqual({
        status: 'unverified',
        code: 'reauth_required',
      });
      expect(keycloak.requests).toHaveLength(3);
    });
  });
});
