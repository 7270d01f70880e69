import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RemoteMcpServer } from '../../packages/agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import { call, say as answer } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import {
  type ProcessHarness,
  processHarness,
} from '../../packages/sandboxes/src/process/process.sandbox-backend.harness.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { filesWith } from '../support/files-with.js';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../support/isolated-processes.js';
import { foundInMemory, processesWith } from '../support/process-memory.js';
import { reservedPort } from '../support/reserved-port.js';
import { SandboxClient } from '../support/sandbox-client.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';

const canRun = OWN_ADDRESS !== undefined && hasIsolatedProcesses();

const VALUE = 'pay-s3cr3t-0utside-0utside-01';
const NEW_VALUE = 'pay-s3cr3t-0utside-0utside-02';
const TOOL_KEY = 'mcp-k3y-0utside-0utside-0utside';
const SEARCH_KEY = 'tvly-0utside0utside0utside0utside';
const CURL = 'curl -sS -m 20';

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: Record<string, unknown>;
  body: string;
}

(canRun ? describe : describe.skip)('a sandbox whose secrets with hosts stay outside', () => {
  const host = String(OWN_ADDRESS);
  const seen: Seen[] = [];
  let origin: string;
  let elsewhere: string;
  let harness: ProcessHarness;
  let llm: ScriptedLlm;
  let tools: RemoteMcpServer;
  let app: TestApp;
  let sandboxId: string;
  let sandbox: SandboxClient;
  let shown: string;
  let events: string;

  const listen = () =>
    createServer(async (request, response) => {
      const { method, url, headers } = request;
      const body = await text(request);
      seen.push({ method, url, headers, body });
      if (url === '/v1/redirect') {
        response.writeHead(302, { location: `${elsewhere}/caught` }).end();
      } else if (url === '/search') {
        response.end(JSON.stringify({ results: [] }));
      } else {
        response.setHeader('X-Echo', String(headers.authorization)).end(`${headers.authorization} ${body}`);
      }
    });
  const servers = [listen(), listen()] as const;
  const ask = async (route: string, method: string, body?: object): Promise<Response> =>
    fetch(`${app.url}${route}`, {
      method,
      headers: { ...app.user.headers, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  /** What the host was sent by this command alone. */
  const sentBy = async (command: string): Promise<Seen> => {
    const before = seen.length;
    const { exitCode, stderr } = await sandbox.run(`${CURL} ${command}`);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(seen.length).toBeGreaterThan(before);
    const [last] = seen.slice(-1);
    return last ?? { method: '', url: '', headers: {}, body: '' };
  };

  beforeAll(async () => {
    const [port, otherPort] = await Promise.all(servers.map((server) => startListening(server, 0, host)));
    origin = `http://${host}:${port}`;
    elsewhere = `http://${host}:${otherPort}`;
    tools = await RemoteMcpServer.start(host);
    const pay = `${CURL} -i -H "Authorization: Bearer $PAY_KEY" ${origin}/v1/pay; echo "$PAY_KEY" > kept.txt`;
    const script = inOrder(
      call('terminal', { command: pay }),
      call('web_search', { query: 'anything' }),
      call('add', { a: 1, b: 2 }),
      answer('It is paid.'),
    );
    llm = await ScriptedLlm.start(script, { host });
    harness = await processHarness('bwrap', { network: { mode: 'isolated', allow: [] } });
    app = await createTestApp(
      {
        ALLOW_UNSANDBOXED: 'true',
        SANDBOX_CREDENTIALS: 'outside',
        SANDBOX_EGRESS_PORT: String(await reservedPort()),
        SANDBOX_NETWORK_ALLOW: `${host}/32`,
        TAVILY_API_URL: origin,
      },
      undefined,
      { sandboxBackend: harness.backend, ownClock: true },
    );
    const client = new StartsClient(app, app.user);
    await client.settings({
      llm_model: 'openai/scripted',
      llm_api_key: 'sk-0utside0utside0utside9',
      llm_base_url: llm.url,
      search_api_key: SEARCH_KEY,
      mcp_config: { shttp_servers: [{ url: tools.httpUrl, api_key: TOOL_KEY }] },
    });
    const rule = { hosts: [origin], methods: ['GET'], paths: ['/v1/*'] };
    await ask('/api/v1/secrets', 'POST', { name: 'PAY_KEY', value: VALUE, ...rule });
    const task = await client.reached(await client.start(say('Pay, and search.')), 'READY');
    sandboxId = task.sandboxId ?? '';
    await until(async () => {
      const log = await ask(`/api/v1/conversation/${task.appConversationId}/events/search?limit=100`, 'GET');
      events = await log.text();
      return events.includes('It is paid.');
    });
    const target = await app.app.get(RunningSandboxQueries, { strict: false }).target(sandboxId);
    sandbox = new SandboxClient(target?.address ?? '', target?.sessionKey ?? '');
    const asked = await fetch(`${app.url}/api/v1/sandboxes/${sandboxId}/settings/secrets/PAY_KEY`, {
      headers: { 'X-Session-API-Key': target?.sessionKey ?? '' },
    });
    shown = await asked.text();
  });

  afterAll(async () => {
    await app.close();
    await llm.close();
    await tools.close();
    await Promise.all(servers.map(stopServer));
    await harness.close();
  });

  it('has them put in where its agent uses them: secret, search and tool server', () => {
    expect(seen.find(({ url }) => url === '/v1/pay')?.headers['authorization']).toBe(`Bearer ${VALUE}`);
    expect(seen.find(({ url }) => url === '/search')?.headers['authorization']).toBe(`Bearer ${SEARCH_KEY}`);
    const keys = new Set(tools.requests.map(({ headers }) => headers['authorization']));
    expect(keys).toEqual(new Set([`Bearer ${TOOL_KEY}`]));
  });

  it('has no value in events, though the host repeats it', () => {
    expect(events).toContain('X-Echo');
    for (const value of [VALUE, TOOL_KEY, SEARCH_KEY]) {
      expect(events).not.toContain(value);
    }
  });

  it('has a placeholder, and no value in its files, environments and memory', async () => {
    expect(shown).toHaveLength(VALUE.length);
    expect(shown).not.toBe(VALUE);
    const values = [VALUE, TOOL_KEY, SEARCH_KEY];
    const pids = await processesWith(`SLIPWAY_SANDBOX=${harness.options.instanceId}/${sandboxId}/`);
    expect(await foundInMemory(pids, [...values, shown])).toEqual([shown]);
    expect(await filesWith(harness.options.folder, values)).toEqual([]);
  });

  it('has the value put in inside Basic credentials too', async () => {
    const { headers } = await sentBy(`-u 'me:${shown}' ${origin}/v1/basic`);
    expect(headers['authorization']).toBe(`Basic ${Buffer.from(`me:${VALUE}`).toString('base64')}`);
  });

  it.each<[string, (placeholder: string) => string]>([
    ['another path', (key) => `-H 'Authorization: Bearer ${key}' ${origin}/v2/pay`],
    ['a path that climbs', (key) => `--path-as-is -H 'Authorization: Bearer ${key}' ${origin}/v1/../v2/pay`],
    ['a body', (key) => `-X GET -d '${key}' ${origin}/v1/pay`],
    ['another host', (key) => `-H 'Authorization: Bearer ${key}' ${elsewhere}/v1/pay`],
    [
      'a host after a redirect',
      (key) => `--location-trusted -H 'Authorization: Bearer ${key}' ${origin}/v1/redirect`,
    ],
  ])('sends the placeholder in %s', async (_what, command) => {
    const sent = JSON.stringify(await sentBy(command(shown)));
    expect(sent).toContain(shown);
    expect(sent).not.toContain(VALUE);
  });

  it('goes on with another value and another host within seconds, and ends with the secret', async () => {
    const sent = async (to: string): Promise<unknown> =>
      (await sentBy(`-H 'Authorization: Bearer ${shown}' ${to}/v1/pay`)).headers['authorization'];
    await ask('/api/v1/secrets/PAY_KEY', 'PUT', { name: 'PAY_KEY', value: NEW_VALUE });
    await until(async () => (await sent(origin)) === `Bearer ${NEW_VALUE}`);
    await ask('/api/v1/secrets/PAY_KEY', 'PUT', { name: 'PAY_KEY', hosts: [elsewhere] });
    await until(async () => (await sent(elsewhere)) === `Bearer ${NEW_VALUE}`);
    expect(await sent(origin)).toBe(`Bearer ${shown}`);
    await ask('/api/v1/secrets/PAY_KEY', 'DELETE');
    await until(async () => (await sent(elsewhere)) === `Bearer ${shown}`);
  });
});
