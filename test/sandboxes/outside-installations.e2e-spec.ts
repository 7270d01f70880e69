import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import { RepositoryAccessService } from '../../src/git-providers/repository-access.service.js';
import {
  AgentInputsReader,
  mcpServerEntries,
} from '../../src/v1/app-conversations/agent-request/agent-inputs.reader.js';
import { GitAccessReader } from '../../src/v1/app-conversations/agent-request/git-access.reader.js';
import { OutsideCredentials } from '../../src/v1/app-conversations/outside-credentials/outside-credentials.js';
import type { RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { githubApp } from '../support/github-app.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';

const REPOSITORY = 'octo/app';
const ADDRESS = 'https://github.com/octo/app.git';
const MINUTE_MS = 60_000;

describe('a sandbox that works by an installation of the GitHub App', () => {
  const backend = new InProcessSandboxBackend();
  const { app: github, environment } = githubApp();
  const { hosts, app } = useGitHosts(
    {
      ...environment,
      GITHUB_CLONE_URL: 'https://github.com',
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_NETWORK: 'isolated',
    },
    { sandboxBackend: backend },
  );
  let owner: TestUser;
  let target: RunningSandbox;

  beforeAll(() => {
    hosts.worlds.github.app = github;
    github.now = () => app.clock.now();
  });
  beforeEach(async () => {
    hosts.clearFaults();
    owner = await app.createUser();
    await standIn();
    const { id } = await new SandboxesClient(app.url, owner).running();
    target = await runningSandbox(app, id);
  });

  const standIn = async (): Promise<void> => {
    const tokens = { provider_tokens: { github: { installation: true } } };
    await request(app.url).post('/api/add-git-providers').set(owner.headers).send(tokens).expect(200);
  };
  const outside = (): OutsideCredentials => app.app.get(OutsideCredentials, { strict: false });
  const injections = async (): Promise<EgressPolicy['injections']> =>
    (await egressPolicy(app, backend, target.sandboxId)).injections;
  const prepared = async (): Promise<string> => {
    const model = { profile: null, model: null };
    await outside().prepare(target, model, { work: { repository: REPOSITORY, provider: null } });
    const { credential } = await app.app
      .get(RepositoryAccessService, { strict: false })
      .cloneAccess(owner.id, null, REPOSITORY);
    return await (await outside().concealer(target)).text(credential?.password ?? '', [ADDRESS]);
  };

  it('holds a placeholder for the one repository, behind which the next token stands, and that which its user stores', async () => {
    const placeholder = await prepared();
    const token = [...github.issued.keys()].at(-1) ?? '';
    expect(token).toMatch(/^ghs_.{16}/);
    expect(placeholder).toMatch(/^ghs_/);
    expect(placeholder).not.toContain(token.slice(4));
    expect(await injections()).toEqual([
      expect.objectContaining({
        placeholder,
        value: token,
        hosts: expect.arrayContaining([{ host: 'github.com', paths: ['/octo/app.git/*', '/octo/app/*'] }]),
      }),
    ]);
    const paths = ['/api/settings', '/api/v1/secrets/search', `/api/v1/sandboxes?id=${target.sandboxId}`];
    for (const path of paths) {
      const { text } = await request(app.url).get(path).set(owner.headers).expect(200);
      expect(text).not.toMatch(/ghs_/);
    }

    const [first] = await injections();
    app.clock.advance(55 * MINUTE_MS);
    const [second] = await injections();
    expect(second).toMatchObject({ placeholder });
    expect(second?.value).toMatch(/^ghs_/);
    expect(second?.value).not.toBe(first?.value);
    expect(await prepared()).toBe(placeholder);

    await storeProviderToken(app, owner, 'github', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789');
    expect(await injections()).toMatchObject([
      { placeholder, value: 'ghp_abcdefghijklmnopqrstuvwxyz0123456789' },
    ]);
  });

  it('gets nothing once its user asks for that no more, may not, or the installation is suspended', async () => {
    await prepared();
    expect(await injections()).toHaveLength(1);
    await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [owner.id]);
    expect(await injections()).toEqual([]);
    await app.dataSource.query('UPDATE users SET reads_only = false WHERE id = $1', [owner.id]);
    expect(await injections()).toHaveLength(1);
    Object.assign(github.installations[0] ?? {}, { isSuspended: true });
    app.clock.advance(61 * MINUTE_MS);
    expect(await injections()).toEqual([]);
    Object.assign(github.installations[0] ?? {}, { isSuspended: false });
    app.clock.advance(MINUTE_MS);
    expect(await injections()).toHaveLength(1);
    await request(app.url).post('/api/unset-provider-tokens').set(owner.headers).expect(200);
    expect(await injections()).toEqual([]);
  });

  it('gives its agent a credential for its repository alone, and the same as GITHUB_TOKEN', async () => {
    const inputs = app.app.get(AgentInputsReader, { strict: false });
    const configuration = await inputs.readConfiguration(owner.id, null);
    const work = { repository: REPOSITORY, provider: null };
    const grants = { startId: 'a', own: [], limits: {}, maxBudget: null };
    const { secrets, credentials, settings } = await inputs.read(
      owner.id,
      configuration,
      grants as never,
      work,
    );
    const use = { userId: owner.id, ...work, limits: {} };
    const git = await app.app.get(GitAccessReader, { strict: false }).read(use, settings, credentials);
    expect(git.credentials).toMatchObject([{ origin: 'https://github.com', username: 'x-access-token' }]);
    expect(github.issued.get(git.credentials[0]?.password ?? '')?.repositories).toEqual(['app']);
    expect(secrets.get('GITHUB_TOKEN')?.value).toBe(git.credentials[0]?.password);
    expect(
      (await inputs.read(owner.id, configuration, grants as never, null)).secrets.has('GITHUB_TOKEN'),
    ).toBe(false);
  });

  it('has no token in clear in a tool server that names GITHUB_TOKEN, by a header or in its environment', async () => {
    const reference = '${secret:GITHUB_TOKEN}';
    const mcp_config = {
      sse_servers: [],
      shttp_servers: [{ name: 'far', url: 'https://mcp.example.com/mcp', api_key: reference }],
      stdio_servers: [{ name: 'near', command: 'mcp', args: [reference], env: { TOKEN: reference } }],
    };
    await request(app.url).post('/api/settings').set(owner.headers).send({ mcp_config }).expect(200);
    const inputs = app.app.get(AgentInputsReader, { strict: false });
    const work = { repository: REPOSITORY, provider: null };
    const grants = { startId: null, own: [], limits: {}, maxBudget: null };
    const configuration = await inputs.readConfiguration(owner.id, null);
    const { mcpConfig } = await inputs.read(owner.id, configuration, grants as never, work);
    const servers = mcpServerEntries(mcpConfig);
    const [token = ''] = [...github.issued.keys()].filter((each) => JSON.stringify(servers).includes(each));
    expect(token).toMatch(/^ghs_/);

    const concealer = await outside().concealer(target);
    const shown = JSON.stringify(await concealer.update({ mcp_config: servers }));
    expect(shown).not.toContain(token);
    const [injection] = await injections();
    expect(shown.split(injection?.placeholder ?? '-')).toHaveLength(4);
  });
});
