import { describe, expect, it } from '@jest/globals';
import type { ProviderCall } from '../../src/git-providers/git-provider.js';
import { keycloakToken } from '../fakes/fake-keycloak.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import { ssoOpener } from './enterprise-sso.harness.js';
import { failureOf, relaxedCall } from './git-provider.harness.js';

function isExchange({ path }: FakeRequest): boolean {
  return path.endsWith('/openid-connect/token');
}

/** A call whose stored token can be replaced, and what it was replaced with. */
function replacing(): { call: Omit<ProviderCall, 'token' | 'host'>; replaced: string[] } {
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

describe('A refresh token stored for enterprise SSO', () => {
  const start = ssoOpener();
  const stored = keycloakToken('Offline', 'first');
  it('is exchanged first', async () => {
    const { provider, auth, keycloak } = await start({ stored });
    const { call, replaced } = replacing();
    expect((await provider.findWork({ ...auth, ...call })).issues).toHaveLength(2);
    expect(keycloak.requests.map(({ path }) => path.split('/').slice(3).join('/'))).toEqual([
      'protocol/openid-connect/token',
      'broker/corporate-git/token',
    ]);
    expect(replaced).toEqual([]);
  });

  it('that rotates is replaced, and the new one continues with what is known', async () => {
    const { provider, auth, keycloak, realm } = await start({ stored, realm: { rotates: true } });
    const { call, replaced } = replacing();
    await provider.findWork({ ...auth, ...call });
    expect(replaced).toEqual(realm.refreshTokens);
    await provider.findWork({ ...auth, token: replaced[0] ?? '', ...call });
    expect({ count: replaced.length, exchanges: keycloak.requests.filter(isExchange).length }).toEqual({
      count: 1,
      exchanges: 1,
    });
  });

  it('that rotates is replaced even when the rest fails', async () => {
    const { provider, auth, realm } = await start({ stored, realm: { rotates: true, linked: false } });
    const { call, replaced } = replacing();
    await failureOf(provider.findWork({ ...auth, ...call }));
    expect(replaced).toEqual(realm.refreshTokens);
  });

  it('that rotated in a call that could not store it is replaced by the next', async () => {
    const { provider, auth, realm } = await start({ stored, realm: { rotates: true } });
    expect(await provider.checkToken({ ...auth, ...relaxedCall() })).toEqual({ status: 'valid' });
    const { call, replaced } = replacing();
    await provider.findWork({ ...auth, ...call });
    await provider.findWork({ ...auth, ...call });
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
    await provider.findWork({ ...auth, ...call, deadlineAt: now + 60_000 });
    now += 300_001;
    await provider.findWork({ ...auth, ...call, deadlineAt: now + 60_000 });
    expect(keycloak.requests.filter(isExchange)).toHaveLength(2);
    expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
  });

  it('whose successor could not be stored is not lost', async () => {
    const { provider, auth, realm } = await start({ stored, realm: { rotates: true } });
    const full = { ...relaxedCall(), replaceToken: () => Promise.reject(new Error('disk full')) };
    const failure = await failureOf(provider.findWork({ ...auth, ...full }));
    expect([failure.code, failure.cause]).toEqual(['unavailable', new Error('disk full')]);
    const { call, replaced } = replacing();
    await provider.findWork({ ...auth, ...call });
    expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
  });

  it('is never sent twice, even to a Keycloak in trouble', async () => {
    const { provider, auth, keycloak } = await start({ stored });
    keycloak.injectFault({ kind: 'reset' }, { match: isExchange });
    expect((await failureOf(provider.findWork({ ...auth, ...relaxedCall() }))).code).toBe('unavailable');
    expect(keycloak.requests).toHaveLength(1);
  });

  it('that Keycloak does not take needs a new sign-in', async () => {
    const { provider, auth, realm } = await start({ stored });
    realm.refreshTokens.length = 0;
    expect((await failureOf(provider.findWork({ ...auth, ...relaxedCall() }))).code).toBe('reauth_required');
    expect(await provider.checkToken({ ...auth, ...relaxedCall() })).toEqual({ status: 'invalid' });
  });
});
