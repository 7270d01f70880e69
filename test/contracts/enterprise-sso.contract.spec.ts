import { afterEach, describe, expect, it } from '@jest/globals';
import { GuardedHttpClient } from '../../src/common/http/guarded-http.client.js';
import { HostAllowlist } from '../../src/common/http/host-allowlist.js';
import { BrokerTokenCache } from '../../src/git-providers/enterprise-sso/broker-token.cache.js';
import { EnterpriseSsoProvider } from '../../src/git-providers/enterprise-sso/enterprise-sso.provider.js';
import type { ProviderCall } from '../../src/git-providers/git-provider.types.js';
import { GitlabProvider } from '../../src/git-providers/gitlab/gitlab.provider.js';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import { type FakeRealm, keycloakToken, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import type { FakeRequest, FakeServer, Fault } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { until } from '../support/until.js';
import { describeGitProvider } from './git-provider.contract.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderHarness,
  relaxedCall,
} from './git-provider.harness.js';

interface SsoHarness extends GitProviderHarness {
  keycloak: FakeServer;
  realm: FakeRealm;
  world: FakeWorld;
}

interface SsoOptions {
  realm?: Partial<FakeRealm>;
  apiVersion?: 'v1' | 'v2';
  /** Stored value; the realm's first access token by default. */
  stored?: string;
  clientSecret?: string;
  now?: () => number;
  gate?: () => Promise<void>;
}

function isExchange({ path }: FakeRequest): boolean {
  return path.endsWith('/openid-connect/token');
}

function brokerFails(keycloak: FakeServer, fault: Fault, times = Infinity): void {
  keycloak.injectFault(fault, { times, match: ({ path }) => path.includes('/broker/') });
}

/** A call whose stored token can be replaced, and what it was replaced with. */
function replacing(): { call: ProviderCall; replaced: string[] } {
  const replaced: string[] = [];
  return {
    replaced,
    call: {
      ...relaxedCall(),
      replaceToken: (token) => {
        replaced.push(token);
        return Promise.resolve();
      },
    },
  };
}

async function openSso(world: FakeWorld, options: SsoOptions = {}): Promise<SsoHarness> {
  const realm = { ...sampleRealm(world.token), ...options.realm };
  const [server, keycloak] = await Promise.all([startFakeGitlab(world), startFakeKeycloak(realm, options)]);
  const http = new GuardedHttpClient({
    allowlist: HostAllowlist.parse([server.origin, keycloak.origin]),
    maxResponseBytes: 5 * 1024 * 1024,
    timeoutMs: 8_000,
  });
  const now = options.now ?? Date.now;
  const timing = { delay: () => Promise.resolve(), random: () => 0, now };
  const provider = new EnterpriseSsoProvider(
    http,
    new GitlabProvider(http, { apiUrl: 'https://gitlab.example/api', timing }),
    {
      issuer: `${keycloak.origin}/realms/main`,
      alias: realm.alias,
      host: server.origin,
      clientId: realm.clientId,
      clientSecret: options.clientSecret ?? realm.clientSecret,
      apiVersion: options.apiVersion ?? 'v1',
      timing,
    },
    new BrokerTokenCache({ now }),
  );
  return {
    provider,
    auth: { token: options.stored ?? realm.accessTokens[0] ?? '', host: null },
    server,
    keycloak,
    realm,
    world,
    close: async () => {
      await Promise.all([server.close(), keycloak.close()]);
      await http.close();
    },
  };
}

const CAPABILITIES: GitProviderCapabilities = {
  issues: true,
  repositoryTimes: true,
  archives: true,
  forks: false,
  mirrors: false,
  maxChangeRequests: 50,
  rejection: 'reauth_required',
  authorization: () => `Bearer ${sampleWorld().token}`,
};

describeGitProvider('Enterprise SSO (broker v1, JSON)', (world) => openSso(world), CAPABILITIES);
describeGitProvider(
  'Enterprise SSO (broker v2, offline token)',
  (world) =>
    openSso(world, { apiVersion: 'v2', realm: { rotates: true }, stored: keycloakToken('Offline', 'first') }),
  CAPABILITIES,
);

