import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { AllowedHosts } from '../../common/requests/allowed-hosts.js';
import { LazyApp, type HttpApp } from './lazy-app.js';

let server: Server;
let app: LazyApp;
let url: string;
let loads: number;
let load: PromiseWithResolvers<HttpApp>;
let closed: boolean;

beforeEach(async () => {
  loads = 0;
  closed = false;
  load = Promise.withResolvers<HttpApp>();
  app = new LazyApp(new AllowedHosts({ listenHost: '127.0.0.1', configured: [] }), async () => {
    loads += 1;
    return await load.promise;
  });
  server = createServer(app.handle);
  server.on('upgrade', app.upgrade);
  url = `http://127.0.0.1:${await startListening(server)}`;
});

afterEach(async () => {
  open();
  await app.close();
  server.closeAllConnections();
  server.close();
});

function open(): void {
  load.resolve({
    handle: (request, response) => response.end(`routes ${request.url ?? ''}`),
    upgrade: (_, stream) => stream.end('HTTP/1.1 418 Loaded\r\nConnection: close\r\n\r\n'),
    close: () => {
      closed = true;
    },
  });
}

async function get(path: string): Promise<[number, string]> {
  const response = await fetch(`${url}${path}`);
  return [response.status, await response.text()];
}

it('reports that the server is alive, but not ready, before the routes are loaded', async () => {
  expect(await get('/alive')).toEqual([200, '{"status":"ok"}']);
  expect(await get('/health')).toEqual([200, '{"status":"ok"}']);
  expect(await get('/ready')).toEqual([503, '{"status":"starting"}']);
});

it('queues all other requests, loads once, and then hands them on', async () => {
  const waiting = [get('/api/conversations'), get('/server_info')];
  await until(() => loads === 1);
  open();
  expect(await Promise.all(waiting)).toEqual([
    [200, 'routes /api/conversations'],
    [200, 'routes /server_info'],
  ]);
  expect(await get('/alive')).toEqual([200, 'routes /alive']);
  expect(loads).toBe(1);
});

it('also loads without requests, and closes what it loaded', async () => {
  await until(() => loads === 1);
  open();
  await app.close();
  expect(closed).toBe(true);
});

it('queues sockets', async () => {
  const headers = { connection: 'upgrade', upgrade: 'websocket' };
  const { request } = await import('node:http');
  const answer = new Promise<number | undefined>((resolve, reject) => {
    request(`${url}/sockets/events/x`, { headers }, (response) => resolve(response.statusCode))
      .once('error', reject)
      .end();
  });
  await until(() => loads === 1);
  open();
  expect(await answer).toBe(418);
});
