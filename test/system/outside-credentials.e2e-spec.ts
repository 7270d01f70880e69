import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RemoteMcpServer } from '../../packages/agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import { call, say as answer } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import {
  type ProcessHarness,
  processHarness,
} from '../../packages/sandboxes/src/process/process.sandbox-backend.harness.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { filesWith } from '../support/files-with.js';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../support/isolated-processes.js';
import { foundInMemory, processesWith } from '../support/process-memory.js';
import { reservedPort } from '../support/reserved-port.js';
import { SandboxClient } from '../support/sandbox-client.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { say, StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

const run = promisify(execFile);
const canRun = OWN_ADDRESS !== undefined && hasIsolatedProcesses();

const TOKEN = 'ghp_0utside0utside0utside0utside0utside9';
const KEY = 'sk-0utside0utside0utside9';
const VALUE = 'pay-s3cr3t-0utside-0utside-01';
const NEW_VALUE = 'pay-s3cr3t-0utside-0utside-02';
const TOOL_KEY = 'mcp-k3y-0utside-0utside-0utside';
const SEARCH_KEY = 'tvly-0utside0utside0utside0utside';
const VALUES = [TOKEN, KEY, VALUE, TOOL_KEY, SEARCH_KEY];
const WORK = 'cp README.md copy.txt && git add copy.txt && git commit -qm copy && git push -q origin HEAD';

interface Seen {
  url: string | undefined;
  authorization: string | undefined;
}

