import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type request from 'supertest';
import { WebhookDeliveryWorker } from '../../src/outbound-webhooks/webhook-delivery.worker.js';
import { ATTEMPT_TIMEOUT_MS } from '../../src/outbound-webhooks/webhook.sender.js';
import { FakeServer } from '../fakes/fake-server.js';
import type { TestUser } from '../support/create-test-app.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';
import { WebhooksClient } from '../support/webhooks-client.js';

const KEPT = 100;
/** Without those for users who have nothing under way. */
const IN_LANE = 24;
const OF_A_USER = 10;
/** When an attempt leaves the lane. */
const SLOW_AFTER_MS = 1_000;
const NEVER_MS = 600_000;

const gate = new Gate();
let receiver: FakeServer;
let user: TestUser;

const app = useTestApp(async () => {
  receiver = await FakeServer.start(async () => {
    await gate.pass();
    return { status: 204 };
  });
  return { WEBHOOK_HOST_ALLOWLIST: receiver.origin };
});
afterAll(() => receiver.close());

beforeEach(async () => {
  user = await app.createUser();
  receiver.requests.length = 0;
});

// What hangs would have places in the lane of the next test.
afterEach(async () => {
  receiver.clearFaults();
  await app.dataSource.query('DELETE FROM webhook_endpoints');
  receiver.hangUp();
  await app.app.get(WebhookDeliveryWorker).now();
});

const as = (who: TestUser): WebhooksClient => new WebhooksClient(app, who);
const call = (...given: Parameters<WebhooksClient['call']>): request.Test => as(user).call(...given);
const create = async (path: string, body: object = {}, by = user): Promise<string> =>
  (await as(by).create(`${receiver.origin}${path}`, body)).id;
const publish = (by = user) => as(by).publish();
const deliveries = (id: string) => as(user).deliveries(id, '?limit=100');

/** Deliveries of the past, the first of which are the oldest. */
async function add(endpointId: string, statuses: string[]): Promise<string[]> {
  const ids = statuses.map(() => randomUUID());
  await app.dataSource.query(
    `INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at, next_attempt_at)
     SELECT id, $1, 'conversation.finished', '{}', status, $2::timestamptz + n * interval '1 second', $4
     FROM ROWS FROM (unnest($3::uuid[]), unnest($5::text[])) WITH ORDINALITY AS one (id, status, n)`,
    [endpointId, new Date(app.clock.now() - 3_600_000), ids, new Date(app.clock.now() + 3_600_000), statuses],
  );
  return ids;
}

async function rowsOf(endpointId: string): Promise<number> {
  const [row] = await app.dataSource.query<{ count: number }[]>(
    'SELECT count(*)::int FROM webhook_deliveries WHERE endpoint_id = $1',
    [endpointId],
  );
  return row?.count ?? 0;
}

/** Keeps attempts in the lane until something is done, however slow the machine is. */
async function whileTheLaneIsFull(act: () => Promise<void>): Promise<void> {
  const { setTimeout: start } = globalThis;
  const leaving: (() => void)[] = [];
  const timers = jest.spyOn(globalThis, 'setTimeout').mockImplementation((pass, milliseconds, ...given) => {
    if (milliseconds === SLOW_AFTER_MS) {
      leaving.push(() => pass(...given));
    }
    const isHeld = milliseconds === SLOW_AFTER_MS || milliseconds === ATTEMPT_TIMEOUT_MS;
    return start(pass, isHeld ? NEVER_MS : milliseconds, ...given);
  });
  try {
    await act();
  } finally {
    timers.mockRestore();
    leaving.forEach((leave) => leave());
  }
}

describe('users', () => {
  it('are sent to at once while servers of others take deliveries and never answer', async () => {
    receiver.injectFault({ kind: 'hang' }, { match: ({ path }) => path === '/hang' });
    const others = await Promise.all(Array.from({ length: 4 }, async () => app.createUser()));
    const theirs = others.flatMap((other) => Array.from({ length: OF_A_USER }, () => other));
    await Promise.all(theirs.map((other) => create('/hang', {}, other)));
    await create('/quick');
    // What hangs for long is broken off, and comes again.
    const hanging = () => {
      const sent = receiver.requests.filter(({ path }) => path === '/hang');
      return new Set(sent.map(({ headers }) => headers['webhook-id'])).size;
    };
    let before = 0;
    await whileTheLaneIsFull(async () => {
      await Promise.all(others.map(async (other) => publish(other)));
      await until(() => hanging() >= IN_LANE);
      await publish();
      await until(() => receiver.requests.some(({ path }) => path === '/quick'));
      before = hanging();
    });
    await until(() => hanging() === theirs.length);

    // It was published last, and did not wait for its turn.
    expect(before).toBeLessThan(theirs.length);
  });
});

