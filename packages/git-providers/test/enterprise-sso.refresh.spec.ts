import { describe, expect, it } from '@jest/globals';
import { keycloakToken } from '../../../test/fakes/fake-keycloak.js';
import type { FakeRequest } from '../../../test/fakes/fake-server.js';
import { type SsoOptions, ssoOpener } from './enterprise-sso.harness.js';
import { failureOf } from './git-provider.harness.js';

function isExchange({ path }: FakeRequest): boolean {
  return path.endsWith('/openid-connect/token');
}

describe('A refresh token stored for enterprise SSO', () => {
  const open = ssoOpener();
  const stored = keycloakToken('Offline', 'first');
  /** `keeping` is a call whose stored token can be replaced, `replaced` what it was replaced with. */
  const start = async (options: SsoOptions = {}) => {
    const harness = await open({ stored, ...options });
    const replaced: string[] = [];
    const replaceToken = async (token: string): Promise<void> => void replaced.push(token);
    return { ...harness, replaced, keeping: { ...harness.call, replaceToken } };
  };

  it('is exchanged first', async () => {
    const { provider, keeping, replaced, keycloak } = await start();
    expect((await provider.findWork(keeping)).issues).toHaveLength(2);
    expect(keycloak.requests.map(({ path }) => path.split('/').slice(3).join('/'))).toEqual([
      'protocol/openid-connect/token',
      'broker/corporate-git/token',
    ]);
    expect(replaced).toEqual([]);
  });

  it('that rotates is replaced, and the new one continues with what is known', async () => {
    const { provider, keeping, replaced, keycloak, realm } = await start({ realm: { rotates: true } });
    await provider.findWork(keeping);
    expect(replaced).toEqual(realm.refreshTokens);
    await provider.findWork({ ...keeping, token: replaced[0] ?? '' });
    expect({ count: replaced.length, exchanges: keycloak.requests.filter(isExchange).length }).toEqual({
      count: 1,
      exchanges: 1,
    });
  });

  it('that rotates is replaced even when the rest fails', async () => {
    const { provider, keeping, replaced, realm } = await start({ realm: { rotates: true, linked: false } });
    await failureOf(provider.findWork(keeping));
    expect(replaced).toEqual(realm.refreshTokens);
  });

  it('that rotated in a call that could not store it is replaced by the next', async () => {
    const { provider, call, keeping, replaced, realm } = await start({ realm: { rotates: true } });
    expect(await provider.checkToken(call)).toEqual({ status: 'valid' });
    await provider.findWork(keeping);
    await provider.findWork(keeping);
    expect(replaced).toEqual(realm.refreshTokens);
  });

  it('that rotated is not used again for a caller that still holds it', async () => {
    let now = Date.now();
    const { provider, keeping, replaced, keycloak, realm } = await start({
      realm: { rotates: true },
      now: () => now,
    });
    await provider.findWork({ ...keeping, deadlineAt: now + 60_000 });
    now += 300_001;
    await provider.findWork({ ...keeping, deadlineAt: now + 60_000 });
    expect(keycloak.requests.filter(isExchange)).toHaveLength(2);
    expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
  });

  it('whose successor could not be stored is not lost', async () => {
    const { provider, keeping, replaced, realm } = await start({ realm: { rotates: true } });
    const full = { ...keeping, replaceToken: () => Promise.reject(new Error('disk full')) };
    const failure = await failureOf(provider.findWork(full));
    expect([failure.code, failure.cause]).toEqual(['unavailable', new Error('disk full')]);
    await provider.findWork(keeping);
    expect(replaced.at(-1)).toBe(realm.refreshTokens[0]);
  });

  it('is never sent twice, even to a Keycloak in trouble', async () => {
    const { provider, call, keycloak } = await start();
    keycloak.injectFault({ kind: 'reset' }, { match: isExchange });
    expect((await failureOf(provider.findWork(call))).code).toBe('unavailable');
    expect(keycloak.requests).toHaveLength(1);
  });

  it('that Keycloak does not take needs a new sign-in', async () => {
    const { provider, call, realm } = await start();
    realm.refreshTokens.length = 0;
    expect((await failureOf(provider.findWork(call))).code).toBe('reauth_required');
    expect(await provider.checkToken(call)).toEqual({ status: 'invalid' });
  });
});
