import { beforeAll, expect, it } from '@jest/globals';
import { request as startRequest } from 'node:http';
import { MetricsServer } from '../../src/observability/metrics.server.js';
import type { TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const SETTINGS = '/api/settings';
const PAGE = 'https://app.example.com';

const service = useTestApp({
  MAX_REQUESTS_IN_FLIGHT: '2',
  METRICS_PORT: '0',
  CORS_ORIGINS: PAGE,
});

beforeAll(async () => {
  await storeSettings(service.user);
});

async function storeSettings({ headers }: TestUser): Promise<void> {
  await fetch(`${service.url}${SETTINGS}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ language: 'en' }),
  });
}

async function createUser(): Promise<TestUser> {
  const user = await service.createUser();
  await storeSettings(user);
  return user;
}

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${service.url}${path}`, { headers: { ...service.user.headers, ...headers } });

async function metrics(): Promise<string> {
  const port = service.app.get(MetricsServer).port ?? 0;
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

/** Locks the table of settings while `use` runs, so that requests for them stay under way. */
async function whileSettingsWait<T>(use: () => Promise<T>): Promise<T> {
  return service.dataSource.transaction(async (manager) => {
    await manager.query('LOCK TABLE settings IN ACCESS EXCLUSIVE MODE');
    return use();
  });
}

const underWay = (count: number): Promise<void> =>
  until(async () => (await metrics()).includes(`slipway_http_requests_in_flight ${count}\n`));

it('counts a body that does not arrive against nobody but its sender', async () => {
  const other = await createUser();
  const stalled = startRequest(`${service.url}${SETTINGS}`, {
    method: 'POST',
    headers: { ...service.user.headers, 'content-type': 'application/json', 'content-length': '20' },
  });
  stalled.on('error', () => undefined);
  stalled.write('{"language"');
  await underWay(1);
  const refused = await get(SETTINGS);
  expect([refused.status, await refused.json()]).toEqual([
    429,
    expect.objectContaining({ code: 'rate_limited', status: 429 }),
  ]);
  expect(['1', '2', '3']).toContain(refused.headers.get('retry-after'));
  expect((await fetch(`${service.url}/server_info`)).status).toBe(200);
  expect((await get(SETTINGS, other.headers)).status).toBe(200);
  stalled.destroy();
  await until(async () => (await get(SETTINGS)).status === 200);
});

it('refuses everybody when all places are taken, and answers again after them', async () => {
  const users = [service.user, await createUser()];
  const { waiting } = await whileSettingsWait(async () => {
    const requests = users.map(({ headers }) => get(SETTINGS, headers));
    await underWay(2);

    const refused = await get('/api/v1/sandboxes/search');
    expect([refused.status, await refused.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'overloaded', status: 503 }),
    ]);
    expect(['1', '2', '3']).toContain(refused.headers.get('retry-after'));
    expect(refused.headers.get('x-content-type-options')).toBe('nosniff');
    expect(refused.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    // A page from elsewhere has to be able to read why.
    const ofPage = await get('/api/v1/sandboxes/search', { origin: PAGE });
    expect([ofPage.status, ofPage.headers.get('access-control-allow-origin')]).toEqual([503, PAGE]);
    expect((await get('/health/live')).status).toBe(200);
    expect((await get('/health/ready')).status).toBe(200);
    // Streams have limits of their own; this one has no conversation.
    const stream = await get('/api/v1/conversation/0123456789abcdef0123456789abcdef/events/stream?after=0');
    expect(stream.status).not.toBe(503);
    return { waiting: requests };
  });

  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await get(SETTINGS)).status).toBe(200);
  expect(await metrics()).toContain('slipway_http_problems_total{code="overloaded"} 2');
  await underWay(0);
});

it('keeps no place for a client that has gone', async () => {
  await whileSettingsWait(async () => {
    const controller = new AbortController();
    const gone = fetch(`${service.url}${SETTINGS}`, {
      headers: service.user.headers,
      signal: controller.signal,
    });
    await underWay(1);
    controller.abort();
    await expect(gone).rejects.toThrow(/abort/i);
    await until(async () => (await get('/api/v1/sandboxes/search')).status === 200);
  });
});
