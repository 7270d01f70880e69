import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import type request from 'supertest';
import type { MetricsSnapshot } from '@slipway/agent-protocol/conversation-api.js';
import { WebhookDeliveryRepository } from '../../src/outbound-webhooks/webhook-delivery.repository.js';
import { WebhookDeliveryWorker } from '../../src/outbound-webhooks/webhook-delivery.worker.js';
import { jsonBodyOf } from '../../packages/api/src/openapi/invalid-input-example.js';
import { buildOpenApiDocument } from '../../src/common/openapi/openapi-document.js';
import type { WebhookEvent } from '../../src/outbound-webhooks/webhook-event.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { FakeServer } from '../fakes/fake-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { type JsonSchema, schemaProblems } from '../support/schema-problems.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';
import {
  announceDeliveries,
  FINISHED,
  type ShownDelivery,
  WebhooksClient,
} from '../support/webhooks-client.js';

const A_DAY = 24 * 3600;

let receiver: FakeServer;
let user: TestUser;
let document: OpenAPIObject | undefined;

const app = useTestApp(async () => {
  receiver = await FakeServer.start(() => ({ status: 204 }));
  return {
    OUTBOUND_ALLOWLIST: 'llm.example.org',
    WEBHOOK_HOST_ALLOWLIST: `${receiver.origin},*.example.com`,
  };
});
afterAll(() => receiver.close());

beforeEach(async () => {
  user = await app.createUser();
  receiver.requests.length = 0;
});

// What still waits would be sent to the next test.
afterEach(async () => {
  app.clock.resume();
  receiver.clearFaults();
  await app.dataSource.query('DELETE FROM webhook_endpoints');
});

const as = (who: TestUser): WebhooksClient => new WebhooksClient(app, who);
const call = (...given: Parameters<WebhooksClient['call']>): request.Test => as(user).call(...given);
const create = (body: object = {}) => as(user).create(`${receiver.origin}/hook`, body);
const publish = (event?: WebhookEvent) => as(user).publish(event);
const deliveries = (id: string, query?: string) => as(user).deliveries(id, query);

/** Where a body differs from what the document says of its type. */
function undocumented(body: { type: string }): string[] {
  document ??= buildOpenApiDocument(app.app);
  const { webhooks, components } = document;
  const operation = webhooks?.[body.type]?.post;
  const schema = operation && jsonBodyOf(operation)?.schema;
  return schema
    ? schemaProblems(body, schema as JsonSchema, components?.schemas as Record<string, JsonSchema>)
    : [`${body.type} is not documented`];
}

/** Lets time pass, and workers look. */
async function pass(seconds: number): Promise<void> {
  app.clock.advance(seconds * 1000);
  await announceDeliveries(app);
}

/** Lets time pass until the next attempt, or beyond, and waits for it. The clock must stand, or it may be under way already. */
async function attemptAgain(id: string, beyondSeconds = 0): Promise<void> {
  const [before] = await deliveries(id);
  const at = Date.parse(before?.next_attempt_at ?? '');
  // Until the next attempt has ended, its delivery shows how the one before went.
  await app.dataSource.query('UPDATE webhook_deliveries SET last_error = NULL WHERE endpoint_id = $1', [id]);
  await pass((at - app.clock.now()) / 1000 + beyondSeconds);
  await until(async () => (await deliveries(id))[0]?.attempts === (before?.attempts ?? 0) + 1);
  await until(async () => (await deliveries(id))[0]?.last_error !== null);
}

