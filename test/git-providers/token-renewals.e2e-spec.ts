import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import {
  ProviderTokenRepository,
  providerTokenBinding,
} from '../../src/git-providers/tokens/provider-token.repository.js';
import { TokenRenewals } from '../../src/git-providers/tokens/token-renewals.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { until } from '../support/until.js';

const CLIENT = { clientId: 'the-client', clientSecret: 'the-secret-of-the-client' };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Provider = 'github' | 'gitlab' | 'bitbucket';

let hosts: GitHosts;
let environment: Record<string, string>;
let app: TestApp;
let other: TestApp;
let provider: Provider;
let user: TestUser;

beforeAll(async () => {
  hosts = await startGitHosts();
  const clients = ['GITHUB_APP_CLIENT', 'GITLAB_OAUTH_CLIENT', 'BITBUCKET_OAUTH_CLIENT'].map((name) => ({
    [`${name}_ID`]: CLIENT.clientId,
    [`${name}_SECRET`]: CLIENT.clientSecret,
  }));
  environment = Object.assign({ ...hosts.environment }, ...clients);
  app = await createTestApp(environment);
  other = await createTestApp(environment, app.databaseUrl);
});

afterAll(async () => {
  await other.close();
  await app.close();
  await hosts.close();
});

/** What a test finds: a user of a host whose tokens end. */
function useProvider(name: Provider): void {
  beforeEach(async () => {
    provider = name;
    hosts.clearFaults();
    const world = hosts.worlds[provider];
    world.token = 'a-token-of-oauth';
    world.oauth = { ...CLIENT, refreshToken: 'refresh-0', renewals: 0 };
    user = await app.createUser();
  });
}

const isRenewal = ({ method, path }: FakeRequest): boolean =>
  method === 'POST' && /oauth/.test(path) && !/graphql/.test(path);
const renewals = (): number => hosts[provider].requests.filter(isRenewal).length;
const store = async (expiresInMs: number, entry: object = {}): Promise<void> => {
  const token = {
    token: hosts.worlds[provider].token,
    refresh_token: 'refresh-0',
    expires_at: new Date(app.clock.now() + expiresInMs).toISOString(),
    ...entry,
  };
  await request(app.url)
    .post('/api/add-git-providers')
    .set(user.headers)
    .send({ provider_tokens: { [provider]: token } })
    .expect(200);
};
const account = async (at = app): Promise<request.Response> =>
  await request(at.url).get('/api/v1/users/git-info').set(user.headers);