describe('deliveries', () => {
  it('beyond the newest hundred are removed as one is added, and those that had not arrived are counted', async () => {
    const id = await create('/hook');
    const statuses = Array.from({ length: KEPT + 20 }, (_, index) => (index < 22 ? 'pending' : 'delivered'));
    statuses.splice(3, 1, 'delivered');
    const [, ...ids] = await add(id, statuses);
    await publish();
    await until(async () => (await deliveries(id))[0]?.status === 'delivered');

    const [newest, ...older] = await deliveries(id);
    expect(older.map((delivery) => delivery.id)).toEqual(ids.slice(20).toReversed());
    expect(newest?.dropped).toBe(20);
    expect(await rowsOf(id)).toBe(KEPT);
  });

  it('of one endpoint are not removed for those of another', async () => {
    const id = await create('/hook', { events: ['conversation.error'] });
    await create('/hook');
    await add(
      id,
      Array.from({ length: KEPT }, () => 'delivered'),
    );
    await publish();
    await until(() => receiver.requests.length === 1);

    expect(await rowsOf(id)).toBe(KEPT);
  });

  it('that are added at the same time leave a hundred as well', async () => {
    const id = await create('/hook');
    await add(
      id,
      Array.from({ length: KEPT }, () => 'delivered'),
    );
    await Promise.all(Array.from({ length: 10 }, async () => publish()));
    await until(async () => (await deliveries(id)).every(({ status }) => status === 'delivered'));

    expect(receiver.requests).toHaveLength(10);
    expect(await rowsOf(id)).toBe(KEPT);
  });
});

describe('test deliveries', () => {
  beforeAll(() => app.clock.stop());

  it('are 60 a minute for all endpoints of a user, kept like others', async () => {
    const ids = [await create('/one'), await create('/two')];
    await add(
      ids[0] ?? '',
      Array.from({ length: KEPT }, () => 'delivered'),
    );
    // Four at a time, the most that are sent at once.
    for (let count = 0; count < 60; count += 4) {
      await Promise.all([0, 1, 0, 1].map((which) => call('post', `/${ids[which]}/test`).expect(200)));
    }
    app.clock.advance(20_000);
    const { headers, body } = await call('post', `/${ids[0]}/test`).expect(429);

    expect(body).toMatchObject({ code: 'rate_limited' });
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(40);
    expect(Number(headers['retry-after'])).toBeGreaterThan(20);
    expect(receiver.requests).toHaveLength(60);
    expect(await rowsOf(ids[0] ?? '')).toBe(KEPT);
    const other = await app.createUser();
    await as(other)
      .call('post', `/${await create('/hook', {}, other)}/test`)
      .expect(200);
    // They are no more for a user who removes an endpoint and makes a new one.
    await call('delete', `/${ids[1]}`).expect(204);
    ids[1] = await create('/two');
    await call('post', `/${ids[1]}/test`).expect(429);
    app.clock.advance(40_000);
    await call('post', `/${ids[1]}/test`).expect(200);
  });

  it('are sent no faster by asking many times at once', async () => {
    const id = await create('/hook');
    gate.close();
    const answers = Promise.all(
      Array.from({ length: 20 }, async () => (await call('post', `/${id}/test`)).status),
    );
    await until(() => gate.waiting === 4);
    const stranger = await app.createUser();
    const theirs = as(stranger)
      .call('post', `/${await create('/hook', {}, stranger)}/test`)
      .then(({ status }) => status);
    await until(() => gate.waiting === 5);
    gate.open();

    expect(await theirs).toBe(200);
    expect((await answers).filter((status) => status === 429)).toHaveLength(16);
    expect(receiver.requests).toHaveLength(5);
  });
});
