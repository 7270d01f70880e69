import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { useTestApp } from '../support/use-test-app.js';

/** The longest that balancers which cannot be configured keep an idle connection: Google Cloud's. */
const BALANCER_SECONDS = 600;
const PATHS = ['/server_info', '/nowhere', '/health/live', '/api/settings', '/openapi.json', '/server_info'];
/** What a cache between clients and the service may not hand to the next client without asking again. */
const ASKS_AGAIN = /\bno-(store|cache)\b/;

const app = useTestApp();

it('an idle connection is closed by the proxy in front first, which would lose a request to us otherwise', async () => {
  const agent = new Agent({ keepAlive: true });
  const [response] = (await once(get(`${app.url}/health/live`, { agent }), 'response')) as [IncomingMessage];
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
  const requests = PATHS.map((path, index) => {
    const last = index === PATHS.length - 1 ? 'Connection: close\r\n' : '';
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