describe.each<Provider>(['github', 'gitlab', 'bitbucket'])('tokens of OAuth at %s', (name) => {
  useProvider(name);

  it('are renewed before they end, and not before that', async () => {
    await store(HOUR_MS);
    expect((await account()).status).toBe(200);
    expect(renewals()).toBe(0);

    await store(4 * MINUTE_MS);
    expect((await account()).status).toBe(200);
    expect((await account()).status).toBe(200);
    expect(renewals()).toBe(1);
    const rows = await app.dataSource.query<object[]>('SELECT * FROM provider_tokens WHERE user_id = $1', [
      user.id,
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/refresh-\d|a-token-of-oauth/);
  });

  it('that the host has ended are not asked for again, and the answer says what to do', async () => {
    await store(MINUTE_MS);
    Object.assign(hosts.worlds[provider], { token: 'another-one' });
    Object.assign(hosts.worlds[provider].oauth ?? {}, { refreshToken: 'another-one' });
    const { status, body } = await account();
    expect(status).toBe(401);
    expect(body).toMatchObject({
      code: 'invalid_git_token',
      detail: expect.stringContaining('sign in again'),
    });
    await account();
    expect(renewals()).toBe(1);
    await store(HOUR_MS);
    expect((await account()).status).toBe(200);
  });

  it('that a replica has lost with its process are asked for again where the host allows that, and else the user is', async () => {
    await store(MINUTE_MS);
    // The host has answered, and nothing of it was stored: GitHub and GitLab have ended the refresh token.
    Object.assign(hosts.worlds[provider], { token: 'lost' });
    Object.assign(hosts.worlds[provider].oauth ?? {}, {
      refreshToken: provider === 'bitbucket' ? 'refresh-0' : 'lost',
    });
    const { status, body } = await account();
    expect([status, body.detail]).toEqual(
      provider === 'bitbucket' ? [200, undefined] : [401, expect.stringContaining('sign in again')],
    );
  });
});

describe('tokens of OAuth', () => {
  useProvider('gitlab');

  it('are renewed once where many ask at once, of two replicas, with a token that has ended', async () => {
    await store(-MINUTE_MS);
    hosts.worlds[provider].token = 'another-one';
    const answers = await Promise.all([...Array(8).keys()].map((index) => account(index % 2 ? app : other)));

    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(renewals()).toBe(1);
  });

  it('are stored in the end where the database fails at first', async () => {
    await store(MINUTE_MS);
    const repository = app.app.get(ProviderTokenRepository, { strict: false });
    const storing = jest.spyOn(repository, 'storeRenewed').mockRejectedValueOnce(new Error('no connection'));
    expect((await account()).status).toBe(200);
    storing.mockRestore();
    expect(renewals()).toBe(1);
    const [stored] = await repository.list(user.id);
    expect(stored?.token).toBe(hosts.worlds[provider].token);
  });

  it('whose renewal is under way are stored before the service ends', async () => {
    await store(-MINUTE_MS);
    const stopping = await createTestApp(environment, app.databaseUrl);
    const repository = stopping.app.get(ProviderTokenRepository, { strict: false });
    const held = Promise.withResolvers<void>();
    const real = repository.storeRenewed.bind(repository);
    const storing = jest.spyOn(repository, 'storeRenewed').mockImplementation(async (...args) => {
      await held.promise;
      await real(...args);
    });
    const answer = stopping.app.get(TokenRenewals, { strict: false }).current(user.id);
    await until(() => storing.mock.calls.length > 0);
    const closed = stopping.close();
    held.resolve();
    await closed;
    // What is asked for afterwards finds no database.
    await Promise.allSettled([answer]);
    const [stored] = await app.app.get(ProviderTokenRepository, { strict: false }).list(user.id);
    expect(stored?.token).toBe(hosts.worlds[provider].token);
  });

  it('stay as they are while the host does not answer, which is not asked by each request', async () => {
    await store(4 * MINUTE_MS);
    hosts[provider].injectFault({ kind: 'status', status: 503, body: 'Busy' }, { match: isRenewal });
    expect((await account()).status).toBe(200);
    expect((await account()).status).toBe(200);
    expect(renewals()).toBe(1);
  });

  it('are not used any more while another replica renews them, as the host ends them with that', async () => {
    await store(4 * MINUTE_MS);
    const { token } = hosts.worlds[provider];
    hosts.worlds[provider].token = 'ended';
    await app.dataSource.query(
      "UPDATE provider_tokens SET claimed_until = now() + interval '20 seconds' WHERE user_id = $1",
      [user.id],
    );
    const repository = app.app.get(ProviderTokenRepository, { strict: false });
    const looks = jest.spyOn(repository, 'list');
    const answer = account();
    void answer.catch(() => undefined);
    await until(() => looks.mock.calls.length >= 2);
    const renewal = { refreshToken: 'refresh-1', expiresAt: new Date(app.clock.now() + HOUR_MS) };
    await repository.storeRenewed(user.id, provider, token, { token: 'a-token-of-oauth-1', renewal });
    hosts.worlds[provider].token = 'a-token-of-oauth-1';
    expect((await answer).status).toBe(200);
    looks.mockRestore();
  });

  it('that have ended are waited for once while the host is in trouble, as all that a sandbox asks for waits with them', async () => {
    await store(-MINUTE_MS);
    hosts[provider].injectFault({ kind: 'status', status: 503, body: 'Busy' }, { match: isRenewal });
    await account();
    const looks = jest.spyOn(app.app.get(ProviderTokenRepository, { strict: false }), 'list');
    await account();
    // Once before the renewal, and once after it.
    expect(looks.mock.calls.length).toBeLessThanOrEqual(2);
    looks.mockRestore();
    expect(renewals()).toBe(1);
  });

  it('are not waited for where the operator has taken the client away', async () => {
    await store(-MINUTE_MS);
    const without = await createTestApp(hosts.environment, app.databaseUrl);
    const looks = jest.spyOn(without.app.get(ProviderTokenRepository, { strict: false }), 'list');
    await account(without);
    await account(without);
    expect(looks.mock.calls.length).toBeLessThanOrEqual(4);
    await without.close();
    expect(renewals()).toBe(0);
  });

  it('give way to a token that the user or a replica of the release before has stored', async () => {
    await store(MINUTE_MS);
    const row = [user.id, provider];
    const plain = app.app.get(SecretCipher).encrypt('stored-before', providerTokenBinding(user.id, provider));
    await app.dataSource.query('UPDATE provider_tokens SET token = $3 WHERE user_id = $1 AND provider = $2', [
      ...row,
      plain,
    ]);
    hosts.worlds[provider].token = 'stored-before';
    expect((await account()).status).toBe(200);

    await store(MINUTE_MS, { refresh_token: null });
    expect((await account()).status).toBe(200);
    expect(renewals()).toBe(0);
    await until(async () => {
      const sql = 'SELECT renewal, expires_at FROM provider_tokens WHERE user_id = $1 AND provider = $2';
      const [stored] = await app.dataSource.query<{ renewal: unknown; expires_at: unknown }[]>(sql, row);
      return stored?.renewal === null && stored.expires_at === null;
    });
  });
});
