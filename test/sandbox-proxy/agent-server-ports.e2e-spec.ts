import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { AgentServerPorts } from '../../src/v1/sandbox-proxy/agent-server.ports.js';
import type { SandboxDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import { toAgentServerLabel } from '../../src/v1/sandboxes/sandbox-urls.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { startListening } from '../support/start-listening.js';
import { until } from '../support/until.js';

const TOOLS = '/api/tools';
/** How long the port of a removed sandbox says so. */
const GONE_MS = 60_000;

let machine: InProcessSandboxBackend;
let database: TestDatabase;
let first: TestApp;
let me: SandboxesClient;
const apps: TestApp[] = [];
const servers: Server[] = [];

beforeAll(async () => {
  machine = new InProcessSandboxBackend();
  first = await createTestApp(EXPOSE_PORTS, undefined, { sandboxBackend: machine });
  database = await createTestDatabase();
});

const EXPOSE_PORTS = {
  SANDBOX_EXPOSE: 'ports',
  MAX_RUNNING_SANDBOXES: '50',
  CORS_ORIGINS: 'https://app.example.com',
};

beforeEach(async () => {
  me = new SandboxesClient(first.url, await first.createUser());
});

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  servers.splice(0).forEach((server) => server.close());
});

afterAll(async () => {
  await first.close();
  await database.drop();
  await machine.close();
});

/** A replica of another service than the first one. All of its replicas are on the same machine. */
async function join(environment: Record<string, string> = {}): Promise<TestApp> {
  const app = await createTestApp({ ...EXPOSE_PORTS, ...environment }, database.url, {
    sandboxBackend: machine,
  });
  apps.push(app);
  return app;
}

async function client(app: TestApp): Promise<SandboxesClient> {
  return new SandboxesClient(app.url, await app.createUser());
}

function agentServer({ exposed_urls: urls }: SandboxDto): string {
  return jsonText(jsonList(urls)[0], 'url') ?? '';
}

function keyOf({ session_api_key: key }: SandboxDto): Record<string, string> {
  return { 'X-Session-API-Key': key ?? '' };
}