(canRun ? describe : describe.skip)('a conversation whose credentials stay outside of its sandbox', () => {
  const host = String(OWN_ADDRESS);
  let harness: ProcessHarness;
  let git: GitHttpServer;
  let llm: ScriptedLlm;
  let environment: Record<string, string>;
  let database: TestDatabase;
  let restored: TestDatabase | undefined;
  let app: TestApp;
  let owner: TestUser;
  let client: StartsClient;
  let id: string;
  let sandboxId: string;
  let other: string;
  let warm: Awaited<ReturnType<typeof warmProxy>> = null;
  let asked: string;
  let tools: RemoteMcpServer;
  let origin: string;
  let elsewhere: string;
  let events: string;
  let payKey: string;
  const seen: Seen[] = [];
  const listen = () =>
    createServer(async (request, response) => {
      const { url, headers } = request;
      const { authorization } = headers;
      seen.push({ url, authorization });
      const body = await text(request);
      if (url === '/search') {
        response.end(JSON.stringify({ results: [] }));
      } else {
        response.setHeader('X-Echo', String(authorization)).end(`${authorization} ${body}`);
      }
    });
  const servers = [listen(), listen()] as const;

  const keys = (): (string | undefined)[] => llm.requests.map(({ headers }) => headers['authorization']);
  const inside = async (of = sandboxId): Promise<SandboxClient> => {
    const target = await app.app.get(RunningSandboxQueries, { strict: false }).target(of);
    return new SandboxClient(target?.address ?? '', target?.sessionKey ?? '');
  };
  const placeholder = async (of = sandboxId): Promise<string> => {
    const rows: { placeholder: string }[] = await app.dataSource.query(
      `SELECT placeholder FROM sandbox_placeholders WHERE sandbox_id = $1 AND source LIKE '%"git"%'`,
      [of],
    );
    return rows[0]?.placeholder ?? '';
  };
  const keyOf = async (of: string): Promise<string> =>
    (await app.app.get(RunningSandboxQueries, { strict: false }).target(of))?.sessionKey ?? '';
  const serve = async ({ url }: TestDatabase): Promise<TestApp> =>
    await createTestApp(environment, url, { sandboxBackend: await harness.reopen(), ownClock: true });
  const ask = async (route: string, method: string, body?: object): Promise<Response> =>
    fetch(`${app.url}${route}`, {
      method,
      headers: { ...owner.headers, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  /** The key by which the model is called next. */
  const keyOfNextCall = async (work: () => Promise<unknown>): Promise<string | undefined> => {
    const before = llm.requests.length;
    await work();
    await until(() => llm.requests.length > before);
    return keys().at(-1);
  };
  const send = async (words: string): Promise<void> => {
    const message = { content: [{ type: 'text', text: words }], run: true };
    expect((await ask(`/api/v1/app-conversations/${id}/send-message`, 'POST', message)).status).toBe(200);
  };

  beforeAll(async () => {
    git = await startGitHttpServer(`x-access-token:${TOKEN}`, host);
    await git.commit('octo/app', 'main', { 'README.md': 'hello' });
    const [port, otherPort] = await Promise.all(servers.map((server) => startListening(server, 0, host)));
    origin = `http://${host}:${port}`;
    elsewhere = `http://${host}:${otherPort}`;
    tools = await RemoteMcpServer.start(host);
    const pay = `curl -sS -m 20 -i -H "Authorization: Bearer $PAY_KEY" ${origin}/v1/pay; echo "$PAY_KEY" > kept.txt`;
    const script = inOrder(
      call('terminal', { command: WORK }),
      call('terminal', { command: pay }),
      call('web_search', { query: 'anything' }),
      call('add', { a: 1, b: 2 }),
      answer('It is paid.'),
    );
    llm = await ScriptedLlm.start(script, { host });
    harness = await processHarness('bwrap', { network: { mode: 'isolated', allow: [] } });
    environment = {
      GITHUB_CLONE_URL: git.origin,
      ALLOW_UNSANDBOXED: 'true',
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_EGRESS_PORT: String(await reservedPort()),
      SANDBOX_NETWORK_ALLOW: `${host}/32`,
      SANDBOX_WARM: '1',
      TAVILY_API_URL: origin,
    };
    database = await createTestDatabase();
    app = await serve(database);
    owner = app.user;
    client = new StartsClient(app, owner);
    await client.settings({
      llm_model: 'openai/scripted',
      llm_api_key: KEY,
      llm_base_url: llm.url,
      search_api_key: SEARCH_KEY,
      mcp_config: { shttp_servers: [{ url: tools.httpUrl, api_key: TOOL_KEY }] },
    });
    const rule = { hosts: [origin], methods: ['GET'], paths: ['/v1/*'] };
    await ask('/api/v1/secrets', 'POST', { name: 'PAY_KEY', value: VALUE, ...rule });
    await storeProviderToken(app, owner, 'github', TOKEN);
    await until(async () => (warm = await warmProxy()) !== null);
    asked = await throughProxy(warm?.address ?? '');
    const task = await client.start({
      selected_repository: 'octo/app',
      ...say('Copy the readme, pay, and search.'),
    });
    ({ appConversationId: id } = await client.reached(task, 'READY'));
    sandboxId = (await client.sandboxes())[0]?.id ?? '';
    await until(async () => {
      const log = await ask(`/api/v1/conversation/${id}/events/search?limit=100`, 'GET');
      events = await log.text();
      return events.includes('It is paid.');
    });
    const shown = await fetch(`${app.url}/api/v1/sandboxes/${sandboxId}/settings/secrets/PAY_KEY`, {
      headers: { 'X-Session-API-Key': await keyOf(sandboxId) },
    });
    payKey = await shown.text();
  });

  afterAll(async () => {
    await app.close();
    await Promise.all([database.drop(), restored?.drop()]);
    await llm.close();
    await git.close();
    await tools.close();
    await Promise.all(servers.map(stopServer));
    await harness.close();
  });

  /** The sandbox that is kept warm, and the address of its proxy, as programs in it see them. */
  async function warmProxy(): Promise<{ id: string; address: string } | null> {
    const rows: { id: string }[] = await app.dataSource.query(
      "SELECT id FROM warm_sandboxes WHERE status = 'READY'",
    );
    const of = rows[0]?.id ?? '';
    const [pid] =
      of === '' ? [] : await processesWith(`SLIPWAY_SANDBOX=${harness.options.instanceId}/${of}/`);
    const environment = pid === undefined ? '' : await readFile(`/proc/${pid}/environ`, 'utf8');
    const [, address] = /(?:^|\0)HTTPS_PROXY=([^\0]+)/.exec(environment) ?? [];
    return address === undefined ? null : { id: of, address };
  }

  /** What a program of the sandbox would get of the git host. */
  async function throughProxy(address: string): Promise<string> {
    const { stdout } = await run('curl', ['-sS', '-D', '-', '-m', '20', '-x', address, git.origin]);
    return stdout;
  }

  it('was warm before, where it reached nothing, and is let through at once', async () => {
    expect(asked).toMatch(/^HTTP\/1\.1 403 [^]*X-Slipway-Egress: denied/);
    expect(warm?.id).toBe(sandboxId);
    expect(await throughProxy(warm?.address ?? '')).not.toMatch(/X-Slipway-Egress/i);
  });

  it('clones, pushes and calls the model by them', async () => {
    const branch = `openhands-workspace-${id.slice(0, 8)}`;
    expect(await git.show('octo/app', branch, '%s')).toBe('copy');
    expect(new Set(keys())).toEqual(new Set([`Bearer ${KEY}`]));
  });

  it('has its secret, and the keys of search and tool server, put in where its agent uses them', () => {
    expect(seen.find(({ url }) => url === '/v1/pay')?.authorization).toBe(`Bearer ${VALUE}`);
    expect(seen.find(({ url }) => url === '/search')?.authorization).toBe(`Bearer ${SEARCH_KEY}`);
    const sent = new Set(tools.requests.map(({ headers }) => headers['authorization']));
    expect(sent).toEqual(new Set([`Bearer ${TOOL_KEY}`]));
  });

  it('has placeholders of their form, and no credential in its files, environments, memory and events, though a host repeats it', async () => {
    const shown = await placeholder();
    expect(shown).toMatch(/^ghp_\w{36}$/);
    expect(payKey).toHaveLength(VALUE.length);
    const pids = await processesWith(`SLIPWAY_SANDBOX=${harness.options.instanceId}/${sandboxId}/`);
    expect(await foundInMemory(pids, [...VALUES, shown, payKey])).toEqual([shown, payKey]);
    expect(await filesWith(harness.options.folder, VALUES)).toEqual([]);
    expect(events).toContain('X-Echo');
    expect(VALUES.filter((value) => events.includes(value))).toEqual([]);
  });

  it('goes on with another value of its secret and another host within seconds, and ends with the secret', async () => {
    const sandbox = await inside();
    const sent = async (to: string): Promise<string | undefined> => {
      const before = seen.length;
      await sandbox.run(`curl -sS -m 20 -H 'Authorization: Bearer ${payKey}' ${to}/v1/pay`);
      expect(seen.length).toBeGreaterThan(before);
      return seen.at(-1)?.authorization;
    };
    const path = '/api/v1/secrets/PAY_KEY';
    await ask(path, 'PUT', { name: 'PAY_KEY', value: NEW_VALUE });
    await until(async () => (await sent(origin)) === `Bearer ${NEW_VALUE}`);
    await ask(path, 'PUT', { name: 'PAY_KEY', hosts: [elsewhere] });
    await until(async () => (await sent(elsewhere)) === `Bearer ${NEW_VALUE}`);
    expect(await sent(origin)).toBe(`Bearer ${payKey}`);
    await ask(path, 'DELETE');
    await until(async () => (await sent(elsewhere)) === `Bearer ${payKey}`);
  });

  it('has nothing that pushes where the conversation may only read', async () => {
    const task = await client.start({ selected_repository: 'octo/app', git: 'read', sandbox_id: null });
    other = (await client.reached(task, 'READY')).sandboxId ?? '';
    expect(other).not.toBe(sandboxId);
    const sandbox = await inside(other);
    const shown = await placeholder(other);
    expect(shown).toMatch(/^ghp_\w{36}$/);
    const push =
      'cd "$(dirname "$(find . -name README.md | head -n 1)")" && git commit -q --allow-empty -m x && git push origin HEAD:main';
    const { exitCode, stderr } = await sandbox.run(push);
    expect([exitCode, stderr]).toEqual([128, expect.stringMatching(/username|authentication/i)]);
    const search = `env; cat /proc/[0-9]*/environ; grep -rsF -e '${shown.slice(0, 20)}' "$HOME" . /tmp`;
    const found = await sandbox.run(search);
    expect(`${found.stdout}${found.stderr}`).not.toContain(shown);
    const { status } = await fetch(`${app.url}/api/v1/sandboxes/${other}/settings/secrets/GITHUB_TOKEN`, {
      headers: { 'X-Session-API-Key': await keyOf(other) },
    });
    expect(status).toBe(404);
  });

  it('goes on after a stop', async () => {
    const sandboxes = new SandboxesClient(app.url, owner);
    await sandboxes.pause(sandboxId);
    await sandboxes.reach(sandboxId, 'PAUSED');
    await sandboxes.resume(sandboxId);
    await sandboxes.reach(sandboxId, 'RUNNING');
    expect(await keyOfNextCall(async () => send('Go on after the stop.'))).toBe(`Bearer ${KEY}`);
  });

  it('serves conversations that begin there later', async () => {
    const begin = async (): Promise<void> => {
      const task = await client.start({ parent_conversation_id: id, ...say('Go on here.') });
      expect((await client.reached(task, 'READY')).sandboxId).toBe(sandboxId);
    };
    expect(await keyOfNextCall(begin)).toBe(`Bearer ${KEY}`);
  });

  it('goes on when another replica takes over, which has a proxy of its own', async () => {
    const first = app;
    app = await serve(database);
    await first.close();
    expect(await keyOfNextCall(async () => send('Go on elsewhere.'))).toBe(`Bearer ${KEY}`);
  });

  it('goes on where the database is a restored backup, as does one that was paused in it', async () => {
    const sandboxes = new SandboxesClient(app.url, owner);
    await sandboxes.pause(other);
    await sandboxes.reach(other, 'PAUSED');
    await app.close();
    restored = await createTestDatabase(database);
    app = await serve(restored);
    client = new StartsClient(app, owner);
    expect(await keyOfNextCall(async () => send('Go on as restored.'))).toBe(`Bearer ${KEY}`);
    const resumed = async (): Promise<void> => {
      const task = await client.start({ sandbox_id: other, ...say('Go on after that.') });
      await client.reached(task, 'READY');
    };
    expect(await keyOfNextCall(resumed)).toBe(`Bearer ${KEY}`);
  });
});