describe('Enterprise SSO specials', () => {
  const open: SsoHarness[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((harness) => harness.close()));
  });

  async function start(options: SsoOptions = {}): Promise<SsoHarness> {
    const harness = await openSso(sampleWorld(), options);
    open.push(harness);
    return harness;
  }

  it('reads GitHub-style form answers', async () => {
    const { provider, auth } = await start({ realm: { format: 'form' } });
    expect((await provider.findWork(auth, relaxedCall())).changeRequests).toHaveLength(5);
  });

  it('asks version 1 with the stored token, and tells the git host nothing of it', async () => {
    const { provider, auth, keycloak, server } = await start();
    await provider.findWork(auth, relaxedCall());
    expect(
      keycloak.requests.map(({ method, path, headers }) => [method, path, headers['authorization']]),
    ).toEqual([['GET', '/realms/main/broker/corporate-git/token', `Bearer ${auth.token}`]]);
    expect(JSON.stringify(server.requests)).not.toContain(auth.token);
  });

  it('asks version 2 with the client, and sends no authorization header', async () => {
    const { provider, auth, keycloak, realm } = await start({ apiVersion: 'v2' });
    await provider.findWork(auth, relaxedCall());
    const [request] = keycloak.requests;
    expect([request?.method, request?.headers['authorization']]).toEqual(['POST', undefined]);
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      client_id: realm.clientId,
      client_secret: realm.clientSecret,
      token: auth.token,
    });
  });

  it('asks Keycloak nothing after the deadline', async () => {
    const { provider, auth, keycloak } = await start();
    const late = { ...relaxedCall(), deadlineAt: Date.now() - 1 };
    expect((await failureOf(provider.getUser(auth, late))).code).toBe('timeout');
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
      ['an alias that does not exist', { alias: 'other' }, 'v1', 'not_linked'],
    ] as const)('%s (%j, %s): %s', async (_, change, apiVersion, code) => {
      const { provider, auth, realm, server } = await start({ apiVersion });
      Object.assign(realm, change);
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe(code);
      expect((await failureOf(provider.getUser(auth, relaxedCall()))).code).toBe(code);
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({ status: 'unverified', code });
      expect(server.requests).toEqual([]);
    });

    it.each(['v1', 'v2'] as const)('the stored token (%s) is definite', async (apiVersion) => {
      const { provider, auth, realm } = await start({ apiVersion });
      realm.accessTokens.length = 0;
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe('reauth_required');
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({ status: 'invalid' });
    });

    it("the operator's client is not the user's fault", async () => {
      const { provider, auth } = await start({ apiVersion: 'v2', clientSecret: 'wrong' });
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({
        status: 'unverified',
        code: 'unavailable',
      });
    });

    it('is not remembered', async () => {
      const { provider, auth, realm } = await start({ realm: { linked: false } });
      await failureOf(provider.findWork(auth, relaxedCall()));
      realm.linked = true;
      expect((await provider.findWork(auth, relaxedCall())).issues).toHaveLength(2);
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
      const { provider, auth, keycloak } = await start();
      brokerFails(keycloak, fault);
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe(code);
    });

    it('once is asked again', async () => {
      const { provider, auth, keycloak } = await start();
      brokerFails(keycloak, { kind: 'status', status: 502 }, 1);
      expect((await provider.findWork(auth, relaxedCall())).issues).toHaveLength(2);
      expect(keycloak.requests).toHaveLength(2);
    });

    it('is not waited for by a caller who stops, and the answer still serves the others', async () => {
      const gate = Promise.withResolvers<void>();
      const { provider, auth, keycloak } = await start({ gate: () => gate.promise });
      const caller = new AbortController();
      const stopped = failureOf(provider.getUser(auth, relaxedCall(caller.signal)));
      const waiting = provider.getUser(auth, relaxedCall());
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
      const { provider, auth, keycloak } = await start();
      await Promise.all([1, 2, 3].map(() => provider.findWork(auth, relaxedCall())));
      await provider.getUser(auth, relaxedCall());
      expect(keycloak.requests).toHaveLength(1);
    });

    it.each([
      ['for five minutes at most', undefined, 300_000],
      ['until a minute before it expires', 100, 40_000],
    ])('is kept %s', async (_, expiresIn, keptMs) => {
      let now = Date.now();
      const { provider, auth, keycloak } = await start({
        now: () => now,
        realm: expiresIn ? { expiresIn } : {},
      });
      const ask = () => provider.getUser(auth, { ...relaxedCall(), deadlineAt: now + 60_000 });
      await ask();
      now += keptMs - 1;
      await ask();
      expect(keycloak.requests).toHaveLength(1);
      now += 2;
      await ask();
      expect(keycloak.requests).toHaveLength(2);
    });

    it('is not kept when it is about to expire', async () => {
      const { provider, auth, keycloak } = await start({ realm: { expiresIn: 30 } });
      await provider.getUser(auth, relaxedCall());
      await provider.getUser(auth, relaxedCall());
      expect(keycloak.requests).toHaveLength(2);
    });

    it.each(['findWork', 'getUser', 'checkToken'] as const)(
      'is fetched once more when the host refuses it (%s)',
      async (method) => {
        const { provider, auth, keycloak, realm, world } = await start();
        const before = await provider[method](auth, relaxedCall());
        world.token = 'renewed-token-of-mona';
        realm.forgeToken = world.token;
        expect(await provider[method](auth, relaxedCall())).toEqual(before);
        expect(keycloak.requests).toHaveLength(2);
      },
    );

    it('that the host refuses twice needs a new sign-in', async () => {
      const { provider, auth, keycloak, realm, world } = await start();
      world.token = 'what-the-host-wants';
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe('reauth_required');
      realm.forgeToken = 'another-stale-token';
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({
        status: 'unverified',
        code: 'reauth_required',
      });
      expect(keycloak.requests).toHaveLength(3);
    });
  });

  describe('a refresh token', () => {
    const stored = keycloakToken('Offline', 'first');
    it('is exchanged first', async () => {
      const { provider, auth, keycloak } = await start({ stored });
      const { call, replaced } = replacing();
      expect((await provider.findWork(auth, call)).issues).toHaveLength(2);
      expect(keycloak.requests.map(({ path }) => path.split('/').slice(3).join('/'))).toEqual([
        'protocol/openid-connect/token',
        'broker/corporate-git/token',
      ]);
      expect(replaced).toEqual([]);
    });

    it('that rotates is replaced, and the new one continues with what is known', async () => {
      const { provider, auth, keycloak, realm } = await start({ stored, realm: { rotates: true } });
      const { call, replaced } = replacing();
      await provider.findWork(auth, call);
      expect(replaced).toEqual(realm.refreshTokens);
      await provider.findWork({ ...auth, token: replaced[0] ?? '' }, call);
      expect({ count: replaced.length, exchanges: keycloak.requests.filter(isExchange).length }).toEqual({
        count: 1,
        exchanges: 1,
      });
    });

    it('that rotates is replaced even when the rest fails', async () => {
      const { provider, auth, realm } = await start({ stored, realm: { rotates: true, linked: false } });
      const { call, replaced } = replacing();
      await failureOf(provider.findWork(auth, call));
      expect(replaced).toEqual(realm.refreshTokens);
    });

    it('that rotated in a call that could not store it is replaced by the next', async () => {
      const { provider, auth, realm } = await start({ stored, realm: { rotates: true } });
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({ status: 'valid' });
      const { call, replaced } = replacing();
      await provider.findWork(auth, call);
      await provider.findWork(auth, call);
      expect(replaced).toEqual(realm.refreshTokens);
    });

    it('that rotated is not used again for a caller that still holds it', async () => {
      let now = Date.now();
      const { provider, auth, keycloak, realm } = await start({
        stored,
        realm: { rotates: true },
        now: () => now,
      });
      const { call, replaced } = replacing();
      await provider.findWork(auth, { ...call, deadlineAt: now + 60_000 });
      now += 300_001;
      await provider.findWork(auth, { ...call, deadlineAt: now + 60_000 });
      expect(keycloak.requests.filter(isExchange)).toHaveLength(2);
      expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
    });

    it('whose successor could not be stored is not lost', async () => {
      const { provider, auth, realm } = await start({ stored, realm: { rotates: true } });
      const full = { ...relaxedCall(), replaceToken: () => Promise.reject(new Error('disk full')) };
      const failure = await failureOf(provider.findWork(auth, full));
      expect([failure.code, failure.cause]).toEqual(['unavailable', new Error('disk full')]);
      const { call, replaced } = replacing();
      await provider.findWork(auth, call);
      expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
    });

    it('is never sent twice, even to a Keycloak in trouble', async () => {
      const { provider, auth, keycloak } = await start({ stored });
      keycloak.injectFault({ kind: 'reset' }, { match: isExchange });
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe('unavailable');
      expect(keycloak.requests).toHaveLength(1);
    });

    it('that Keycloak does not take needs a new sign-in', async () => {
      const { provider, auth, realm } = await start({ stored });
      realm.refreshTokens.length = 0;
      expect((await failureOf(provider.findWork(auth, relaxedCall()))).code).toBe('reauth_required');
      expect(await provider.checkToken(auth, relaxedCall())).toEqual({ status: 'invalid' });
    });
  });
});