/** Whether a program of this machine can listen there. */
async function isFree(url: string): Promise<boolean> {
  const server = createServer();
  server.listen(Number(new URL(url).port), '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

async function statusAt(url: string, headers: Record<string, string>): Promise<number> {
  const outgoing = httpRequest(url, { headers, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

/** Waits for the 503: for up to a second after the pause, requests with the key may still reach the agent server. */
async function takesNoMore(url: string, headers: Record<string, string>): Promise<void> {
  await until(async () => (await statusAt(url, headers)) === 503);
}

async function refusalOf(socket: WebSocket): Promise<string> {
  const [error] = (await once(socket, 'error')) as [Error];
  return error.message;
}

describe('the port of a sandbox', () => {
  let owner: SandboxesClient;
  /** They run until the last test has ended. */
  let lasting: SandboxDto;
  let foreign: SandboxDto;

  beforeAll(async () => {
    owner = await client(first);
    [lasting, foreign] = await Promise.all([owner.running(), owner.running()]);
  });

  it('is an address without a path, and leads to its agent server', async () => {
    const url = agentServer(lasting);

    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:1[3-9]\d{3}$/);
    expect(jsonNumber(jsonList(lasting.exposed_urls)[0], 'port')).toBe(Number(new URL(url).port));
    const response = await fetch(`${url}${TOOLS}`, { headers: keyOf(lasting) });
    expect(response.status).toBe(200);
    expect(jsonList(await response.json())).toContain('terminal');
    const made = await fetch(`${url}/api/bash/execute_bash_command`, {
      method: 'POST',
      headers: { ...keyOf(lasting), 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'echo through the port' }),
    });
    expect(jsonText(await made.json(), 'stdout')).toBe('through the port\n');
  });

  it('forwards WebSockets, with the key in the query or in the header', async () => {
    const sockets = agentServer(lasting).replace('http', 'ws') + '/sockets/bash-events';
    for (const [query, headers] of [
      [`?session_api_key=${lasting.session_api_key}`, {}],
      ['', keyOf(lasting)],
    ] as const) {
      const socket = new WebSocket(sockets + query, { headers });
      await once(socket, 'open');
      socket.ping('beat');
      const [data] = await once(socket, 'pong');
      expect(String(data)).toBe('beat');
      socket.terminate();
    }
    expect(await refusalOf(new WebSocket(`${sockets}?session_api_key=wrong`))).toContain('401');
  });

  it('is held while the sandbox is paused, and is the same after the resume', async () => {
    const sandbox = await me.running();
    const url = agentServer(sandbox);
    await fetch(`${url}${TOOLS}`, { headers: keyOf(sandbox) });
    await me.pause(sandbox.id);
    await takesNoMore(`${url}${TOOLS}`, keyOf(sandbox));

    const response = await fetch(`${url}${TOOLS}`, { headers: keyOf(sandbox) });
    expect(response.status).toBe(503);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    const text = await response.text();
    expect(jsonText(JSON.parse(text), 'code')).toBe('sandbox_not_running');
    expect(text).not.toContain(sandbox.id);
    expect(await refusalOf(new WebSocket(`${url.replace('http', 'ws')}/sockets/bash-events`))).toContain(
      '503',
    );
    expect(await isFree(url)).toBe(false);

    await me.resume(sandbox.id);
    const resumed = await me.reach(sandbox.id, 'RUNNING');
    expect(agentServer(resumed)).toBe(url);
    expect(await statusAt(`${url}${TOOLS}`, keyOf(resumed))).toBe(200);
    expect(await statusAt(`${url}${TOOLS}`, keyOf(sandbox))).toBe(401);
  });

  it('says for a minute after the removal that the sandbox is gone, and is then given up', async () => {
    const sandbox = await me.running();
    const url = agentServer(sandbox);
    const open = new WebSocket(`${url.replace('http', 'ws')}/sockets/bash-events`, {
      headers: keyOf(sandbox),
    });
    await once(open, 'open');
    // The removal may close it before its response is read.
    const closed = once(open, 'close');
    await me.remove(sandbox.id);
    await closed;

    // The page of a browser asks again, with a key that it believes in.
    const origin = `http://localhost:${new URL(first.url).port}`;
    const response = await fetch(`${url}${TOOLS}`, { headers: { ...keyOf(sandbox), origin } });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, origin]);
    expect(await response.json()).toMatchObject({ code: 'sandbox_not_running', status: 404 });
    const again = new WebSocket(`${url.replace('http', 'ws')}/sockets/bash-events`, {
      headers: keyOf(sandbox),
    });
    expect(await refusalOf(again)).toContain('404');
    const ports = first.app.get(AgentServerPorts);
    // The minute begins when the removal is noticed, which must not happen first at a later time than now.
    await ports.holdAll();
    await ports.holdAll(performance.now() + GONE_MS / 2);
    expect(await isFree(url)).toBe(false);
    expect(await me.get(sandbox.id)).toBeNull();

    await ports.holdAll(performance.now() + GONE_MS);
    await until(() => isFree(url));
  });

  it('is given to no other sandbox while it says so', async () => {
    const sandbox = await me.running();
    const { port } = new URL(agentServer(sandbox));
    await me.remove(sandbox.id);
    const other = await me.running();
    const rowOf = async (): Promise<unknown[]> =>
      await first.dataSource.query('SELECT 1 FROM sandboxes WHERE id = $1', [sandbox.id]);
    await until(async () => (await rowOf()).length === 0);
    await first.dataSource.query('UPDATE sandboxes SET expose_port = $2 WHERE id = $1', [other.id, port]);
    await first.app.get(AgentServerPorts).holdAll();

    const moved = await me.reach(other.id, 'RUNNING');
    expect(agentServer(moved)).not.toBe(agentServer(sandbox));
    expect(await statusAt(`${agentServer(moved)}${TOOLS}`, keyOf(moved))).toBe(200);
    expect(await statusAt(`${agentServer(sandbox)}${TOOLS}`, keyOf(moved))).toBe(404);
  });

  it("opens nothing without a key, with the user's own for the service, or with that of another sandbox", async () => {
    for (const headers of [{}, owner.user.headers, keyOf(foreign)]) {
      expect(await statusAt(`${agentServer(lasting)}${TOOLS}`, headers)).toBe(401);
    }
  });

  it('serves nothing of the service, whatever the address', async () => {
    const port = Number(new URL(agentServer(lasting)).port);
    for (const path of [
      '/api/v1/app-conversations/search',
      '/docs',
      '/openapi.json',
      `/api/v1/sandboxes/${lasting.id}/agent-server/alive`,
    ]) {
      expect([path, await statusAt(agentServer(lasting) + path, keyOf(lasting))]).toEqual([path, 404]);
    }
    const text = await raw(
      port,
      `GET http://localhost/api/settings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    );
    expect(text).toContain('Slipway Agent Server');
  });

  it('answers under no name that a page of a stranger can have', async () => {
    const url = agentServer(lasting);
    for (const host of ['evil.example', `127.0.0.1.evil.example:${new URL(url).port}`]) {
      expect(await statusAt(`${url}${TOOLS}`, { ...keyOf(lasting), host })).toBe(421);
      const socket = new WebSocket(`${url.replace('http', 'ws')}/sockets/bash-events`, {
        headers: { ...keyOf(lasting), host },
      });
      expect(await refusalOf(socket)).toContain('421');
    }
    expect(await statusAt(`${url}${TOOLS}`, { ...keyOf(lasting), host: 'localhost' })).toBe(200);
  });

  it('tells browsers that pages of the service and of CORS_ORIGINS may call, and no other ones', async () => {
    const { port } = new URL(first.url);
    const own = [`http://localhost:${port}`, `http://127.0.0.1:${port}`, 'https://app.example.com'];
    const allowed = [...own, 'https://evil.example', 'null'].map(async (origin) => {
      const headers = {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-session-api-key',
      };
      const response = await fetch(`${agentServer(lasting)}${TOOLS}`, { method: 'OPTIONS', headers });
      return response.headers.get('access-control-allow-origin');
    });

    expect(await Promise.all(allowed)).toEqual([...own, null, null]);
  });

  it('refuses requests that their reader could cut in two', async () => {
    for (const framing of [
      'Content-Length: 3\r\nContent-Length: 4',
      'Content-Length: 4\r\nTransfer-Encoding: chunked',
      'Transfer-Encoding: xchunked',
      'Transfer-Encoding: chunked, identity',
      'Content-Length : 4',
    ]) {
      const answers = await raw(
        Number(new URL(agentServer(lasting)).port),
        `POST /api/tools HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n\r\n0\r\n\r\nGET /alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      );

      expect([framing, answers.match(/HTTP\/1\.1 \d+/g)]).toEqual([framing, ['HTTP/1.1 400']]);
    }
  });
});

describe('the ports of several processes', () => {
  it('are given to those that ran before there were any, and are the same after a restart, unless another program has taken one meanwhile, which is told nothing', async () => {
    const before = await join({ SANDBOX_EXPOSE: 'path' });
    const earlier = await client(before);
    const { id, exposed_urls: urls } = await earlier.running();
    expect(jsonText(jsonList(urls)[0], 'url')).toBe(
      `${before.url.replace('127.0.0.1', 'localhost')}/api/v1/sandboxes/${id}/agent-server`,
    );
    await stop(before);

    const service = await join();
    const owner = new SandboxesClient(service.url, earlier.user);
    expect(agentServer(await owner.reach(id, 'RUNNING'))).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const [running, paused, sandbox] = [await owner.running(), await owner.running(), await owner.running()];
    await owner.pause(paused.id);
    await owner.reach(paused.id, 'PAUSED');
    await stop(service);
    expect(await isFree(agentServer(running))).toBe(true);
    const heard: string[] = [];
    const thief = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk) => {
        heard.push(chunk.toString('latin1'));
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 64\r\nConnection: close\r\n\r\n' + 'a'.repeat(64));
      });
    });
    servers.push(thief);
    await startListening(thief, Number(new URL(agentServer(sandbox)).port));

    const again = new SandboxesClient((await join()).url, owner.user);
    expect(agentServer(await again.reach(running.id, 'RUNNING'))).toBe(agentServer(running));
    expect(await statusAt(`${agentServer(running)}${TOOLS}`, keyOf(running))).toBe(200);
    expect(await statusAt(`${agentServer(paused)}${TOOLS}`, keyOf(paused))).toBe(503);
    const moved = await again.reach(sandbox.id, 'RUNNING');
    expect(agentServer(moved)).not.toBe(agentServer(sandbox));
    expect(await statusAt(`${agentServer(moved)}${TOOLS}`, keyOf(sandbox))).toBe(200);
    expect(heard.join('')).toMatch(
      /^(GET \/\.well-known\/slipway-port\?nonce=[0-9a-f]{32} HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\nConnection: close\r\n\r\n)+$/,
    );
  });

  it('answer in the replica that holds them; the other one knows them, may remove one, and takes over', async () => {
    const [one, two] = [await join(), await join()];
    const owner = await client(one);
    const [sandbox, removed] = [await owner.running(), await owner.running()];
    const other = new SandboxesClient(two.url, owner.user);
    await other.remove(removed.id);
    await until(async () => (await statusAt(`${agentServer(removed)}${TOOLS}`, keyOf(removed))) === 404);
    expect(await owner.get(removed.id)).toBeNull();
    const ports = one.app.get(AgentServerPorts);
    await ports.holdAll();
    await ports.holdAll(performance.now() + GONE_MS);
    await until(() => isFree(agentServer(removed)));
    // So it does not rest: it would be late where the first one is killed, and tells nothing.
    expect(await two.app.get(AgentServerPorts).holdAll()).toBe(true);

    expect(agentServer(await other.reach(sandbox.id, 'RUNNING'))).toBe(agentServer(sandbox));
    await stop(one);
    await until(
      async () => (await statusAt(`${agentServer(sandbox)}${TOOLS}`, keyOf(sandbox)).catch(() => 0)) === 200,
    );
    expect(agentServer(await other.reach(sandbox.id, 'RUNNING'))).toBe(agentServer(sandbox));
  });
});

describe('the host name of a sandbox', () => {
  it('leads to its agent server, and says when it does not run', async () => {
    const app = await join({ SANDBOX_EXPOSE: 'hosts' });
    const owner = await client(app);
    const sandbox = await owner.running();
    const { port } = new URL(app.url);
    const host = `${toAgentServerLabel(sandbox.id)}.localhost:${port}`;

    expect(agentServer(sandbox)).toBe(`http://${host}`);
    expect(await statusAt(`${app.url}${TOOLS}`, { ...keyOf(sandbox), host })).toBe(200);
    expect(await statusAt(`${app.url}/api/settings`, { ...owner.user.headers, host })).toBe(401);
    const socket = new WebSocket(`${app.url.replace('http', 'ws')}/sockets/bash-events`, {
      headers: { ...keyOf(sandbox), host },
    });
    await once(socket, 'open');
    socket.terminate();
    await owner.pause(sandbox.id);
    await takesNoMore(`${app.url}${TOOLS}`, { ...keyOf(sandbox), host });
    await owner.remove(sandbox.id);
    const unknown = `${toAgentServerLabel('0'.repeat(22))}.localhost:${port}`;
    expect(await statusAt(`${app.url}${TOOLS}`, { host: unknown })).toBe(404);
  });
});

async function stop(app: TestApp): Promise<void> {
  apps.splice(apps.indexOf(app), 1);
  await app.close();
}

/** Sends bytes and returns everything that comes back. */
async function raw(port: number, bytes: string): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return text;
}
