import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
import { OutsideCredentials } from '../../src/v1/app-conversations/outside-credentials/outside-credentials.js';
import type { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import type { RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { builtRequest } from '../support/built-request.js';
import type { TestUser } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { StartsClient } from '../support/starts-client.js';
import { useTestApp } from '../support/use-test-app.js';

const backend = new InProcessSandboxBackend();
let folder: string;
let specs: string;
// The backend runs commands on this machine, where the usual folder would be left behind.
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'stock-'));
  specs = path.join(folder, 'specs.json');
  const command = ['python3', '-m', 'openhands.agent_server'];
  const stock = {
    id: 'stock',
    agent_server: 'openhands',
    command,
    working_dir: path.join(folder, 'project'),
  };
  await writeFile(specs, JSON.stringify([stock]));
});
afterAll(async () => rm(folder, { recursive: true }));

const KEY = 'sk-ofthemodel0123456789abcd';
const SECRET = 'sk_live_0123456789abcdefghij';
const TOOL = 'lin_api_0123456789abcdef';

describe('a stock agent server whose credentials stay outside', () => {
  const app = useTestApp(
    () => ({ SANDBOX_CREDENTIALS: 'outside', SANDBOX_NETWORK: 'isolated', SANDBOX_SPECS_FILE: specs }),
    { sandboxBackend: backend },
  );
  let owner: TestUser;

  const post = async (route: string, body: object): Promise<void> => {
    const { status } = await request(app.url).post(route).set(owner.headers).send(body);
    expect([200, 201]).toContain(status);
  };
  const started = async (): Promise<{ task: StartTask; target: RunningSandbox }> => {
    const starts = new StartsClient(app, owner);
    const task = await starts.reached(await starts.start(), 'READY');
    return { task, target: await runningSandbox(app, task.sandboxId) };
  };
  const sentTo = async (target: RunningSandbox): Promise<string> => {
    const outside = app.app.get(OutsideCredentials, { strict: false });
    const shown = outside.shownSecrets(target);
    const built = await builtRequest(app, owner, { dialect: 'stock', shown });
    const concealer = await outside.concealer(target, { profile: null, model: null, stock: true });
    return built.problem === null ? JSON.stringify(await concealer.start(built.body)) : built.problem;
  };
  const placesOf = (all: readonly EgressInjection[], value: string): unknown =>
    all.filter((each) => each.value === value).map(({ hosts }) => hosts);

  beforeEach(async () => {
    owner = await app.createUser();
    await post('/api/v1/secrets', { name: 'STRIPE_KEY', value: SECRET, hosts: ['api.stripe.com'] });
    await post('/api/settings', {
      llm_model: 'gemini/gemini-pro',
      llm_api_key: KEY,
      mcp_config: { shttp_servers: [{ url: 'https://linear.example/mcp', api_key: TOOL }] },
    });
  });

  it('has placeholders, also where its condenser has a model, and their values go where they are for', async () => {
    const { task, target } = await started();
    expect(task.notes.join()).not.toContain('in clear');
    expect(backend.boxes.get(target.sandboxId)?.launch.egress).toMatchObject({
      authority: expect.stringContaining('BEGIN CERTIFICATE'),
    });
    const sent = await sentTo(target);
    for (const value of [KEY, SECRET, TOOL]) {
      expect(sent).not.toContain(value);
    }
    const { injections } = await egressPolicy(app, backend, target.sandboxId);
    const { placeholder = '' } = injections.find(({ value }) => value === KEY) ?? {};
    expect(sent.split(`"api_key":"${placeholder}"`)).toHaveLength(3);
    // Its own paths of the provider, not those of ours.
    expect(placesOf(injections, KEY)).toEqual([
      [{ host: 'generativelanguage.googleapis.com', paths: ['/*'] }],
    ]);
    expect(placesOf(injections, SECRET)).toEqual([[{ host: 'api.stripe.com' }]]);
    expect(placesOf(injections, TOOL)).toEqual([[{ host: 'linear.example', paths: ['/mcp', '/mcp/*'] }]]);
  });

  it('has its model called below the address of the settings', async () => {
    await post('/api/settings', { llm_model: 'custom/m', llm_base_url: 'https://models.example/llm' });
    const { target } = await started();
    expect(await sentTo(target)).not.toContain(KEY);
    const { injections } = await egressPolicy(app, backend, target.sandboxId);
    expect(JSON.stringify(placesOf(injections, KEY))).toContain(
      '{"host":"models.example","paths":["/llm/*"]}',
    );
  });

  it('has the key in clear where it alone knows which host that goes to, and the start says so', async () => {
    await post('/api/settings', { llm_model: 'bedrock/m' });
    const { task, target } = await started();
    expect(task.notes.join()).toContain('The key of bedrock/m is in the sandbox, in clear');
    expect(await sentTo(target)).toContain(KEY);
    const { injections } = await egressPolicy(app, backend, target.sandboxId);
    expect(placesOf(injections, KEY)).toEqual([]);
  });
});
