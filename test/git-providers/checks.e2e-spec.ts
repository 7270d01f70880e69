import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import type { FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { Gate } from '../support/gate.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';
import { until } from '../support/until.js';

type PublicProvider = 'github' | 'gitlab' | 'bitbucket';

const STORED = { message: 'Git providers stored' };

describe('git-provider tokens: verdicts, concurrency, removal, account', () => {
  const gate = new Gate();
  let hosts: GitHosts;
  let gitlab: FakeServer;
  let app: TestApp;
  let client: TokensClient;

  beforeAll(async () => {
    hosts = await startGitHosts();
    gitlab = await startFakeGitlab(hosts.worlds.gitlab, { gate: gate.pass });
    app = await createTestApp({ ...hosts.environment, GITLAB_API_URL: `${gitlab.origin}/api` });
  });

  beforeEach(async () => {
    hosts.clearFaults();
    gitlab.clearFaults();
    gitlab.requests.length = 0;
    client = new TokensClient(app, await app.createUser());
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([hosts.close(), gitlab.close()]);
  });

  const tokenOf = (...providers: PublicProvider[]): Record<string, { token: string }> =>
    Object.fromEntries(providers.map((provider) => [provider, { token: hosts.worlds[provider].token }]));
  const serverOf = (provider: PublicProvider): FakeServer =>
    provider === 'gitlab' ? gitlab : hosts[provider];
  const info = (): request.Test => request(app.url).get('/api/user/info').set(client.user.headers);
  const verified = async (): Promise<boolean[]> => (await client.stored()).map((token) => token.verified);

  /** Sends tokens of which GitLab's is held back in its check, and does something meanwhile. */
  const whileChecking = async (
    tokens: object,
    meanwhile: () => Promise<unknown>,
  ): Promise<request.Response> => {
    gate.close();
    const answer = client.postTokens(tokens);
    try {
      await until(() => gate.waiting > 0);
      await meanwhile();
    } finally {
      gate.open();
    }
    return await answer;
  };

  describe('a provider that gives no verdict', () => {
    it('gets its token stored unverified, and the response says so', async () => {
      gitlab.injectFault({ kind: 'reset' });

      const response = await client.postTokens(tokenOf('github', 'gitlab'));

      expect([response.status, response.body]).toEqual([
        200,
        {
          ...STORED,
          warnings: [
            { provider: 'gitlab', code: 'unavailable', detail: expect.stringContaining('not verified') },
          ],
        },
      ]);
      expect(response.text).not.toContain(hosts.worlds.gitlab.token);
      expect(await verified()).toEqual([true, false]);
    });

    it('gives it when the token is posted again', async () => {
      gitlab.injectFault({ kind: 'status', status: 503 });
      await client.postTokens(tokenOf('gitlab'));
      const before = await verified();
      gitlab.clearFaults();

      const response = await client.postTokens(tokenOf('gitlab'));

      expect(response.body).toEqual(STORED);
      expect([before, await verified()]).toEqual([[false], [true]]);
    });

    it('gives it when the work of the user is read', async () => {
      gitlab.injectFault({ kind: 'status', status: 503 });
      await client.postTokens(tokenOf('gitlab'));
      gitlab.clearFaults();
      const get = (path: string): request.Test => request(app.url).get(path).set(client.user.headers);
      const { body: before } = await get('/api/v1/users/me');
      await get('/api/user/suggested-tasks').expect(200);
      const { body: after } = await get('/api/v1/users/me');

      expect([before.provider_tokens_unverified, after.provider_tokens_unverified]).toEqual([['gitlab'], []]);
    });
  });

  describe('requests at the same time', () => {
    it('asks the providers of one request side by side', async () => {
      const response = await whileChecking(tokenOf('gitlab', 'github', 'bitbucket'), () =>
        until(() => hosts.github.requests.length > 0 && hosts.bitbucket.requests.length > 0),
      );

      expect(response.status).toBe(200);
    });

    it('keeps the tokens of both when they name different providers', async () => {
      const responses = await Promise.all([
        client.postTokens(tokenOf('github')),
        client.postTokens(tokenOf('gitlab')),
        client.postTokens(tokenOf('bitbucket')),
      ]);

      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(await client.storedProviders()).toEqual(['github', 'gitlab', 'bitbucket']);
    });

    it('does not bring back a token that was removed while another was checked', async () => {
      await client.postTokens(tokenOf('github'));

      const response = await whileChecking(
        { github: { token: '', user_id: '7' }, ...tokenOf('gitlab') },
        () => client.postTokens({ github: null }),
      );

      expect(response.status).toBe(200);
      expect(await client.storedProviders()).toEqual(['gitlab']);
    });

    it('does not undo a new token that was stored while another was checked', async () => {
      await client.postTokens(tokenOf('github'));
      const successor = 'ghp_successor';
      hosts.github.injectFault({ kind: 'status', status: 503 });

      await whileChecking({ github: { token: '' }, ...tokenOf('gitlab') }, () =>
        client.postTokens({ github: { token: successor } }),
      );

      expect((await client.stored())[0]).toMatchObject({ provider: 'github', token: successor });
    });

    it('turns away a user who was removed while the token was checked', async () => {
      const response = await whileChecking(tokenOf('gitlab'), () =>
        app.dataSource.query('DELETE FROM users WHERE id = $1', [client.user.id]),
      );

      expect([response.status, response.body.code]).toEqual([401, 'unauthorized']);
    });

    it('lets writers of the same rows take turns', async () => {
      const unset = (): request.Test =>
        request(app.url).post('/api/unset-provider-tokens').set(client.user.headers);

      const responses = await Promise.all([
        client.postTokens(tokenOf('github', 'bitbucket')),
        client.postTokens(tokenOf('bitbucket', 'github')),
        unset(),
        client.post({ mcp_config: {}, provider_tokens: tokenOf('github', 'bitbucket') }),
        unset(),
        client.post({ mcp_config: null, provider_tokens: tokenOf('bitbucket', 'github') }),
      ]);

      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    });
  });

  describe('POST /api/unset-provider-tokens', () => {
    it('removes all tokens of the user and of nobody else, again and again', async () => {
      const other = new TokensClient(app, await app.createUser());
      await client.postTokens(tokenOf('github', 'bitbucket'));
      await other.postTokens(tokenOf('github'));

      for (let time = 0; time < 2; time += 1) {
        const response = await request(app.url).post('/api/unset-provider-tokens').set(client.user.headers);
        expect([response.status, response.body]).toEqual([200, { message: 'Unset Git provider tokens' }]);
      }

      expect(await client.storedProviders()).toEqual([]);
      expect(await other.storedProviders()).toEqual(['github']);
    });
  });

  describe('GET /api/user/info', () => {
    it('says when there is no token', async () => {
      const response = await info();

      expect(response.status).toBe(401);
      expect(response.body).toMatchObject({ code: 'no_git_provider', detail: 'No providers set.' });
    });

    it.each([
      [['bitbucket', 'gitlab', 'github'], 'github'],
      [['bitbucket', 'gitlab'], 'gitlab'],
    ] as const)('of %j asks %s', async (providers, first) => {
      await client.postTokens(tokenOf(...providers));
      hosts.clearFaults();
      gitlab.requests.length = 0;

      const response = await info();

      expect(response.status).toBe(200);
      expect(Object.keys(response.body)).toEqual(['id', 'login', 'avatar_url', 'company', 'name', 'email']);
      expect(response.body).toMatchObject({ login: 'mona', name: 'Mona Lisa', id: expect.any(String) });
      const asked = (['github', 'gitlab', 'bitbucket'] as const).filter(
        (provider) => serverOf(provider).requests.length > 0,
      );
      expect(asked).toEqual([first]);
    });

    it('passes on what the host answers, without the token', async () => {
      await client.postTokens(tokenOf('gitlab'));
      gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });

      const response = await info();

      expect([response.status, response.body.code]).toEqual([429, 'rate_limited']);
      expect(response.headers['retry-after']).toBe('41');
      expect(response.text).not.toContain(gitlab.origin);
      expect(response.text).not.toContain(hosts.worlds.gitlab.token);
    });
  });
});
