import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { startSeparateAgentServer } from '../../packages/agent-server/test/support/test-agent-server.js';
import { MetricsServer } from '../../src/observability/metrics.server.js';
import { useTestApp } from '../support/use-test-app.js';
import { text } from 'node:stream/consumers';
import type { OpenAPIObject } from '@nestjs/swagger';

/** The longest that balancers which cannot be configured keep an idle connection: Google Cloud's. */
const BALANCER_SECONDS = 600;
const AHEAD = ['/server_info', '/nowhere', '/health/live', '/api/settings', '/openapi.json', '/server_info'];
/** What a cache between clients and the service may not hand to the next client without asking again. */
const ASKS_AGAIN = /\bno-(store|cache)\b/;

const app = useTestApp({
  PUBLIC_URL: 'https://slipway.example.com',
  SANDBOX_PORTS_URL: 'https://apps.example.net',
  SANDBOX_CALLBACK_URL: 'http://callback.internal:3000',
  ALLOWED_HOSTS: 'slipway.default.svc, *.example.org',
  METRICS_PORT: '0',
});

interface Answer {
  status: number;
  body: string;
}

/** @param host what the client takes the server for */
async function get(url: string, host: string, headers: Record<string, string> = {}): Promise<Answer> {
  const outgoing = httpRequest(url, { headers: { ...headers, Host: host }, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.setEncoding('utf8');
  const chunks: string[] = await response.toArray();
  return { status: response.statusCode ?? 0, body: chunks.join('') };
}

/** The first line that a server responds with to the request for a WebSocket. */
async function upgrade(port: number, path: string, host: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  const [data] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return data.toString('latin1').split('\r\n')[0] ?? '';
}

const PATHS = ['/health/live', '/server_info', '/docs', '/openapi.json', '/api/settings'];

describe('a service on loopback', () => {
  it('answers under no name that a page of a stranger can have', async () => {
    for (const path of PATHS) {
      const { status, body } = await get(`${app.url}${path}`, 'evil.example', app.user.headers);

      expect([path, status]).toEqual([path, 421]);
      expect(JSON.parse(body)).toMatchObject({
        code: 'misdirected_request',
        detail: expect.stringContaining('ALLOWED_HOSTS'),
      });
    }
    const { port } = new URL(app.url);
    const address = `/api/v1/sandboxes/${'a'.repeat(22)}/agent-server/sockets/bash-events`;
    expect(await upgrade(Number(port), address, 'evil.example')).toBe('HTTP/1.1 421 Misdirected Request');
    expect(await upgrade(Number(port), address, 'localhost')).toBe('HTTP/1.1 404 Not Found');
  });

  it('answers under its own names and to addresses', async () => {
    for (const host of [
      'localhost',
      '127.0.0.1:3000',
      '[::1]',
      'slipway.example.com',
      'callback.internal:3000',
      // What the operator has given.
      'slipway.default.svc:3000',
      'a.example.org',
    ]) {
      expect(await get(`${app.url}/health/live`, host)).toMatchObject({ status: 200 });
    }
    // The host of a port: there is no such sandbox.
    const port = await get(`${app.url}/health/live`, 'worker-1-zzzz.apps.example.net');
    expect(port).toMatchObject({ status: 404, body: expect.stringContaining('sandbox') });
    expect(await get(`${app.url}/health/live`, 'example.com')).toMatchObject({ status: 421 });
  });
});

describe('other listeners on loopback', () => {
  it('metrics are read under their own names only', async () => {
    const url = `http://127.0.0.1:${app.app.get(MetricsServer).port}/metrics`;

    expect(await get(url, 'localhost')).toMatchObject({ status: 200 });
    expect(await get(url, 'evil.example')).toMatchObject({ status: 421 });
  });

  it('an agent server answers under its own names only', async () => {
    const server = await startSeparateAgentServer();
    try {
      for (const path of ['/alive', '/server_info', '/api/conversations']) {
        expect(await get(`${server.client.url}${path}`, 'evil.example')).toMatchObject({ status: 421 });
      }
      expect(await get(`${server.client.url}/alive`, 'localhost:1')).toMatchObject({ status: 200 });
      expect(await upgrade(server.port, '/sockets/bash-events', 'evil.example')).toContain('421');
    } finally {
      await server.stop();
    }
  });
});

describe('connections', () => {
  it('an idle connection is closed by the proxy in front first, which would lose a request to us otherwise', async () => {
    const agent = new Agent({ keepAlive: true });
    const asked = httpRequest(`${app.url}/health/live`, { agent }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    agent.destroy();

    const [, seconds] = /timeout=(\d+)/.exec(String(response.headers['keep-alive'])) ?? [];
    expect(Number(seconds)).toBeGreaterThan(BALANCER_SECONDS);
  });

  it('clients that stall in a head, or in a small body, are disconnected', async () => {
    const { hostname, port } = new URL(app.url);
    const head = 'POST /oauth/device/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const answers = await Promise.all(
      ['', head, `${head}Content-Length: 20\r\n\r\n{`].map(async (said) => {
        const socket = connect(Number(port), hostname);
        socket.write(said);
        return text(socket);
      }),
    );

    expect(answers).toEqual([
      expect.stringMatching(/^HTTP\/1\.1 408/),
      expect.stringMatching(/^HTTP\/1\.1 408/),
      '',
    ]);
  });

  it('requests that a client sends ahead are answered in their order', async () => {
    const { host, hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    const requests = AHEAD.map((path, index) => {
      const last = index === AHEAD.length - 1 ? 'Connection: close\r\n' : '';
      return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${last}\r\n`;
    });
    socket.write(requests.join(''));

    const statuses = (await text(socket)).match(/(?<=HTTP\/1\.1 )\d{3}/g);
    expect(statuses).toEqual(['200', '404', '200', '401', '200', '200']);
  });

  it('a cache that all clients share keeps no answer of the API for the next caller', async () => {
    const document = (await (await fetch(`${app.url}/openapi.json`)).json()) as OpenAPIObject;
    const kept: string[] = [];
    for (const [path, { get: operation }] of Object.entries(document.paths)) {
      if (operation !== undefined) {
        const address = app.url + path.replaceAll(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000');
        const { status, headers, body } = await fetch(address, { headers: app.admin.headers });
        await body?.cancel();
        if (!ASKS_AGAIN.test(headers.get('cache-control') ?? '')) {
          kept.push(`${status} ${path}`);
        }
      }
    }

    expect(kept).toEqual([]);
  });
});