describe('webhook endpoints', () => {
  it('are gone for a test that was asked for at the same time', async () => {
    const { id } = await create();
    const testing = await app.dataSource.transaction(async (manager) => {
      await manager.query('DELETE FROM webhook_endpoints WHERE id = $1', [id]);
      const tested = call('post', `/${id}/test`).then(({ status }) => status);
      await untilBlocked(app.dataSource);
      return { tested };
    });

    expect(await testing.tested).toBe(404);
    expect(receiver.requests).toEqual([]);
  });

  it('are created, listed, changed and removed, and show their secret once', async () => {
    const created = await call('post').send({ url: 'https://ci.example.com/a?key=1' }).expect(201);
    expect(created.body).toEqual({
      id: expect.any(String),
      url: 'https://ci.example.com/a?key=1',
      description: null,
      events: ['*'],
      enabled: true,
      disabled_reason: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
      secret: expect.stringMatching(/^whsec_/),
    });
    const { secret, ...shown } = created.body;
    expect((await call('get').expect(200)).body).toEqual([shown]);

    const changed = await call('patch', `/${shown.id}`)
      .send({ events: ['conversation.error'], description: 'CI', enabled: false })
      .expect(200);
    expect(changed.body).toMatchObject({ events: ['conversation.error'], description: 'CI', enabled: false });
    expect((await call('get', `/${shown.id}`).expect(200)).body).toEqual(changed.body);

    const rotated = await call('post', `/${shown.id}/rotate-secret`).expect(200);
    expect(rotated.body.secret).not.toBe(secret);
    const stored = await app.dataSource.query<{ secret: string }[]>('SELECT secret FROM webhook_endpoints');
    expect(JSON.stringify(stored)).not.toContain(rotated.body.secret.slice(6));

    await call('delete', `/${shown.id}`).expect(204);
    await call('get', `/${shown.id}`).expect(404);
    await call('delete', `/${shown.id}`).expect(404);
  });

  it.each([
    'https://10.0.0.1/a',
    'http://ci.example.com/a',
    'https://elsewhere.example.org/',
    'https://me:pass@ci.example.com/',
    'ftp://ci.example.com/',
  ])('refuses %s', async (url) => {
    const { body } = await call('post').send({ url }).expect(422);
    expect(body.detail[0].loc).toEqual(['body', 'url']);
    expect((await call('get').expect(200)).body).toEqual([]);
  });

  it('are told nothing of other users, and forgotten with their own', async () => {
    const { id } = await create();
    await as(await app.createUser()).publish();
    await publish();
    expect(await deliveries(id)).toHaveLength(1);
    await app.as(app.admin).delete(`/api/v1/users/${user.id}`).expect(204);
    const left = 'SELECT FROM webhook_endpoints WHERE user_id = $1';
    expect(await app.dataSource.query(left, [user.id])).toEqual([]);
  });
});

/** How PostgreSQL runs a statement, as JSON. */
async function planOf(statement: string, values: unknown[]): Promise<string> {
  const [explained] = await app.dataSource.query<{ 'QUERY PLAN': unknown }[]>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`,
    values,
  );
  return JSON.stringify(explained?.['QUERY PLAN']);
}

function spent(cost: number, budget: number | null): MetricsSnapshot {
  return {
    model_name: 'provider/model-1',
    accumulated_cost: cost,
    max_budget_per_task: budget,
    accumulated_token_usage: null,
  };
}

function signature(): unknown {
  return receiver.requests.at(-1)?.headers['webhook-signature'];
}

/** The signature of the last request by the rules of Standard Webhooks. */
function signedWith(secret: string): string {
  const { headers, body } = receiver.requests.at(-1) ?? {};
  const digest = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${headers?.['webhook-id']}.${headers?.['webhook-timestamp']}.${body}`)
    .digest('base64');
  return `v1,${digest}`;
}

