import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { jsonText } from '@slipway/common/json-access.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { createTestApp } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { insertReachableSandbox } from '../support/sandbox-rows.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  socket: Socket;
}

const LARGE = 3_000_000;

describe('the proxy of agent servers', () => {
  const app = useTestApp();
  let agentServer: RawServer;
  let received: Received[];

  beforeAll(async () => {
    agentServer = await RawServer.start(
      async (incoming, response) => {
        const { method = '', url = '', headers, socket } = incoming;
        received.push({ method, url, headers, body: await text(incoming), socket });
        response.writeHead(201, { 'x-made-by': 'agent server' }).end('{"made":true}');
      },
      (socket, { url = '' }) => socket.send(url),
    );
  });

  beforeEach(() => {
    received = [];
  });

  afterEach(async () => {
    await app.dataSource.getRepository(Sandbox).delete({ userId: app.user.id });
  });

  afterAll(async () => {
    await agentServer.close();
  });

  it('forwards a request unchanged, without credentials for the service', async () => {
    await insertSandbox('Proxied1', 'RUNNING', agentServer.origin);
    const body = 'x'.repeat(LARGE);
    const response = await fetch(
      `${app.url}/api/v1/sandboxes/Proxied1/agent-server/api/file/upload?path=%2Fa`,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/octet-stream',
          'x-session-api-key': 'key of Proxied1',
          'x-access-token': app.user.key,
          authorization: `Bearer ${app.user.key}`,
          cookie: 'session=1; slipway_session=ses_4nKxq0Zt_x',
        },
        body,
      },
    );
    expect(response.status).toBe(201);
    expect(response.headers.get('x-made-by')).toBe('agent server');
    expect(await response.json()).toEqual({ made: true });
    const [request] = received;
    expect(request).toMatchObject({ method: 'POST', url: '/api/file/upload?path=%2Fa' });
    expect(request?.body.length).toBe(LARGE);
    expect(request?.headers['x-session-api-key']).toBe('key of Proxied1');
    expect(JSON.stringify(request?.headers)).not.toContain(app.user.key);
    expect(request?.headers.cookie).toBeUndefined();
  });

  it.each([
    ['header', { 'x-session-api-key': 'key of somebody else' }, ''],
    ['query', {}, '?session_api_key=key+of+somebody+else'],
    [
      'query beside the right one',
      {},
      '?session_api_key=key+of+Proxied8&session_api_key=key+of+somebody+else',
    ],
  ])('keeps a key of somebody else from the agent server: %s', async (_, headers, query) => {
    await insertSandbox('Proxied8', 'RUNNING', agentServer.origin);
    const url = `${app.url}/api/v1/sandboxes/Proxied8/agent-server/api/x${query}`;

    expect((await fetch(url, { headers })).status).toBe(401);
    expect(received).toEqual([]);
  });

  it('uses a connection again for requests with the key, and only for those', async () => {
    await insertSandbox('Proxied9', 'RUNNING', agentServer.origin);
    const url = `${app.url}/api/v1/sandboxes/Proxied9/agent-server/alive`;
    const ask = async (key: string | null): Promise<void> => {
      await (await fetch(url, { headers: key === null ? {} : { 'x-session-api-key': key } })).text();
    };
    for (const key of ['key of Proxied9', 'key of Proxied9', null, 'key of Proxied9', null]) {
      await ask(key);
    }

    expect(received).toHaveLength(5);
    expect(new Set(received.map(({ socket }) => socket)).size).toBe(3);
  });

  it('sends no key over a connection of an earlier start', async () => {
    await insertSandbox('Proxied10', 'RUNNING', agentServer.origin);
    const url = `${app.url}/api/v1/sandboxes/Proxied10/agent-server/alive`;
    const headers = { 'x-session-api-key': 'key of Proxied10' };
    await (await fetch(url, { headers })).text();
    // As another replica does it, without telling this one.
    await app.dataSource
      .getRepository(Sandbox)
      .update({ id: 'Proxied10' }, { generation: 7, address: 'http://127.0.0.1:1' });
    received[0]?.socket.destroy();
    const response = await fetch(url, { headers });

    expect(received).toHaveLength(1);
    expect([404, 502]).toContain(response.status);
  });

  it.each([
    ['does not count as use of the sandbox when it only reads', 'GET', 'Proxied6', false],
    ['counts as use of the sandbox when it changes something', 'POST', 'Proxied7', true],
  ])('%s', async (_, method, id, counts) => {
    await insertSandbox(id, 'RUNNING', agentServer.origin);
    const trafficAt = async () =>
      (
        await app.dataSource.query<{ traffic_at: Date | null }[]>(
          'SELECT traffic_at FROM sandboxes WHERE id = $1',
          [id],
        )
      )[0]?.traffic_at ?? null;
    for (const verb of ['GET', method]) {
      await (await fetch(`${app.url}/api/v1/sandboxes/${id}/agent-server/api/x`, { method: verb })).text();
    }
    if (counts) {
      await until(async () => (await trafficAt()) !== null);
    }
    expect((await trafficAt()) !== null).toBe(counts);
  });

  it.each<[string, SandboxRowStatus | null]>([
    ['unknown', null],
    ['paused', 'PAUSED'],
    ['starting', 'STARTING'],
    ['being removed', 'DELETING'],
  ])('responds alike for a sandbox that is %s', async (_, status) => {
    if (status !== null) {
      await insertSandbox('Proxied2', status, status === 'DELETING' ? agentServer.origin : null);
    }
    const response = await fetch(`${app.url}/api/v1/sandboxes/Proxied2/agent-server/alive`);
    expect(response.status).toBe(404);
    const problem: unknown = await response.json();
    expect(jsonText(problem, 'code')).toBe('sandbox_not_running');
    expect(jsonText(problem, 'detail')).toContain('POST /api/v1/sandboxes/Proxied2/resume');
    expect(received).toEqual([]);
  });

  describe('below a path of the service', () => {
    const POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox; form-action 'none'";
    const SPOKEN = {
      'accept-ch': 'Sec-CH-UA-Model',
      'alt-svc': 'h2="elsewhere.example.com:443"',
      'clear-site-data': '"*"',
      'content-security-policy-report-only': "default-src 'self'; report-uri https://elsewhere.example.com",
      nel: '{"report_to":"x","max_age":31536000}',
      'origin-agent-cluster': '?0',
      refresh: '0; url=https://elsewhere.example.com',
      'report-to': '{"group":"x","max_age":31536000,"endpoints":[{"url":"https://elsewhere.example.com"}]}',
      'reporting-endpoints': 'x="https://elsewhere.example.com"',
      'service-worker-allowed': '/',
      'set-cookie': 'a=1',
      'set-login': 'logged-out',
      'strict-transport-security': 'max-age=31536000',
    };
    let speaking: RawServer;

    beforeAll(async () => {
      speaking = await RawServer.start((incoming, response) => {
        const { searchParams } = new URL(incoming.url ?? '/', 'http://program');
        response.setHeader('content-security-policy', [
          "script-src 'unsafe-inline'",
          'sandbox allow-scripts allow-same-origin',
        ]);
        response.writeHead(Number(searchParams.get('status')), {
          ...SPOKEN,
          'content-type': searchParams.get('type') ?? 'text/html',
          'cross-origin-resource-policy': 'cross-origin',
          'referrer-policy': 'unsafe-url',
          'x-content-type-options': 'none',
          'x-frame-options': 'ALLOWALL',
        });
        response.end('<script></script>');
      });
    });

    afterAll(() => speaking.close());

    const ask = async (id: string, init: RequestInit, query = ''): Promise<Response> =>
      await fetch(`${app.url}/api/v1/sandboxes/${id}/agent-server/page${query}`, {
        redirect: 'manual',
        ...init,
      });

    it.each([
      ['GET', 200, 'text/html', {}],
      ['GET', 200, 'image/svg+xml', {}],
      ['GET', 200, 'application/json', {}],
      ['GET', 302, 'text/html', {}],
      ['GET', 304, 'text/html', { 'If-None-Match': '"a"' }],
      ['HEAD', 200, 'text/html', {}],
      ['POST', 201, 'text/html', {}],
      ['GET', 404, 'text/html', {}],
      ['GET', 500, 'text/html', {}],
    ])('no program speaks for the service: %s, %i, %s', async (method, status, type, headers) => {
      await insertSandbox('Proxied7', 'RUNNING', speaking.origin);
      for (const key of [{}, { 'X-Session-API-Key': 'key of Proxied7' }]) {
        const query = `?status=${status}&type=${encodeURIComponent(type)}`;
        const answer = await ask('Proxied7', { method, headers: { ...headers, ...key } }, query);
        expect(answer.status).toBe(status);
        expect(answer.headers.get('content-security-policy')).toBe(POLICY);
        expect(Object.keys(SPOKEN).filter((name) => answer.headers.has(name))).toEqual([]);
        expect(Object.fromEntries(answer.headers)).toMatchObject({
          'cross-origin-resource-policy': 'same-origin',
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
        });
      }
    });

    it.each([
      ['a sandbox that is not there', 'Nowhere', {}, 404],
      ['another key', 'Proxied8', { 'X-Session-API-Key': 'another' }, 401],
      ['a program that does not answer', 'Proxied8', {}, 502],
    ])('the policy is that of every answer: %s', async (_, id, headers, status) => {
      await insertSandbox('Proxied8', 'RUNNING', 'http://127.0.0.1:1');
      const answer = await ask(id, { headers });
      expect([answer.status, answer.headers.get('content-security-policy')]).toEqual([status, POLICY]);
    });
  });

  it.each([
    ['of an unknown sandbox', '/api/v1/sandboxes/Nobody/agent-server/sockets/events/1'],
    ['anywhere else', '/api/settings'],
  ])('refuses a WebSocket %s', async (_, path) => {
    const [error] = (await once(open(path), 'error')) as [Error];
    expect(error.message).toContain('404');
  });

  it.each(['h2c', 'TLS/1.0, HTTP/2.0'])('responds normally to clients that offer %s', async (upgrade) => {
    const { hostname, port } = new URL(app.url);
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade, 'http2-settings': 'AAMAAABk' };
    const asked = request({ hostname, port, path: '/health/live', headers });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
  });

  it('forwards WebSockets, and closes open ones when the service stops, so that clients connect again', async () => {
    const second = await createTestApp({}, app.databaseUrl);
    await insertSandbox('Proxied5', 'RUNNING', agentServer.origin);
    const socket = open(
      '/api/v1/sandboxes/Proxied5/agent-server/sockets/events/1?resend_all=true',
      second.url,
    );
    expect(String((await once(socket, 'message'))[0])).toBe('/sockets/events/1?resend_all=true');
    const closed = once(socket, 'close');
    await second.close();
    // Service restart.
    expect((await closed)[0]).toBe(1012);
  });

  function open(path: string, base = app.url): WebSocket {
    return new WebSocket(`${base.replace('http', 'ws')}${path}`);
  }

  async function insertSandbox(id: string, status: SandboxRowStatus, at: string | null): Promise<void> {
    await insertReachableSandbox(app, { id, status, address: at, key: `key of ${id}` });
  }
});
