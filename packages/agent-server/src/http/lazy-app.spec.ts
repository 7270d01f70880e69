import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, request, type Server } from 'node:http';
import { AllowedHosts } from '@slipway/common/requests/allowed-hosts.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import { LazyApp, type HttpApp } from './lazy-app.js';

/** Longer than any test. */
const NEVER_MS = 600_000;

let server: Server;
let app: LazyApp;
let url: string;
let loads: number;
let preloads: number;
let load: PromiseWithResolvers<HttpApp>;
let closed: boolean;

beforeEach(async () => {
  loads = 0;
  preloads = 0;
  closed = false;
  load = Promise.withResolvers<HttpApp>();
  app = newApp(NEVER_MS);
  server = createServer((incoming, response) => app.handle(incoming, response));
  server.on('upgrade', (incoming, stream, head) => app.upgrade(incoming, stream, head));
  url = `http://127.0.0.1:${await startListening(server)}`;
});

afterEach(async () => {
  open();
  await app.close();
  server.closeAllConnections();
  server.close();
});

function newApp(loadAfterMs: number): LazyApp {
  const hosts = new AllowedHosts({ listenHost: '127.0.0.1', configured: [] });
  const preload = async (): Promise<void> => {
    preloads += 1;
  };
  return new LazyApp(hosts, preload, loadAfterMs);
}

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

function assign(): void {
  app.assign(async () => {
    loads += 1;
    return await load.promise;
  });
}

/** The status that a request for a WebSocket gets. */
async function upgradeStatus(): Promise<number | undefined> {
  const headers = { connection: 'upgrade', upgrade: 'websocket' };
  return await new Promise<number | undefined>((resolve, reject) => {
    request(`${url}/sockets/events/x`, { headers }, (response) => resolve(response.statusCode))
      .once('error', reject)
      .end();
  });
}

describe('before it is assigned', () => {
  it('reports that it is alive, and refuses everything else with a reason', async () => {
    expect(await get('/alive')).toEqual([200, '{"status":"ok","assigned":false}']);
    for (const path of ['/', '/health', '/ready', '/server_info', '/api/conversations', '/alive/x']) {
      expect(await get(path)).toEqual([503, expect.stringMatching(/^\{"detail":"[^"]*session key[^"]*"\}$/)]);
    }
    const post = await fetch(`${url}/api/conversations`, { method: 'POST', body: 'x'.repeat(1024) });
    expect([post.status, post.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await upgradeStatus()).toBe(503);
    expect(loads).toBe(0);
  });

  it('loads what the routes need, and makes them at once when it is assigned', async () => {
    await app.close();
    app = newApp(1);
    await until(() => preloads === 1);
    expect(loads).toBe(0);
    assign();
    expect(loads).toBe(1);
    expect(await get('/alive')).toEqual([200, '{"status":"ok","assigned":true}']);
    open();
    await until(async () => (await get('/x'))[1] === 'routes /x');
    expect([preloads, loads]).toEqual([1, 1]);
  });

  it('closes without having loaded anything', async () => {
    await app.close();
    expect([preloads, loads, closed]).toEqual([0, 0, false]);
  });
});

it('reports that the server is alive, but not ready, before the routes are loaded', async () => {
  assign();
  expect(await get('/alive')).toEqual([200, '{"status":"ok","assigned":true}']);
  expect(await get('/health')).toEqual([200, '{"status":"ok"}']);
  expect(await get('/ready')).toEqual([503, '{"status":"starting"}']);
});

it('queues all other requests, loads once, and then hands them on', async () => {
  assign();
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
  await app.close();
  app = newApp(1);
  assign();
  await until(() => loads === 1);
  open();
  await app.close();
  expect(closed).toBe(true);
});

it('queues sockets', async () => {
  assign();
  const answer = upgradeStatus();
  await until(() => loads === 1);
  open();
  expect(await answer).toBe(418);
});
