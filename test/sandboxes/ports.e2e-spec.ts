import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import type { SandboxDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { RawServer } from '../support/raw-server.js';
import { insertReachableSandbox } from '../support/sandbox-rows.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { useTestApp } from '../support/use-test-app.js';

const ID = 'Port5OfASandbox';
const app = useTestApp();
let agentServer: RawServer;
/** What it says of its ports. */
let told: { status: number; body: string };
let asked: string[];

beforeAll(async () => {
  agentServer = await RawServer.start(({ url = '' }, response) => {
    asked.push(url);
    response.writeHead(told.status, { 'content-type': 'application/json' }).end(told.body);
  });
});

afterEach(async () => {
  await app.dataSource.getRepository(Sandbox).delete({ userId: app.user.id });
});

afterAll(() => agentServer.close());

async function list(
  body: unknown,
  { status = 200, row = {} }: { status?: number; row?: Partial<Pick<Sandbox, 'status'>> } = {},
): Promise<unknown> {
  told = { status, body: typeof body === 'string' ? body : JSON.stringify(body) };
  asked = [];
  const addresses = { WORKER_1: 'http://127.0.0.1:1', WORKER_2: 'http://127.0.0.1:2' };
  const portAddresses = { generation: 0, addresses };
  await insertReachableSandbox(app, { id: ID, key: 'k', address: agentServer.origin, portAddresses, ...row });
  return (await new SandboxesClient(app.url, app.user).call('GET', `/${ID}/ports`)).body;
}

it('lists the links of exposed_urls, and whether something listens behind each', async () => {
  const ports = await list({ listening: ['WORKER_2'] });
  const sandbox = await new SandboxesClient(app.url, app.user).get(ID);
  const [, one, two] = (sandbox as SandboxDto).exposed_urls ?? [];

  expect(ports).toEqual([
    { name: 'WORKER_1', url: one?.url, listening: false },
    { name: 'WORKER_2', url: two?.url, listening: true },
  ]);
  expect(asked).toEqual(['/api/ports?names=WORKER_1%2CWORKER_2']);
});

it.each<[string, unknown, number, boolean | null]>([
  ['what is no list', { listening: 'WORKER_1' }, 200, false],
  ['names that were not asked for, and what is no name', { listening: ['OTHER', null, {}, 1] }, 200, false],
  ['another document', [1, 2], 200, false],
  ['no JSON', '<html>', 200, null],
  ['that it knows no such address, as the stock one', {}, 404, null],
  ['a failure', {}, 500, null],
  ['nothing but a redirect', {}, 302, null],
])('an agent server that answers %s harms nothing', async (_, body, status, listening) => {
  expect(await list(body, { status })).toMatchObject([{ listening }, { listening }]);
});

it('lists none of a sandbox that does not run, and asks nobody', async () => {
  expect(await list({ listening: ['WORKER_1'] }, { row: { status: 'PAUSED' } })).toEqual([]);
  expect(asked).toEqual([]);
});