describe('deliveries', () => {
  it('are signed posts of the events that an endpoint wants', async () => {
    const { id, secret } = await create({ events: ['conversation.finished'] });
    await publish({ type: 'conversation.error', data: {} });
    await publish();
    await until(async () => (await deliveries(id))[0]?.status === 'delivered');

    expect(receiver.requests).toHaveLength(1);
    const [sent] = receiver.requests;
    const [delivery] = await deliveries(id);
    expect(JSON.parse(sent?.body ?? '')).toEqual({
      id: delivery?.id,
      type: 'conversation.finished',
      timestamp: expect.any(String),
      data: FINISHED.data,
    });
    expect(sent?.headers['webhook-signature']).toBe(signedWith(secret));
    expect(sent?.headers['webhook-id']).toBe(delivery?.id);
  });

  it('are signed with the former secret, too, for a day after it was replaced', async () => {
    const { id, secret: first } = await create();
    const { secret: second } = (await call('post', `/${id}/rotate-secret`).expect(200)).body;
    await publish();
    await until(() => receiver.requests.length === 1);
    expect(signature()).toBe(`${signedWith(second)} ${signedWith(first)}`);

    const third = `whsec_${Buffer.alloc(32).toString('base64')}`;
    await call('patch', `/${id}`).send({ secret: third }).expect(200);
    await publish();
    await until(() => receiver.requests.length === 2);
    expect(signature()).toBe(`${signedWith(third)} ${signedWith(second)}`);

    await pass(86_400);
    await publish();
    await until(() => receiver.requests.length === 3);
    expect(signature()).toBe(signedWith(third));
  });

  it('are signed again once a secret that no key decrypts was replaced', async () => {
    const { id } = await create();
    await app.dataSource.query('UPDATE webhook_endpoints SET secret = $2 WHERE id = $1', [id, 'lost:AAAA']);

    const { secret } = (await call('post', `/${id}/rotate-secret`).expect(200)).body;
    await publish();
    await until(() => receiver.requests.length === 1);
    expect(signature()).toBe(signedWith(secret));
  });

  it('come from what happens to a conversation', async () => {
    const { id } = await create();
    const conversation = await new ConversationRows(app).conversation(user.id);
    const followed = app.app.get(FollowedConversationRepository);
    await followed.updateState(conversation.id, { executionStatus: 'running' });
    await followed.updateState(conversation.id, { executionStatus: 'running' });
    await followed.updateState(conversation.id, { executionStatus: 'finished' });
    await until(() => receiver.requests.length === 2);

    expect(receiver.requests.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: 'conversation.running', data: { conversation_id: conversation.hex } },
      { type: 'conversation.finished', data: { sandbox_id: conversation.sandboxId } },
    ]);
    expect((await deliveries(id)).map(({ event_type: type }) => type)).toEqual([
      'conversation.finished',
      'conversation.running',
    ]);
    await call('post', `/${id}/test`).expect(200);
    expect(receiver.requests.flatMap(({ body }) => undocumented(JSON.parse(body)))).toEqual([]);
  });

  it('say what is known of the conversation', async () => {
    await create({ events: ['conversation.finished', 'conversation.error'] });
    const { id, hex, sandboxId } = await new ConversationRows(app).conversation(user.id, {
      tags: { team: 'checkout' },
      selectedRepository: 'octo/app',
      resultSchema: { type: 'object' },
      pullRequests: [3, 4].map((number) => ({
        number,
        url: `https://github.com/octo/app/pull/${number}`,
        title: 'Fix it',
        source_branch: 'fix/it',
      })),
    });
    const followed = app.app.get(FollowedConversationRepository);
    const result = { passed: true };
    await followed.updateState(id, { executionStatus: 'finished', result, metrics: spent(0.25, null) });
    const error = { code: 'LlmFailed', detail: 'No answer.' };
    await followed.updateState(id, { executionStatus: 'error', error, result: 'x'.repeat(65_536) });
    await until(() => receiver.requests.length === 2);

    const report = {
      conversation_id: hex,
      sandbox_id: sandboxId,
      tags: { team: 'checkout' },
      cost: 0.25,
      repository: 'octo/app',
      pull_request: { number: 4, url: 'https://github.com/octo/app/pull/4' },
    };
    const bodies = receiver.requests.map(({ body }) => JSON.parse(body));
    expect(bodies.map(({ data }) => data)).toEqual([
      { ...report, execution_status: 'finished', result, error: null },
      { ...report, execution_status: 'error', result: null, error },
    ]);
    expect(bodies.flatMap(undocumented)).toEqual([]);
  });

  it('tell of 80 % and of all of a budget, each once', async () => {
    await create({ events: ['budget.threshold'] });
    const { id, hex } = await new ConversationRows(app).conversation(user.id);
    const followed = app.app.get(FollowedConversationRepository);
    for (const cost of [0.5, 1.7, 1.8, 2, 2.5]) {
      await followed.updateState(id, { metrics: spent(cost, 2) });
    }
    await until(() => receiver.requests.length === 2);

    const bodies = receiver.requests.map(({ body }) => JSON.parse(body));
    expect(bodies).toMatchObject([
      { type: 'budget.threshold', data: { conversation_id: hex, threshold: 0.8, budget: 2, cost: 1.7 } },
      { type: 'budget.threshold', data: { conversation_id: hex, threshold: 1, budget: 2, cost: 2 } },
    ]);
    expect(bodies.flatMap(undocumented)).toEqual([]);
  });

  it('are repeated with the same id until the server takes them', async () => {
    app.clock.stop();
    const { id } = await create();
    receiver.injectFault({ kind: 'status', status: 500 }, { times: 1 });
    receiver.injectFault({ kind: 'reset' }, { times: 1 });
    await publish();
    await until(async () => (await deliveries(id))[0]?.last_error !== null);
    expect((await deliveries(id))[0]).toMatchObject({
      status: 'pending',
      attempts: 1,
      last_response_status: 500,
      last_error: 'The server answered with status 500.',
    });

    await attemptAgain(id);
    expect((await deliveries(id))[0]).toMatchObject({
      status: 'pending',
      last_response_status: null,
      last_error: 'The server cannot be reached: ECONNRESET.',
    });

    await pass(A_DAY);
    await until(async () => (await deliveries(id))[0]?.status === 'delivered');
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1);
  });

  // svix/svix-webhooks#2200: an attempt that comes earlier is refused as well, and counts.
  it.each([
    ['seconds', (at: number) => String(Math.ceil((at - app.clock.now()) / 1000))],
    ['a date', (at: number) => new Date(at).toUTCString()],
  ])('are repeated no earlier than a server asks, with %s', async (_, given) => {
    const { id } = await create();
    const at = Math.ceil(app.clock.now() / 1000) * 1000 + 240_000;
    receiver.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': given(at) } });
    await publish();
    await until(async () => (await deliveries(id))[0]?.last_error !== null);

    expect(Date.parse((await deliveries(id))[0]?.next_attempt_at ?? '')).toBeGreaterThanOrEqual(at);
  });

  it('end after the last attempt, and with them the endpoint that took nothing', async () => {
    app.clock.stop();
    const { id } = await create();
    receiver.injectFault({ kind: 'status', status: 503 });
    await publish();
    await until(async () => (await deliveries(id))[0]?.last_error !== null);
    await app.dataSource.query('UPDATE webhook_deliveries SET attempts = 9 WHERE endpoint_id = $1', [id]);
    await attemptAgain(id);
    await attemptAgain(id, 2 * A_DAY);
    await until(async () => !(await call('get', `/${id}`)).body.enabled);
    expect((await deliveries(id, '?status=failed'))[0]).toMatchObject({
      attempts: 11,
      next_attempt_at: null,
    });
    expect((await call('get', `/${id}`)).body.disabled_reason).toContain('No delivery has arrived');

    await publish();
    expect(await deliveries(id)).toHaveLength(1);
    receiver.clearFaults();
    const { body } = await call('patch', `/${id}`).send({ enabled: true }).expect(200);
    expect(body).toMatchObject({ enabled: true, disabled_reason: null });
    const [failed] = await deliveries(id);
    await call('post', `/${id}/deliveries/${failed?.id}/redeliver`).expect(202);
    await until(async () => (await deliveries(id))[0]?.status === 'delivered');
  });

  // superduck-ai/open-managed-agents#290: of a busy user, each is replaced by newer ones before its last attempt.
  it('end with an endpoint that takes nothing for two days, however many there are', async () => {
    const { id } = await create();
    receiver.injectFault({ kind: 'status', status: 503 });
    const isEnabled = async () => (await call('get', `/${id}`).expect(200)).body.enabled;
    await publish();
    await until(async () => (await deliveries(id))[0]?.last_error !== null);
    for (let hours = 0; hours < 47; hours += 1) {
      await Promise.all([publish(), publish(), publish()]);
      await pass(3600);
    }
    expect(await isEnabled()).toBe(true);
    await pass(3600);
    await publish();
    await until(async () => !(await isEnabled()));

    // Those that wait would be sent first, one after the other.
    await app.dataSource.query('DELETE FROM webhook_deliveries WHERE endpoint_id = $1', [id]);
    await call('patch', `/${id}`).send({ enabled: true }).expect(200);
    await publish();
    await app.app.get(WebhookDeliveryWorker).now();
    expect((await deliveries(id))[0]?.last_error).not.toBeNull();
    expect(await isEnabled()).toBe(true);
  });

  // hookdeck/outpost#611, Standard Webhooks: the later attempts are up to 20 hours apart.
  it.each([
    ['enables it', () => ({ enabled: true })],
    ['gives its new address', () => ({ url: `${receiver.origin}/new` })],
  ])('that wait for an endpoint are sent at once when its owner %s', async (_, change) => {
    const { id } = await create();
    receiver.injectFault({ kind: 'status', status: 503 });
    await publish();
    await until(async () => (await deliveries(id))[0]?.last_error !== null);
    await app.dataSource.query('UPDATE webhook_deliveries SET next_attempt_at = $2 WHERE endpoint_id = $1', [
      id,
      new Date(app.clock.now() + 1000 * A_DAY),
    ]);
    receiver.clearFaults();
    await call('patch', `/${id}`).send(change()).expect(200);

    await until(async () => (await deliveries(id))[0]?.status === 'delivered');
  });

  it('stop when the server says that it is gone', async () => {
    const { id } = await create();
    receiver.injectFault({ kind: 'status', status: 410 });
    await publish();
    await until(async () => !(await call('get', `/${id}`)).body.enabled);
    expect((await deliveries(id))[0]).toMatchObject({ status: 'failed', last_response_status: 410 });
  });

  it('end while their endpoint is locked, as by its removal, which locks them next', async () => {
    const { id } = await create();
    receiver.injectFault({ kind: 'hang' });
    await publish();
    await until(() => receiver.requests.length === 1);
    await app.dataSource.transaction(async (manager) => {
      await manager.query('SELECT FROM webhook_endpoints WHERE id = $1 FOR UPDATE', [id]);
      receiver.hangUp();
      await until(async () => (await deliveries(id))[0]?.last_error !== null);
    });
    await call('delete', `/${id}`).expect(204);
  });

  it('to a slow server do not hold up those to others', async () => {
    const { id: slow } = await create({ url: `${receiver.origin}/slow` });
    const { id: quick } = await create({ url: `${receiver.origin}/quick` });
    receiver.injectFault({ kind: 'hang' }, { match: ({ path }) => path === '/slow' });
    await publish();
    await publish();
    await until(async () => (await deliveries(quick, '?status=delivered')).length === 2);
    expect((await deliveries(slow)).map(({ status }) => status)).toEqual(['pending', 'pending']);
    expect(receiver.requests.filter(({ path }) => path === '/slow')).toHaveLength(1);
    await call('delete', `/${slow}`).expect(204);
  });

  it('can be tried, also while the endpoint is disabled', async () => {
    const { id } = await create({ enabled: false });
    const { body: good } = await call('post', `/${id}/test`).expect(200);
    expect(good).toMatchObject({ event_type: 'test', status: 'delivered', last_response_status: 204 });

    receiver.injectFault({ kind: 'status', status: 404 });
    const { body: bad } = await call('post', `/${id}/test`).expect(200);
    expect(bad).toMatchObject({ status: 'failed', last_response_status: 404, next_attempt_at: null });
    expect((await call('get', `/${id}`)).body.disabled_reason).toBeNull();
  });

  it('are read in pages', async () => {
    const { id } = await create({ enabled: false });
    for (let count = 0; count < 3; count += 1) {
      await call('post', `/${id}/test`).expect(200);
    }
    const first = await call('get', `/${id}/deliveries?limit=2`).expect(200);
    const second = await call('get', `/${id}/deliveries?limit=2&page_id=${first.body.next_page_id}`).expect(
      200,
    );
    expect(second.body.next_page_id).toBeNull();
    const ids = [...first.body.items, ...second.body.items].map((item: ShownDelivery) => item.id);
    expect(ids).toEqual((await deliveries(id)).map((item) => item.id));
    await app.dataSource.query(
      'UPDATE webhook_deliveries SET data = to_json(repeat($2, 2000000)) WHERE endpoint_id = $1',
      [id, 'x'],
    );
    const large = await call('get', `/${id}/deliveries?limit=100`).expect(200);
    expect(large.body.items).toHaveLength(2);
    expect(large.body.next_page_id).not.toBeNull();
  });

  it('of an endpoint that has most of all are not read beyond the page', async () => {
    const { id } = await create({ enabled: false });
    const { id: other } = await create({ enabled: false });
    await app.dataSource.query(
      `WITH others AS (
         INSERT INTO webhook_endpoints SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid()))).*
         FROM webhook_endpoints e, generate_series(1, 200) WHERE e.id = $2 RETURNING id)
       INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at)
       SELECT gen_random_uuid(), endpoint_id, 'conversation.finished', '{}', 'delivered', now() - n * interval '1 s'
       FROM (SELECT $1::uuid AS endpoint_id, n FROM generate_series(1001, 5000) AS n
             UNION ALL SELECT id, n FROM others, generate_series(1, 5) AS n) rows
       ORDER BY random()`,
      [id, other],
    );
    await app.dataSource.query('ANALYZE webhook_deliveries');
    const statements = jest.spyOn(app.app.get(WebhookDeliveryRepository), 'query');
    const page = await deliveries(id, '?limit=20');
    // Beside it, the worker asks for what is due.
    const [statement, values] = statements.mock.calls.find(([, given]) => given?.includes(id)) ?? [];
    statements.mockRestore();

    const [read] = await app.dataSource.query<{ rows: number }[]>(
      `SELECT sum((node #>> '{}')::float8)::int AS rows
       FROM jsonb_path_query($1, 'strict $.**?(@."Relation Name" == "webhook_deliveries")."Actual Rows"') AS node`,
      [await planOf(statement ?? '', [...(values as unknown[])])],
    );
    expect(page).toHaveLength(20);
    expect(read?.rows).toBe(21);
  });

  it('are forgotten in batches, the oldest first', async () => {
    const { id } = await create({ enabled: false });
    await app.dataSource.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, created_at)
       SELECT gen_random_uuid(), $1, 'conversation.finished', '{}', 'delivered', timestamptz '2001-01-01 00:00Z' + n * interval '1 day'
       FROM generate_series(1, 4) AS n`,
      [id],
    );
    const repository = app.app.get(WebhookDeliveryRepository);
    const before = new Date('2001-01-04T12:00:00Z');

    const removed = [await repository.prune(before, 2), await repository.prune(before, 2)];

    const left = await app.dataSource.query<{ created_at: Date }[]>(
      'SELECT created_at FROM webhook_deliveries WHERE endpoint_id = $1',
      [id],
    );
    expect(removed).toEqual([2, 1]);
    expect(left.map(({ created_at: at }) => at.toISOString())).toEqual(['2001-01-05T00:00:00.000Z']);
  });
});
