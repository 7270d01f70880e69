import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ProviderTokenRepository } from '../../src/git-providers/tokens/provider-token.repository.js';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import { startFakeGithub } from '../fakes/fake-github.js';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import { FakeServer } from '../fakes/fake-server.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { presentedSecret } from '../support/presented-secret.js';
import { TokensClient } from '../support/tokens-client.js';
import { untilBlocked } from '../support/until-blocked.js';

const STORED = { message: 'Git providers stored' };

describe('git-provider tokens', () => {
  const ghes = { ...sampleWorld(), token: 'ghp_enterprise-4217token' };
  const gitlabWorld = { ...sampleWorld(), token: 'glpat-selfmanaged-4217token' };
  const dataCenterWorld = { ...sampleWorld(), token: 'datacenter-4217token', issues: [] };
  let hosts: GitHosts;
  let enterprise: FakeServer;
  let selfManaged: FakeServer;
  let dataCenter: FakeServer;
  /** Not allowlisted. */
  let foreign: FakeServer;
  let app: TestApp;
  let client: TokensClient;

  beforeAll(async () => {
    hosts = await startGitHosts();
    enterprise = await startFakeGithub(ghes);
    selfManaged = await startFakeGitlab(gitlabWorld);
    dataCenter = await startFakeBitbucketDataCenter(dataCenterWorld, { contextPath: '/git' });
    foreign = await FakeServer.start(() => ({ body: {} }));
    app = await createTestApp({
      ...hosts.environment,
      GIT_HOST_ALLOWLIST: [enterprise.origin, selfManaged.origin, dataCenter.origin].join(', '),
    });
  });

  beforeEach(async () => {
    hosts.clearFaults();
    client = new TokensClient(app, await app.createUser());
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([hosts, enterprise, selfManaged, dataCenter, foreign].map((server) => server.close()));
  });

  const requestCount = (): number =>
    hosts.github.requests.length + hosts.gitlab.requests.length + hosts.bitbucket.requests.length;

  const storeAll = async (): Promise<void> => {
    const response = await client.post(hosts.tokens);
    expect(response.status).toBe(200);
    hosts.clearFaults();
  };

  describe('storing', () => {
    it.each([
      { provider_tokens: null },
      { something: 'else' },
      { provider_tokens: { github: {}, gitlab: { token: '  ', host: ' ' } } },
    ])('changes nothing for %j', async (body) => {
      await storeAll();
      const before = await client.rows();

      const response = await client.post(body);

      expect([response.status, response.body]).toEqual([200, STORED]);
      expect(await client.rows()).toEqual(before);
      expect(requestCount()).toBe(0);
    });

    it('stores tokens that their own provider accepts, and shows each to no other', async () => {
      const { github, gitlab, bitbucket } = hosts.worlds;

      const response = await client.postTokens({
        bitbucket: { token: bitbucket.token },
        github: { token: github.token, user_id: '4217' },
        gitlab: { token: gitlab.token, host: 'gitlab.com' },
      });

      expect([response.status, response.body]).toEqual([200, STORED]);
      expect(await client.stored()).toEqual([
        expect.objectContaining({ provider: 'github', token: github.token, host: null, verified: true }),
        expect.objectContaining({ provider: 'gitlab', token: gitlab.token, host: null, verified: true }),
        expect.objectContaining({
          provider: 'bitbucket',
          token: bitbucket.token,
          host: null,
          verified: true,
        }),
      ]);
      for (const provider of ['github', 'gitlab', 'bitbucket'] as const) {
        expect(hosts[provider].requests.map(presentedSecret)).toEqual([hosts.worlds[provider].token]);
      }
    });

    it('keeps tokens encrypted, each record bound to its user and provider', async () => {
      await storeAll();
      const [{ dump } = { dump: '' }] = await app.dataSource.query<{ dump: string }[]>(
        'SELECT string_agg(t::text, chr(10)) AS dump FROM provider_tokens t',
      );
      expect(dump).toContain(client.user.id);
      expect(dump).not.toMatch(/4217token/);
      const other = new TokensClient(app, await app.createUser());

      await app.dataSource.query(
        'INSERT INTO provider_tokens (user_id, provider, token) SELECT $2, provider, token FROM provider_tokens WHERE user_id = $1',
        [client.user.id, other.user.id],
      );

      await expect(other.stored()).rejects.toThrow('does not decrypt');
    });

    it('takes a new account id beside a blank token', async () => {
      await storeAll();
      await client.postTokens({ gitlab: { token: '', user_id: '99' } });

      expect((await client.stored()).map(({ token }) => token)).toEqual([
        hosts.worlds.github.token,
        hosts.worlds.gitlab.token,
        hosts.worlds.bitbucket.token,
      ]);
      expect((await client.rows()).map(({ account_id }) => account_id)).toEqual([null, null, '99']);
    });

    it('removes a provider for null and keeps those left out', async () => {
      await storeAll();

      const response = await client.postTokens({ gitlab: null });

      expect(response.status).toBe(200);
      expect(await client.storedProviders()).toEqual(['github', 'bitbucket']);
    });

    it("never mixes up two users' tokens", async () => {
      await storeAll();
      const other = new TokensClient(app, await app.createUser());

      await other.postTokens({ github: { token: '' }, gitlab: null });
      await other.postTokens({ bitbucket: { token: hosts.worlds.bitbucket.token } });

      expect(await client.storedProviders()).toEqual(['github', 'gitlab', 'bitbucket']);
      expect(await other.storedProviders()).toEqual(['bitbucket']);
    });

    it('stores mcp_config beside the tokens, and alone', async () => {
      const url = 'https://mcp.example.com/sse';

      await client.post({
        mcp_config: { sse_servers: [url] },
        provider_tokens: { github: { token: hosts.worlds.github.token } },
      });
      const [both] = await app.dataSource.query<{ config: { sse_servers: { url: string }[] } }[]>(
        'SELECT config FROM mcp_configs WHERE user_id = $1',
        [client.user.id],
      );
      await client.post({ mcp_config: null });
      const afterwards = await app.dataSource.query('SELECT 1 FROM mcp_configs WHERE user_id = $1', [
        client.user.id,
      ]);

      expect(both?.config.sse_servers).toEqual([expect.objectContaining({ url })]);
      expect(afterwards).toEqual([]);
      expect(await client.storedProviders()).toEqual(['github']);
    });
  });

  describe('all or nothing', () => {
    it('refuses a token that its provider rejects, the first one by its name', async () => {
      const response = await client.post({
        mcp_config: { sse_servers: ['https://mcp.example.com/sse'] },
        provider_tokens: {
          bitbucket: { token: hosts.worlds.bitbucket.token },
          gitlab: { token: 'glpat-revoked' },
          github: { token: 'ghp_revoked' },
        },
      });

      const text = 'Invalid token. Please make sure it is a valid gitlab token.';
      expect(response.status).toBe(401);
      expect(response.headers['content-type']).toContain('application/json');
      expect(response.body).toMatchObject({ error: text, detail: text, code: 'invalid_git_token' });
      expect(response.text).not.toContain('revoked');
      expect(await client.rows()).toEqual([]);
      expect(
        await app.dataSource.query('SELECT 1 FROM mcp_configs WHERE user_id = $1', [client.user.id]),
      ).toEqual([]);
    });

    it('keeps what was stored when a new token is rejected', async () => {
      await storeAll();
      const before = await client.rows();

      await client.postTokens({ github: { token: 'ghp_revoked' }, gitlab: null });

      expect(await client.rows()).toEqual(before);
    });

    it('stores no token when the MCP configuration cannot be stored', async () => {
      const response = await client.post({
        mcp_config: { sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: '**********' }] },
        provider_tokens: { github: { token: hosts.worlds.github.token } },
      });

      expect(response.status).toBe(422);
      expect(response.body.detail[0]).toMatchObject({
        loc: ['body', 'mcp_config', 'sse_servers', '0', 'api_key'],
        type: 'value_error',
      });
      expect(await client.rows()).toEqual([]);
    });
  });

  describe('at hosts of their own', () => {
    beforeEach(() => {
      for (const server of [enterprise, selfManaged, dataCenter, foreign]) {
        server.clearFaults();
        server.requests.length = 0;
      }
    });

    const everywhere = (): string[] =>
      Object.entries({ ...hosts, enterprise, selfManaged, dataCenter, foreign })
        .filter((entry): entry is [string, FakeServer] => entry[1] instanceof FakeServer)
        .flatMap(([name, server]) => server.requests.map((request) => `${name} ${presentedSecret(request)}`));

    it.each([
      ['github', 'enterprise', () => enterprise.origin, ghes.token],
      ['gitlab', 'selfManaged', () => selfManaged.origin, gitlabWorld.token],
      ['bitbucket', 'dataCenter', () => `${dataCenter.origin}/git`, dataCenterWorld.token],
    ] as const)(
      'shows a token of %s to the host it came with only: %s',
      async (provider, server, host, token) => {
        const response = await client.postTokens({ [provider]: { token, host: `${host()}/` } });

        expect([response.status, response.body]).toEqual([200, STORED]);
        expect(await client.stored()).toEqual([
          expect.objectContaining({ provider, token, host: host(), verified: true }),
        ]);
        expect(everywhere()).toEqual([`${server} ${token}`]);
      },
    );

    it.each([
      ['to an allowed host', () => enterprise.origin],
      ['to a foreign host', () => foreign.origin],
    ])('never sends a stored token %s', async (_title, host) => {
      const { token } = hosts.worlds.github;
      await client.postTokens({ github: { token } });
      hosts.clearFaults();

      const response = await client.postTokens({ github: { token: '', host: host() } });

      expect(response.status).toBe(422);
      expect(response.body.detail).toEqual([
        { loc: ['body', 'provider_tokens', 'github', 'host'], type: 'value_error', msg: expect.any(String) },
      ]);
      expect(await client.stored()).toEqual([expect.objectContaining({ token, host: null })]);
      expect(everywhere()).toEqual([]);
    });
  });

  describe('in their repository', () => {
    let repository: ProviderTokenRepository;

    beforeEach(async () => {
      repository = app.app.get(ProviderTokenRepository);
      await client.post(hosts.tokens);
    });

    const storedToken = async (provider: string): Promise<string | undefined> =>
      (await client.stored()).find((credential) => credential.provider === provider)?.token;

    it('lists the hosts', async () => {
      expect([...(await repository.hosts(client.user.id))]).toEqual([
        ['github', null],
        ['gitlab', null],
        ['bitbucket', null],
      ]);
    });

    it('puts the successor in the place of a token', async () => {
      const { token } = hosts.worlds.gitlab;

      expect(await repository.replaceToken(client.user.id, 'gitlab', token, 'successor')).toBe(true);

      expect(await storedToken('gitlab')).toBe('successor');
      expect(await storedToken('github')).toBe(hosts.worlds.github.token);
    });

    it('does not bring back a token that was replaced or removed', async () => {
      const { token } = hosts.worlds.gitlab;
      expect(await repository.replaceToken(client.user.id, 'gitlab', 'an older one', 'successor')).toBe(
        false,
      );
      expect(await storedToken('gitlab')).toBe(token);

      await client.postTokens({ gitlab: null });
      expect(await repository.replaceToken(client.user.id, 'gitlab', token, 'successor')).toBe(false);
      expect(await client.storedProviders()).toEqual(['github', 'bitbucket']);
    });

    it('lets one of several successors of the same token win', async () => {
      const { token } = hosts.worlds.gitlab;
      const successors = ['a', 'b', 'c'];
      let replacing: Promise<boolean[]> = Promise.resolve([]);
      await app.dataSource.transaction(async (manager) => {
        // With the row locked all of them are under way before the first can write.
        await manager.query('SELECT 1 FROM provider_tokens WHERE user_id = $1 FOR UPDATE', [client.user.id]);
        replacing = Promise.all(
          successors.map((successor) => repository.replaceToken(client.user.id, 'gitlab', token, successor)),
        );
        await untilBlocked(app.dataSource, successors.length);
      });

      const won = await replacing;

      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await storedToken('gitlab')).toBe(successors[won.indexOf(true)]);
    });
  });
});
