import { afterEach, beforeEach, expect, it } from '@jest/globals';
import request from 'supertest';
import { FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { Gate } from '../support/gate.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';
import { announceDeliveries, WebhooksClient } from '../support/webhooks-client.js';

let gate: Gate;
let receiver: FakeServer;
let database: TestDatabase;
let first: TestApp;
let endpointId: string;
const replicas: TestApp[] = [];

async function replica(): Promise<TestApp> {
  const app = await createTestApp({ WEBHOOK_HOST_ALLOWLIST: receiver.origin }, database.url);
  replicas.push(app);
  return app;
}

beforeEach(async () => {
  gate = new Gate();
  receiver = await FakeServer.start(async () => {
    await gate.pass();
    return { status: 204 };
  });
  database = await createTestDatabase();
  first = await replica();
  ({ id: endpointId } = await at(first).create(`${receiver.origin}/hook`));
});

afterEach(async () => {
  gate.open();
  await Promise.all(replicas.splice(0).map((app) => app.close()));
  await receiver.close();
  await database.drop();
});

async function stop(app: TestApp): Promise<void> {
  replicas.splice(replicas.indexOf(app), 1);
  await app.close();
}

const at = (replica: TestApp): WebhooksClient => new WebhooksClient(replica, first.user);
const publish = (replica: TestApp) => at(replica).publish();
const deliveries = (replica: TestApp) => at(replica).deliveries(endpointId);

it('an attempt that a stopping replica breaks off counts as none, and is made by another one at once', async () => {
  gate.close();
  await publish(first);
  await until(() => gate.waiting === 1);
  const second = await replica();
  await stop(first);
  gate.open();
  await until(async () => (await deliveries(second))[0]?.status === 'delivered');

  expect(await deliveries(second)).toMatchObject([{ attempts: 1 }]);
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
});

it('an attempt that outlasts its claim, since its process stalled, is made again, and its end changes nothing', async () => {
  receiver.injectFault({ kind: 'hang' }, { times: 1 });
  await publish(first);
  await until(() => receiver.requests.length === 1);
  const second = await replica();
  const keyAt = async ({ url }: TestApp) =>
    (await request(url).get('/api/v1/push/key').set(first.user.headers).expect(200)).body.public_key;
  // Whichever made it.
  expect(await keyAt(second)).toBe(await keyAt(first));
  second.clock.advance(60_000);
  await announceDeliveries(second);
  await until(async () => (await deliveries(second))[0]?.status === 'delivered');
  await stop(second);
  receiver.hangUp();
  // It sends the next one when that attempt has ended.
  await publish(first);
  await until(async () => (await deliveries(first))[0]?.status === 'delivered');

  expect(await deliveries(first)).toMatchObject([
    { status: 'delivered', attempts: 1 },
    { status: 'delivered', attempts: 2, last_response_status: 204, last_error: null },
  ]);
  const [stalled, again] = receiver.requests.map(({ headers }) => headers['webhook-id']);
  expect(again).toBe(stalled);
});

it('an endpoint that failed before the service was off for days is tried again, not disabled', async () => {
  receiver.injectFault({ kind: 'status', status: 503 }, { times: 2 });
  await publish(first);
  await until(async () => (await deliveries(first))[0]?.last_response_status === 503);
  // This one has begun just now.
  await first.dataSource.query(
    "UPDATE webhook_endpoints SET failing_since = failing_since - interval '3 days'",
  );
  await until(async () => {
    first.clock.advance(10_000);
    await announceDeliveries(first);
    return (await deliveries(first))[0]?.status === 'delivered';
  });
  expect(await deliveries(first)).toMatchObject([{ attempts: 3 }]);
});

it('an attempt that somebody waits for ends before its replica does', async () => {
  gate.close();
  const tried = at(first)
    .call('post', `/${endpointId}/test`)
    .then(({ status, body }) => ({ status, body }));
  await until(() => gate.waiting === 1);
  const stopped = stop(first);
  await until(async () => (await fetch(`${first.url}/health/live`).catch(() => null)) === null);
  gate.open();

  expect(await tried).toMatchObject({ status: 200, body: { status: 'delivered' } });
  await stopped;
});
