import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request as httpRequest, type Server } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { toHostLabels } from '../../src/v1/sandboxes/sandbox-urls.js';
import { portToken } from '../../src/v1/sandboxes/session-key.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { createTestApp } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { insertReachableSandbox } from '../support/sandbox-rows.js';
import { createUnixFolder, listenOnUnix, type UnixFolder } from '../support/unix-folder.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

interface PortResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
}

const ID = 'Port0fASandbox';
const KEY = 'session-key-of-the-sandbox';
const TOKEN = portToken(KEY);
const PAGE = { accept: 'text/html,*/*' };

describe('the proxy of sandbox ports', () => {
  const app = useTestApp();
  let page: RawServer;
  let received: Received[];

  beforeAll(async () => {
    page = await RawServer.start(
      (request, response) => {
        const { method = '', url = '', headers } = request;
        received.push({ method, url, headers });
        response.setHeader('Set-Cookie', [
          'of-the-app=1; Domain=localhost; Path=/',
          'slipway_session=planted; Domain=localhost; Path=/',
        ]);
        response.setHeader('Content-Security-Policy', "script-src 'self'");
        response.setHeader('Strict-Transport-Security', 'max-age=1000');
        response.end('the page');
      },
      (socket, { url = '' }) => socket.send(url),
    );
  });

  beforeEach(async () => {
    received = [];
    await insertSandbox({ WORKER_1: page.origin });
  });

  afterEach(async () => {
    await app.dataSource.getRepository(Sandbox).delete({ userId: app.user.id });
  });

  afterAll(async () => {
    await page.close();
  });

  it('lists an address for each port that opens it', async () => {
    await app.dataSource
      .getRepository(Sandbox)
      .update(
        { id: ID },
        { portAddresses: { generation: 0, addresses: { WORKER_1: page.origin, APP_2: page.origin } } },
      );
    const answer = await fetch(`${app.url}/api/v1/sandboxes?id=${ID}`, {
      headers: { 'X-Session-API-Key': app.user.key },
    });
    const [sandbox] = jsonList(await answer.json());
    const urls = jsonList(sandbox, 'exposed_urls');
    const { port } = new URL(app.url);
    expect(urls.map((url) => jsonText(url, 'name'))).toEqual(['AGENT_SERVER', 'APP_2', 'WORKER_1']);
    expect(urls[2]).toEqual({
      name: 'WORKER_1',
      url: `http://${toHostLabels(ID, ['WORKER_1']).join('')}.localhost:${port}/?slipway_token=${TOKEN}`,
      port: Number(port),
    });
    const opened = new URL(jsonText(urls[2], 'url') ?? '');
    expect(await ask(opened.pathname + opened.search, {}, { host: opened.host })).toMatchObject({
      status: 200,
      body: 'the page',
    });
    expect(jsonText(sandbox, 'session_api_key')).toBe(KEY);
    expect(JSON.stringify(urls)).not.toContain(KEY);
  });

  it('redirects a browser with the token to the page without it, and accepts its cookie from then on', async () => {
    const first = await ask(`/a%2Fb?x=1&slipway_token=${TOKEN}&y=%20`, PAGE);
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe(`http://${hostOf('WORKER_1')}/a%2Fb?x=1&y=%20`);
    expect(first.headers['cache-control']).toBe('no-store');
    const [cookie = ''] = first.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^slipway_port=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    expect(received).toEqual([]);

    const opened = cookie.split(';', 1)[0] ?? '';
    const second = await ask('/a%2Fb?x=1&y=%20', {
      ...PAGE,
      cookie: `of-the-app=1; ${opened}; slipway_session=ses_x; z=2`,
    });
    expect(second).toMatchObject({ status: 200, body: 'the page' });
    expect(received).toMatchObject([{ method: 'GET', url: '/a%2Fb?x=1&y=%20' }]);
    expect(received[0]?.headers.cookie).toBe('of-the-app=1; z=2');
    // Headers about the site itself are kept, those about others dropped.
    expect(second.headers['content-security-policy']).toBe("script-src 'self'");
    expect(second.headers['set-cookie']).toEqual(['of-the-app=1; Path=/']);
    expect(second.headers['strict-transport-security']).toBeUndefined();
    expect(second.headers['x-frame-options']).toBeUndefined();
  });

  it.each([
    ['two slashes', `//evil.example/?slipway_token=${TOKEN}`, '//evil.example/'],
    ['a backslash', `/\\evil.example?slipway_token=${TOKEN}`, '/\\evil.example'],
  ])('redirects to no other host: %s', async (_, path, rest) => {
    const { headers } = await ask(path, PAGE);
    expect(headers.location).toBe(`http://${hostOf('WORKER_1')}${rest}`);
  });

  it.each([
    ['the token', `/data?slipway_token=${TOKEN}`, {}],
    ["the sandbox's key", '/data', { 'x-session-api-key': KEY }],
  ])('forwards a script with %s at once, without the credential', async (_, path, headers) => {
    expect(await ask(path, { ...headers, authorization: "Bearer of-the-app's" })).toMatchObject({
      status: 200,
      body: 'the page',
    });
    const [request] = received;
    expect(request?.url).toBe('/data');
    expect(request?.headers.authorization).toBe("Bearer of-the-app's");
    expect(JSON.stringify(request)).not.toContain(TOKEN);
    expect(JSON.stringify(request)).not.toContain(KEY);
  });

  it.each<[string, string, Record<string, string>]>([
    ['nothing', '/', {}],
    ["the service's own key", '/', { 'x-session-api-key': 'sk-slipway-x' }],
    ['a key in the query', `/?session_api_key=${KEY}`, {}],
  ])('asks a client with %s for the token', async (_, path, headers) => {
    const answer = await ask(path, headers);
    expect(answer.status).toBe(401);
    const problem: unknown = JSON.parse(answer.body);
    expect(jsonText(problem, 'code')).toBe('unauthorized');
    expect(jsonText(problem, 'detail')).toContain(`/api/v1/sandboxes?id=${ID}`);
    expect(answer.body).not.toContain(TOKEN);
    expect(received).toEqual([]);
  });

  it('serves nothing of the service there', async () => {
    const answer = await ask('/api/v1/sandboxes/search', { 'x-session-api-key': KEY });
    expect(answer.body).toBe('the page');
    expect((await ask('/health/live', {})).status).toBe(401);
  });

  it.each<[string, string, SandboxRowStatus]>([
    ['a sandbox that is paused', 'WORKER_1', 'PAUSED'],
    ['a sandbox that is being removed', 'WORKER_1', 'DELETING'],
    ['a port that it does not have', 'WORKER_2', 'RUNNING'],
    ['a name that every object has', 'CONSTRUCTOR_1', 'RUNNING'],
  ])('responds with 404: %s', async (_, name, status) => {
    await app.dataSource.getRepository(Sandbox).update({ id: ID }, { status });
    const answer = await ask('/', { 'x-session-api-key': KEY }, { host: hostOf(name) });
    expect(answer.status).toBe(404);
    expect(jsonText(JSON.parse(answer.body), 'code')).toBe('sandbox_not_running');
  });

  it('reports that nothing listens there yet', async () => {
    const portAddresses = { generation: 0, addresses: { WORKER_1: 'http://127.0.0.1:1' } };
    await app.dataSource.getRepository(Sandbox).update({ id: ID }, { portAddresses });
    const answer = await ask('/', { 'x-session-api-key': KEY });
    expect(answer.status).toBe(502);
    expect(jsonText(JSON.parse(answer.body), 'detail')).toContain('started one there yet');
    const shown = await ask('/', { 'x-session-api-key': KEY, ...PAGE });
    expect([shown.status, shown.headers['content-type']]).toEqual([502, 'text/html; charset=utf-8']);
    expect(shown.body).toContain('<h1>Nothing listens at this port yet</h1>');
  });

  it('ignores ports of an earlier start', async () => {
    // As a replica of the previous version leaves the row after a resume.
    await app.dataSource.getRepository(Sandbox).update({ id: ID }, { generation: 1 });
    expect((await ask('/', { 'x-session-api-key': KEY })).status).toBe(404);
  });

  it('refuses its cookie from pages of other sandboxes', async () => {
    const cookie = `slipway_port=${TOKEN}`;
    const answer = await ask('/', { cookie, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' });
    expect(answer.status).toBe(403);
    const refused = open('/socket', { cookie, origin: `http://${hostOf('WORKER_1', 'Another')}` });
    const [error] = (await once(refused, 'error')) as [Error];
    expect(error.message).toContain('403');
    expect(received).toEqual([]);
  });

  it('counts as use of the sandbox', async () => {
    // A fresh sandbox, because recent use is not recorded again.
    const id = 'Port0fAnother';
    await insertSandbox({ WORKER_1: page.origin }, id);
    const host = hostOf('WORKER_1', id);
    const trafficAt = async () =>
      (await app.dataSource.getRepository(Sandbox).findOneByOrFail({ id })).trafficAt;
    await ask('/', {}, { host });
    expect(await trafficAt()).toBeNull();
    await ask('/', { 'x-session-api-key': `${KEY} of ${id}` }, { host });
    await until(async () => (await trafficAt()) !== null);
  });

  it('forwards WebSockets of clients with the token or the cookie', async () => {
    const opened = open(`/socket?a=1&slipway_token=${TOKEN}`);
    expect(String((await once(opened, 'message'))[0])).toBe('/socket?a=1');
    opened.terminate();
    const withCookie = open('/socket', { cookie: `slipway_port=${TOKEN}` });
    expect(String((await once(withCookie, 'message'))[0])).toBe('/socket');
    withCookie.terminate();
  });

  it.each<[string, string, string, Record<string, string>]>([
    ['without the token', 'WORKER_1', '401', {}],
    ['where nothing is', 'WORKER_2', '404', {}],
    [
      'of a page elsewhere, with the session of the service',
      'WORKER_1',
      '401',
      { cookie: 'slipway_session=ses_x', origin: 'https://evil.example' },
    ],
  ])('refuses WebSockets %s', async (_, name, status, headers) => {
    const refused = open('/socket', { host: hostOf(name), ...headers });
    const [error] = (await once(refused, 'error')) as [Error];
    expect(error.message).toContain(status);
  });

  it('uses host names below the configured address, over TLS with a cookie for that host only, and leaves the service its own', async () => {
    const behindTls = await createTestApp(
      { SANDBOX_PORTS_URL: 'https://example.com', PUBLIC_URL: 'https://slipway.example.com' },
      app.databaseUrl,
    );
    const at = (host: string, path: string) => ask(path, PAGE, { host, url: behindTls.url });
    const statusAt = async (host: string) => (await at(host, '/health/live')).status;
    try {
      const host = `${toHostLabels(ID, ['WORKER_1']).join('')}.example.com`;
      const answer = await at(host, `/?slipway_token=${TOKEN}`);
      expect(answer.status).toBe(303);
      expect(answer.headers.location).toBe(`https://${host}/`);
      expect(answer.headers['set-cookie']).toEqual([
        `__Host-slipway_port=${TOKEN}; Path=/; HttpOnly; SameSite=Lax; Secure`,
      ]);
      expect(await statusAt('slipway.example.com')).toBe(200);
      expect(await statusAt('example.com')).toBe(200);
      expect(await statusAt('other.example.com')).toBe(404);
    } finally {
      await behindTls.close();
    }
  });

  describe('of a sandbox with a network of its own', () => {
    let folder: UnixFolder;
    let program: Server;

    beforeEach(async () => {
      folder = await createUnixFolder();
      program = createServer((request, response) => {
        const { method = '', url = '', headers } = request;
        received.push({ method, url, headers });
        response.setHeader('Location', 'http://localhost/elsewhere');
        response.end('the page behind a socket');
      });
      new WebSocketServer({ server: program }).on('connection', (socket) => socket.send('hello'));
      const address = await listenOnUnix(program, `${folder.path}/WORKER_1.sock`);
      await app.dataSource.getRepository(Sandbox).delete({ id: ID });
      await insertSandbox({ WORKER_1: address });
    });

    afterEach(async () => {
      program.closeAllConnections();
      program.close();
      await folder.remove();
    });

    it('forwards requests and WebSockets to its sockets, and shows no path of this machine to clients', async () => {
      const answer = await ask('/x', { 'X-Session-API-Key': KEY });
      expect(answer).toMatchObject({ status: 200, body: 'the page behind a socket' });
      expect(answer.headers.location).toBe(`http://${hostOf('WORKER_1')}/elsewhere`);
      expect(received).toMatchObject([{ url: '/x', headers: { host: 'localhost' } }]);
      const socket = new WebSocket(`ws://127.0.0.1:${new URL(app.url).port}/s`, {
        headers: { host: hostOf('WORKER_1'), 'X-Session-API-Key': KEY },
      });
      const [message] = await once(socket, 'message');
      expect(String(message)).toBe('hello');
      socket.terminate();
      const listed = await fetch(`${app.url}/api/v1/sandboxes?id=${ID}`, { headers: app.user.headers });
      const text = await listed.text();
      expect(text).not.toContain(folder.path);
      expect(text).toContain(`"url":"http://${hostOf('WORKER_1')}/?slipway_token=${TOKEN}"`);
    });
  });

  function hostOf(name: string, sandboxId = ID): string {
    return `${toHostLabels(sandboxId, [name]).join('')}.localhost:${new URL(app.url).port}`;
  }

  async function ask(
    path: string,
    headers: Record<string, string>,
    { host = hostOf('WORKER_1'), url = app.url } = {},
  ): Promise<PortResponse> {
    const { hostname, port } = new URL(url);
    // fetch would normalize the path, and does not send a Host.
    const request = httpRequest({ hostname, port, path, headers: { ...headers, host } });
    request.end();
    const [response] = await once(request, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of response) {
      chunks.push(chunk);
    }
    return {
      status: response.statusCode,
      headers: response.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
  }

  function open(path: string, headers: Record<string, string> = {}): WebSocket {
    return new WebSocket(`${app.url.replace('http', 'ws')}${path}`, {
      headers: { host: hostOf('WORKER_1'), ...headers },
    });
  }

  async function insertSandbox(addresses: Record<string, string>, id = ID): Promise<void> {
    await insertReachableSandbox(app, {
      id,
      key: id === ID ? KEY : `${KEY} of ${id}`,
      address: 'http://127.0.0.1:1',
      portAddresses: { generation: 0, addresses },
    });
  }
});
