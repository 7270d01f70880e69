import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import {
  type ClaimedDelivery,
  DELIVERIES_CHANNEL,
  WebhookDeliveryRepository,
} from '../../src/outbound-webhooks/webhook-delivery.repository.js';
import { FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';

const PATH = '/api/v1/webhook-endpoints';
const KEPT = 100;
/** Without those for users who have nothing under way. */
const IN_LANE = 24;
const OF_A_USER = 10;

interface Delivery {
  id: string;
  event_type: string;
  status: string;
  dropped: number;
}

const gate = new Gate();
let receiver: FakeServer;
let app: TestApp;
let user: TestUser;

beforeAll(async () => {
  receiver = await FakeServer.start(async () => {
    await gate.pass();
    return { status: 204 };
  });
  app = await createTestApp({ WEBHOOK_HOST_ALLOWLIST: receiver.origin, RATE_LIMIT_PER_MINUTE: '0' });
});

beforeEach(async () => {
  user = await app.createUser();
  receiver.requests.length = 0;
});

afterEach(async () => {
  receiver.clearFaults();
  await app.dataSource.query('DELETE FROM webhook_endpoints');
});

afterAll(async () => {
  await app.close();
  await receiver.close();
});

function call(method: 'get' | 'post', path = '', as = user): request.Test {
  return request(app.url)[method](`${PATH}${path}`).set(as.headers);
}

async function create(path: string, body: object = {}, as = user): Promise<string> {
  const url = `${receiver.origin}${path}`;
  const { body: created } = await call('post', '', as)
    .send({ url, ...body })
    .expect(201);
  return created.id;
}

async function publish(as = user): Promise<void> {
  await app.dataSource.transaction(async (manager) => {
    const event = { type: 'conversation.finished', data: {} } as const;
    await app.app.get(WebhookDeliveryRepository).publish(manager, as.id, event);
  });
}

async function deliveries(id: string): Promise<Delivery[]> {
  const { body } = await call('get', `/${id}/deliveries?limit=100`).expect(200);
  return body.items;
}

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

describe('users', () => {
  it('are sent to at once while servers of others take deliveries and never answer', async () => {
    receiver.injectFault({ kind: 'hang' }, { match: ({ path }) => path === '/hang' });
    const others = await Promise.all(Array.from({ length: 8 }, async () => app.createUser()));
    for (const other of others) {
      await Promise.all(Array.from({ length: OF_A_USER }, async () => create('/hang', {}, other)));
    }
    await create('/quick');
    await Promise.all(others.map(async (other) => publish(other)));
    const hanging = () => receiver.requests.filter(({ path }) => path === '/hang').length;
    await until(() => hanging() >= IN_LANE);
    await publish();
    await until(() => receiver.requests.some(({ path }) => path === '/quick'));
    await until(() => hanging() === others.length * OF_A_USER);

    // It was published last, and did not wait for its turn.
    const order = receiver.requests.map(({ path }) => path);
    expect(order.indexOf('/quick')).toBeLessThan(others.length * OF_A_USER);
  });

  it('take turns: of many that wait, each has as many under way as another, first who has waited longest', async () => {
    receiver.injectFault({ kind: 'hang' });
    const users = await Promise.all(Array.from({ length: 5 }, async () => app.createUser()));
    const now = app.clock.now();
    for (const [index, other] of users.entries()) {
      for (let count = 0; count < OF_A_USER; count += 1) {
        const [id] = await add(await create(`/${index}`, {}, other), ['pending']);
        const due = new Date(now + (count + 1) * 60_000 - index * 1000);
        await app.dataSource.query('UPDATE webhook_deliveries SET next_attempt_at = $1 WHERE id = $2', [
          due,
          id,
        ]);
      }
    }
    // Requests arrive in another order, and slow ones make room for others: what counts is who is claimed first.
    const repository = app.app.get(WebhookDeliveryRepository);
    const claim = repository.claim.bind(repository);
    const claims: ClaimedDelivery[][] = [];
    const spy = jest.spyOn(repository, 'claim').mockImplementation(async (...work) => {
      const claimed = await claim(...work);
      claims.push(claimed);
      return claimed;
    });
    app.clock.advance(3_600_000);
    await app.dataSource.query(`SELECT pg_notify('${DELIVERIES_CHANNEL}', '')`);
    await until(() => claims.some(({ length }) => length > 0));
    spy.mockRestore();

    const first = claims.find(({ length }) => length > 0) ?? [];
    const turns = (place: number) => Math.floor((first.length + place) / users.length);
    const ofUser = (id: string) => first.filter(({ endpoint }) => endpoint.userId === id).length;
    expect(first.length).toBeGreaterThan(2 * users.length);
    expect(users.map(({ id }) => ofUser(id))).toEqual(users.map((_user, index) => turns(index)));
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
    for (let count = 0; count < 60; count += 1) {
      await call('post', `/${ids[count % 2]}/test`).expect(200);
    }
    app.clock.advance(20_000);
    const { headers, body } = await call('post', `/${ids[0]}/test`).expect(429);

    expect(body).toMatchObject({ code: 'rate_limited' });
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(40);
    expect(Number(headers['retry-after'])).toBeGreaterThan(20);
    expect(receiver.requests).toHaveLength(60);
    expect(await rowsOf(ids[0] ?? '')).toBe(KEPT);
    const other = await app.createUser();
    await call('post', `/${await create('/hook', {}, other)}/test`, other).expect(200);
    app.clock.advance(40_000);
    await call('post', `/${ids[1]}/test`).expect(200);
  });

  it('are no more for a user who removes endpoints and makes new ones', async () => {
    let id = await create('/hook');
    for (let count = 0; count < 60; count += 1) {
      await call('post', `/${id}/test`).expect(200);
    }
    await request(app.url).delete(`${PATH}/${id}`).set(user.headers).expect(204);
    id = await create('/hook');

    await call('post', `/${id}/test`).expect(429);
    app.clock.advance(60_000);
    await call('post', `/${id}/test`).expect(200);
  });

  it('are sent no faster by asking many times at once', async () => {
    const id = await create('/hook');
    gate.close();
    const answers = Promise.all(
      Array.from({ length: 20 }, async () => (await call('post', `/${id}/test`)).status),
    );
    await until(() => gate.waiting === 4);
    const stranger = await app.createUser();
    const theirs = call('post', `/${await create('/hook', {}, stranger)}/test`, stranger).then(
      ({ status }) => status,
    );
    await until(() => gate.waiting === 5);
    gate.open();

    expect(await theirs).toBe(200);
    expect((await answers).filter((status) => status === 429)).toHaveLength(16);
    expect(receiver.requests).toHaveLength(5);
  });
});
