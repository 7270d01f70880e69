import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import { startFakeGithub } from '../fakes/fake-github.js';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import { FakeServer } from '../fakes/fake-server.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { presentedSecret } from '../support/presented-secret.js';
import { TokensClient } from '../support/tokens-client.js';

const STORED = { message: 'Git providers stored' };

describe('hosts of git-provider tokens', () => {
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
    for (const server of [enterprise, selfManaged, dataCenter, foreign]) {
      server.clearFaults();
      server.requests.length = 0;
    }
    client = new TokensClient(app, await app.createUser());
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([hosts, enterprise, selfManaged, dataCenter, foreign].map((server) => server.close()));
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

  it('keeps the host beside a blank token when it is blank or the same', async () => {
    const host = selfManaged.origin;
    await client.postTokens({ gitlab: { token: gitlabWorld.token, host } });
    const before = await client.rows();
    selfManaged.requests.length = 0;

    for (const same of ['', `${host.toUpperCase()}/`]) {
      expect((await client.postTokens({ gitlab: { token: '', host: same } })).body).toEqual(STORED);
    }

    expect(await client.rows()).toEqual(before);
    expect((await client.stored())[0]?.host).toBe(host);
    expect(everywhere()).toEqual([]);
  });

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
