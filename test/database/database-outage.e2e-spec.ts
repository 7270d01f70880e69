import { getEventListeners } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { ConnectionWatch } from '@slipway/database/connection-watch.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { DatabaseProxy } from '../support/database-proxy.js';
import { createTestDatabase, execute, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

describe('a database that goes away', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let app: TestApp;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await DatabaseProxy.start(database.url);
    const url = new URL(proxy.urlOf(database.url));
    // A statement that hangs is never given up by the driver: the service has to notice.
    url.searchParams.set('query_timeout', '3600000');
    app = await createTestApp({}, url.href);
  });

  afterAll(async () => {
    await app.close();
    await proxy.goAway();
    await database.drop();
  });

  afterEach(async () => {
    await proxy.goAway();
    await proxy.comeBack();
    await until(async () => (await app.as().get('/health/ready')).status === 200);
  });

  /** One request per way of reaching the database: named statement, repository, transaction. */
  const requests: [string, string, object | undefined][] = [
    ['get', '/api/settings', undefined],
    ['get', '/api/secrets', undefined],
    ['get', '/api/v1/users', undefined],
    ['get', '/api/user/suggested-tasks', undefined],
    ['post', '/api/settings', { language: 'en' }],
    ['post', '/api/settings', { mcp_config: null }],
    ['post', '/api/secrets', { name: 'LOST', value: 'x' }],
    ['post', '/api/add-git-providers', { mcp_config: null }],
    ['post', '/api/unset-provider-tokens', {}],
    ['post', '/api/v1/api-keys', { name: 'lost' }],
  ];
  const send = ([method, path, body]: (typeof requests)[number]): request.Test => {
    const agent = request(app.url);
    const test = method === 'get' ? agent.get(path) : agent.post(path).send(body);
    return test.set(app.admin.headers);
  };
  const expectUnavailable = ({ status, headers, body }: request.Response): void => {
    expect({ status, code: body.code, retryAfter: headers['retry-after'] }).toEqual({
      status: 503,
      code: 'unavailable',
      retryAfter: '1',
    });
  };

  it('responds 503 while it is down, and recovers by itself', async () => {
    // The key is cached from here on: what fails is the request's own work.
    await app.as(app.admin).get('/api/secrets').expect(200);
    await proxy.goAway();

    await Promise.all(requests.map(async (each) => expectUnavailable(await send(each))));
    // Whether a key that was not used yet is an administrator's cannot be known.
    for (const headers of [{}, app.user.headers]) {
      const ready = await app.as({ headers }).get('/health/ready');
      expectUnavailable(ready);
      expect(ready.body.parts).toContainEqual(
        expect.objectContaining({ name: 'database', status: 'failed' }),
      );
      expect(ready.text).not.toContain(new URL(app.databaseUrl).port);
    }
    await app.as().get('/health/live').expect(200);
  });

  it('responds 503 to a key that it has to look up', async () => {
    app.clock.advance(10_000);
    await proxy.goAway();

    expectUnavailable(await app.as(app.user).get('/api/secrets'));
  });

  it('responds 503 while nothing arrives over connections that stay open, and recovers by itself', async () => {
    proxy.freeze();
    await Promise.all(requests.map(async (each) => expectUnavailable(await send(each))));
    expect(app.app.get(ConnectionWatch).isSilent).toBe(true);
    expectUnavailable(await app.as().get('/health/ready'));
    await app.as().get('/health/live').expect(200);

    proxy.thaw();

    await until(async () => (await app.as().get('/health/ready')).status === 200);
    await app.as(app.admin).get('/api/secrets').expect(200);
  });

  it('takes changes again once its server, which has become a replica, is not where the address leads', async () => {
    const writable = new URL(database.url);
    writable.searchParams.set('options', '-c default_transaction_read_only=off');
    const rule = `DATABASE ${writable.pathname.slice(1)}`;
    const changes = requests.filter(([method]) => method === 'post');
    await execute(writable.href, `ALTER ${rule} SET default_transaction_read_only = on`);
    await proxy.goAway();
    await proxy.comeBack();
    await Promise.all(changes.map(async (each) => expectUnavailable(await send(each))));

    // For new connections only, like an address that leads to the new primary.
    await execute(writable.href, `ALTER ${rule} RESET default_transaction_read_only`);

    await until(async () =>
      (await Promise.all(changes.map((each) => send(each)))).every(({ status }) => status !== 503),
    );
    await app.as(app.admin).post('/api/settings', { language: 'en' }).expect(200);
  });

  it('leaves nothing behind of connections for notifications that are gone', async () => {
    const notifications = app.app.get(DatabaseNotifications);
    for (let outages = 0; outages < 3; outages += 1) {
      await proxy.goAway();
      await until(() => !notifications.isConnected);
      await proxy.comeBack();
      await until(() => notifications.isConnected);
    }

    expect(getEventListeners(notifications['stopped'].signal, 'abort')).toHaveLength(1);
  });

  it('leaves a statement alone that is only slow', async () => {
    const [row] = await app.dataSource.query<{ slept: string }[]>(`SELECT 'all' AS slept, pg_sleep(2.5)`);

    expect(row?.slept).toBe('all');
    expect(app.app.get(ConnectionWatch).isSilent).toBe(false);
  });
});
