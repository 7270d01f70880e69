import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { injectionsFor } from '@slipway/egress-proxy/decision.js';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import type { RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import { OutsideCredentials } from '../../src/v1/app-conversations/outside-credentials/outside-credentials.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { egressPolicy } from '../support/egress-policy.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { githubApp } from '../support/github-app.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';

const TOKEN = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789';
const START = '/api/v1/app-conversations';

describe('other repositories that a sandbox may read', () => {
  const backend = new InProcessSandboxBackend();
  const { app: github, environment } = githubApp();
  const { hosts, app } = useGitHosts(
    {
      ...environment,
      GITHUB_CLONE_URL: 'https://github.com',
      GITLAB_CLONE_URL: 'https://gitlab.com',
      GITLAB_API_URL: 'https://gitlab.com/api',
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_NETWORK: 'isolated',
      SANDBOX_REPOSITORIES_READ: 'github:octo/*,gitlab:group/*',
    },
    { sandboxBackend: backend },
  );

  beforeAll(() => {
    hosts.worlds.github.app = github;
    github.now = () => app.clock.now();
  });

  const settings = (user: TestUser, members: object): Promise<void> =>
    new StartsClient(app, user).settings(members);
  const member = async (): Promise<TestUser> => {
    const user = await app.createUser();
    await settings(user, { llm_model: 'openai/m', llm_api_key: 'sk-abcdefghijklmnop' });
    return user;
  };
  const begun = async (user: TestUser, given: object): Promise<RunningSandbox> => {
    const { id } = await new SandboxesClient(app.url, user).running();
    const sandbox = await runningSandbox(app, id);
    const starts = new StartsClient(app, user);
    await starts.reached(await starts.start({ sandbox_id: sandbox.sandboxId, ...given }), 'READY');
    return sandbox;
  };
  const policy = async ({ sandboxId }: RunningSandbox): Promise<EgressPolicy> =>
    await egressPolicy(app, backend, sandboxId);
  /** Values that go towards a request. */
  const towards = async (sandbox: RunningSandbox, method: string, address: string): Promise<string[]> => {
    const { hostname: host, pathname, search } = new URL(address);
    const target = { host, port: 443, isTls: true, isAddress: false };
    const asked = { target, method, path: `${pathname}${search}` };
    return injectionsFor(await policy(sandbox), asked).map(({ value }) => value);
  };

  const REQUESTS: [string, string, string, boolean][] = [
    ['a clone', 'GET', 'https://github.com/octo/lib.git/info/refs?service=git-upload-pack', true],
    ['what a clone fetches', 'POST', 'https://github.com/octo/lib.git/git-upload-pack', true],
    ['an archive', 'GET', 'https://github.com/octo/lib/archive/main.tar.gz', true],
    ['an archive of the API', 'GET', 'https://codeload.github.com/octo/lib/legacy.tar.gz/main', true],
    ['a file', 'GET', 'https://raw.githubusercontent.com/octo/lib/main/a', true],
    ['a package', 'GET', 'https://npm.pkg.github.com/@octo/lib', true],
    [
      'the beginning of a push',
      'GET',
      'https://github.com/octo/lib.git/info/refs?service=git-receive-pack',
      false,
    ],
    ['a push', 'POST', 'https://github.com/octo/lib.git/git-receive-pack', false],
    ['an upload to LFS', 'POST', 'https://github.com/octo/lib.git/info/lfs/objects/batch', false],
    ['a package that is published', 'PUT', 'https://npm.pkg.github.com/@octo/lib', false],
    [
      'a clone of another owner',
      'GET',
      'https://github.com/octopus/lib.git/info/refs?service=git-upload-pack',
      false,
    ],
    ['a gist', 'GET', 'https://gist.github.com/octo/1.git/info/refs?service=git-upload-pack', false],
  ];

  it('are read, and nothing else, with the token of the user', async () => {
    const user = await member();
    await storeProviderToken(app, user, 'github', TOKEN);
    const sandbox = await begun(user, { repositories_read: ['github:octo/*'] });
    for (const [what, method, address, isGiven] of REQUESTS) {
      const values = await towards(sandbox, method, address);
      expect([what, values]).toEqual([what, isGiven ? [TOKEN] : []]);
    }
  });

  it('are those of the settings where a start says none, while they say so', async () => {
    const user = await member();
    await storeProviderToken(app, user, 'github', TOKEN);
    const lib = 'https://github.com/octo/lib.git/git-upload-pack';
    await settings(user, { repositories_read: ['github:octo/lib'] });
    const sandbox = await begun(user, {});
    expect(await towards(sandbox, 'POST', lib)).toEqual([TOKEN]);
    expect(await towards(sandbox, 'POST', lib.replace('lib.git', 'lib2.git'))).toEqual([]);
    await settings(user, { repositories_read: null });
    expect(await towards(sandbox, 'POST', lib)).toEqual([]);
    const other = await begun(user, { repositories_read: ['github:octo/other'] });
    await settings(user, { repositories_read: ['github:octo/lib'] });
    expect(await towards(other, 'POST', lib)).toEqual([]);
  });

  it('are no more once the conversation is deleted whose start said so, and another goes on there', async () => {
    const user = await member();
    await storeProviderToken(app, user, 'github', TOKEN);
    await settings(user, { repositories_read: ['github:octo/lib'] });
    const lib = 'https://github.com/octo/lib.git/git-upload-pack';
    const sandbox = await begun(user, { repositories_read: [] });
    const [begunHere] = await new StartsClient(app, user).conversations();
    await new ConversationRows(app).conversation(user.id, { sandboxId: sandbox.sandboxId });
    expect(await towards(sandbox, 'POST', lib)).toEqual([]);

    await request(app.url).delete(`${START}/${begunHere?.id}`).set(user.headers).expect(200);
    expect(await towards(sandbox, 'POST', lib)).toEqual([]);
  });

  it('are read by a token of the App that can do nothing else', async () => {
    const user = await member();
    const tokens = { provider_tokens: { github: { installation: true } } };
    await request(app.url).post('/api/add-git-providers').set(user.headers).send(tokens).expect(200);
    const sandbox = await begun(user, { repositories_read: ['github:octo/*'] });
    const work = { repository: 'octo/app', provider: null };
    const model = { profile: null, model: null };
    await app.app.get(OutsideCredentials, { strict: false }).prepare(sandbox, model, { work });
    const permissionsOf = async (method: string, address: string): Promise<unknown[]> =>
      (await towards(sandbox, method, address)).map((token) => github.issued.get(token)?.permissions);
    const lib = 'https://github.com/octo/lib.git';
    const [reading] = await permissionsOf('POST', `${lib}/git-upload-pack`);
    expect(reading).toEqual({ contents: 'read', metadata: 'read', packages: 'read' });
    expect(await permissionsOf('POST', `${lib}/git-receive-pack`)).toEqual([]);
    const [own] = await permissionsOf('POST', 'https://github.com/octo/app.git/git-receive-pack');
    expect(own).toMatchObject({ contents: 'write' });
    // The one that is put in is the first.
    const [first] = await permissionsOf('POST', 'https://github.com/octo/app.git/git-upload-pack');
    expect(first).toMatchObject({ contents: 'write' });
  });

  it.each([
    ['beyond what the operator allows', ['github:strange/app']],
    ['more than the operator allows', ['gitlab:group']],
    ['all of a host', ['github:*']],
    ['a place that climbs', ['github:octo/..']],
    ['another provider', ['gitea:octo/*']],
    ['a provider without a token', ['gitlab:group/lib']],
  ])('are never %s: 422', async (_what, list) => {
    const user = await member();
    await storeProviderToken(app, user, 'github', TOKEN);
    const { status, body } = await request(app.url)
      .post(START)
      .set(user.headers)
      .send({ repositories_read: list });
    expect([status, JSON.stringify(body)]).toEqual([422, expect.stringMatching(/repositories_read/)]);
  });

  it('are no more than the settings may say', async () => {
    const user = await member();
    const send = async (list: string[]): Promise<number> =>
      (await request(app.url).post('/api/settings').set(user.headers).send({ repositories_read: list }))
        .status;
    expect([await send(['github:strange/app']), await send(['nothing'])]).toEqual([422, 422]);
  });
});
