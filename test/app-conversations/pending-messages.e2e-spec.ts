import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { LeasedRows } from '@slipway/database/leased-rows.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import type { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import {
  type DueMessage,
  FIRST_MESSAGE_ID,
  MAX_DELIVERABLE,
  messagesFor,
  PendingMessageRepository,
} from '../../src/v1/app-conversations/pending/pending-message.repository.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const TEXT = (text: string): object => ({ content: [{ type: 'text', text }] });

describe('messages for conversations that are not ready', () => {
  const backend = new InProcessSandboxBackend();
  const app = useTestApp({}, { sandboxBackend: backend });
  let user: TestUser;
  let client: StartsClient;

  beforeEach(async () => {
    user = await app.createUser();
    client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
  });

  afterEach(() => {
    backend.failure = null;
    backend.gate.open();
  });

  function queue(id: string, body: object, who: TestUser = user): request.Test {
    return request(app.url).post(`/api/v1/conversations/${id}/pending-messages`).set(who.headers).send(body);
  }

  async function userTexts({ sandboxId, appConversationId: id }: StartTask): Promise<(string | null)[]> {
    const agent = backend.boxes.get(sandboxId)?.server.client;
    const page = await agent?.get(`/api/conversations/${id}/events/search?kind=MessageEvent`);
    return jsonList(page, 'items')
      .filter((event) => jsonText(event, 'source') === 'user')
      .map((event) => jsonText(jsonList(event, 'llm_message', 'content')[0], 'text'));
  }

  const waiting = async (): Promise<number> =>
    (await app.dataSource.query<unknown[]>('SELECT FROM pending_messages WHERE user_id = $1', [user.id]))
      .length;

  const act = (sandboxId: string, action: 'pause' | 'resume'): request.Test =>
    request(app.url).post(`/api/v1/sandboxes/${sandboxId}/${action}`).set(user.headers).expect(200);

  it('are kept and delivered in order once the start is ready, after its own message', async () => {
    backend.gate.close();
    const task = await client.start(say('say first'));

    const { body } = await queue(`task-${toHexId(task.id)}`, TEXT('say second')).expect(201);
    expect(body).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), queued: true, position: 1 });
    expect((await queue(task.appConversationId, TEXT('say third')).expect(201)).body.position).toBe(2);
    expect((await queue(`task-${task.id}`, TEXT('say fourth')).expect(201)).body.position).toBe(3);
    backend.gate.open();

    const ready = await client.reached(task, 'READY');
    await until(async () => (await waiting()) === 0);
    expect(await userTexts(ready)).toEqual(['say first', 'say second', 'say third', 'say fourth']);
  });

  it('are delivered at once when the conversation is ready, and wait for the resume of a paused sandbox', async () => {
    const task = await client.reached(await client.start(say('say first')), 'READY');

    await queue(toHexId(task.appConversationId), TEXT('say second')).expect(201);

    await until(async () => (await waiting()) === 0);
    expect(await userTexts(task)).toEqual(['say first', 'say second']);

    await act(task.sandboxId, 'pause');
    await queue(task.appConversationId, TEXT('say third')).expect(201);
    expect(await waiting()).toBe(1);
    await act(task.sandboxId, 'resume');
    await until(async () => (await waiting()) === 0);
    expect(await userTexts(task)).toEqual(['say first', 'say second', 'say third']);
  });

  it('are not delivered again when nobody saw that they arrived, or a backup from before that is restored', async () => {
    const task = await client.reached(await client.start(), 'READY');
    const { appConversationId: id, sandboxId } = task;
    const agent = backend.boxes.get(sandboxId)?.server.client;
    const before = jsonText((await agent?.events(id))?.at(-1), 'id') ?? '';
    await agent?.say(id, 'say once');
    // As a process leaves it that dies between the delivery and its own note of it.
    await app.dataSource.query(
      `INSERT INTO pending_messages (id, user_id, conversation_id, position, content, attempts, after_event_id)
       VALUES ($1, $2, $3, 1, $4, 1, $5)`,
      [randomUUID(), user.id, id, JSON.stringify([{ type: 'text', text: 'say once' }]), before],
    );

    const { body } = await queue(id, TEXT('say twice')).expect(201);

    await until(async () => (await waiting()) === 0);
    expect(await userTexts(task)).toEqual(['say once', 'say twice']);
    await app.dataSource.query(
      `INSERT INTO pending_messages (id, user_id, conversation_id, position, content) VALUES ($1, $2, $3, 1, $4)`,
      [body.id, user.id, id, JSON.stringify([{ type: 'text', text: 'say twice' }])],
    );
    await queue(id, TEXT('say more')).expect(201);
    await until(async () => (await waiting()) === 0);
    expect(await userTexts(task)).toEqual(['say once', 'say twice', 'say more']);
  });

  it('are at most ten', async () => {
    backend.gate.close();
    const task = await client.start();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => queue(`task-${task.id}`, TEXT(`say ${index}`))),
    );

    expect(answers.filter(({ status }) => status === 201).map(({ body }) => body.position)).toHaveLength(10);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(2);
    expect(refused[0]?.body).toMatchObject({
      code: 'rate_limited',
      detail: expect.stringContaining('10 messages wait'),
    });
    backend.gate.open();
    await client.reached(task, 'READY');
    await until(async () => (await waiting()) === 0);
  });

  it('are at most a hundred of a user', async () => {
    const rows = new ConversationRows(app);
    const { id: sandboxId } = await rows.sandbox(user.id, { status: 'PAUSED' });
    const conversation = await rows.conversation(user.id, { sandboxId });
    const other = await rows.conversation(user.id, { sandboxId });
    await app.dataSource.query(
      // Of a conversation that exists, or the worker would remove them.
      `INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
       SELECT gen_random_uuid(), $1, $2, n, '[]' FROM generate_series(1, 100) AS n`,
      [user.id, other.id],
    );
    const refused = await queue(conversation.hex, TEXT('one more'));

    expect(refused.status).toBe(429);
    await app.dataSource.query('DELETE FROM pending_messages WHERE user_id = $1', [user.id]);
    expect(refused.body).toMatchObject({ detail: expect.stringContaining('100 messages wait') });
  });

  it('are not taken after the start failed, and those before are dropped', async () => {
    backend.failure = 'no room';
    backend.gate.close();
    const task = await client.start();
    await queue(`task-${task.id}`, TEXT('say never')).expect(201);
    backend.gate.open();
    await client.reached(task, 'ERROR');

    const { body } = await queue(`task-${task.id}`, TEXT('say never')).expect(409);

    expect(body.detail).toContain('start another one');
    await until(async () => (await waiting()) === 0);
  });

  it('are found without those that wait for paused sandboxes, at most 200 conversations at a time', async () => {
    const { sql, values, found, first } = await amongMany();

    const [explained] = await app.dataSource.query<unknown[]>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`,
      values,
    );
    const rows = [...JSON.stringify(explained).matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) =>
      Number(count),
    );
    expect(rows.length).toBeGreaterThan(3);
    expect(Math.max(...rows)).toBeLessThan(2_000);
    expect(found).toHaveLength(200);
    expect(new Set(found.map(({ conversationId }) => conversationId)).size).toBe(200);
    expect(found.map(({ conversationId }) => conversationId)).not.toContain(first);

    let batches = 0;
    const messages = app.app.get(PendingMessageRepository, { strict: false });
    for (let after = FIRST_MESSAGE_ID; batches === 0 || after !== FIRST_MESSAGE_ID; batches += 1) {
      after = await messages.removeOrphans(after);
    }
    expect(batches).toBeGreaterThanOrEqual(20);
    expect(
      await app.dataSource.query(
        `SELECT count(*) FILTER (WHERE content = '["orphan"]')::int AS orphans, count(*)::int AS all
         FROM pending_messages WHERE user_id = $1`,
        [user.id],
      ),
    ).toEqual([{ orphans: 0, all: 20_602 }]);
  });

  /** 301 conversations of a running sandbox with two messages each, 20,000 of a paused one, and 1,500 orphaned messages. */
  async function amongMany(): Promise<{
    sql: string;
    values: unknown[];
    found: DueMessage[];
    first: string;
  }> {
    const rows = new ConversationRows(app);
    const { id: running } = await rows.sandbox(user.id);
    const { id: paused } = await rows.sandbox(user.id, { status: 'PAUSED' });
    await app.dataSource.query(
      `INSERT INTO app_conversations (id, user_id, sandbox_id, working_dir, sandbox_generation)
       SELECT md5('many ' || n)::uuid, $1::uuid, CASE WHEN n <= 301 THEN $2 ELSE $3 END, '/workspace', 1
       FROM generate_series(1, 20301) AS n`,
      [user.id, running, paused],
    );
    await app.dataSource.query(
      `INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
       SELECT gen_random_uuid(), $1::uuid, md5('many ' || n)::uuid, position, '[]'::jsonb
       FROM generate_series(1, 20301) AS n CROSS JOIN generate_series(1, CASE WHEN n <= 301 THEN 2 ELSE 1 END) AS position
       UNION ALL SELECT gen_random_uuid(), $1::uuid, gen_random_uuid(), 1, '["orphan"]'::jsonb FROM generate_series(1, 1500)`,
      [user.id],
    );
    const [[{ id: first } = { id: '' }]] = await app.dataSource.query<[{ id: string }[], number]>(
      `UPDATE pending_messages SET due_at = now() + interval '1 hour'
       WHERE position = 1 AND conversation_id = md5('many 1')::uuid RETURNING conversation_id AS id`,
    );
    await app.dataSource.query('ANALYZE pending_messages, app_conversations, sandboxes, users');
    const leases = new LeasedRows<DueMessage>(app.dataSource, app.clock, messagesFor('a-host-of-nobody'));
    const spy = jest.spyOn(NamedStatement.prototype, 'run');
    const { rows: found } = await leases.take({
      limit: MAX_DELIVERABLE,
      share: 1_000,
      leaseMs: 60_000,
      held: [],
    });
    const which = spy.mock.calls.findIndex(([, given]) => given.includes('a-host-of-nobody'));
    const statement: unknown = spy.mock.contexts[which];
    const sql = statement instanceof NamedStatement ? statement.text : '';
    const values = [...(spy.mock.calls[which]?.[1] ?? [])];
    spy.mockRestore();
    await app.dataSource.query(
      'UPDATE pending_messages SET due_at = created_at, leased_until = NULL WHERE leased_by IS NOT NULL',
    );
    return { sql, values, found, first };
  }

  it('are noted and removed only by the process that has them, one of a conversation at a time', async () => {
    const rows = new ConversationRows(app);
    const { id: sandboxId } = await rows.sandbox(user.id);
    const { id: conversationId } = await rows.conversation(user.id, { sandboxId });
    const messages = app.app.get(PendingMessageRepository, { strict: false });
    const content = [{ type: 'text' as const, text: 'say once' }];
    const [first, second] = [randomUUID(), randomUUID()];
    await messages.transaction(async (manager) => {
      await messages.add(manager, { id: first, userId: user.id, conversationId, content });
      await messages.add(manager, { id: second, userId: user.id, conversationId, content });
    });
    const leases = new LeasedRows<DueMessage>(app.dataSource, app.clock, messagesFor('a-host-of-nobody'));
    const take = async (): Promise<DueMessage[]> =>
      (await leases.take({ limit: 9, share: 9, leaseMs: 60_000, held: [] })).rows.filter(
        ({ userId }) => userId === user.id,
      );

    const [stalled] = await take();
    expect(stalled).toMatchObject({ id: first, attempts: 1 });
    expect(await take()).toEqual([]);
    await app.dataSource.query(
      'UPDATE pending_messages SET due_at = created_at, leased_until = created_at WHERE id = $1',
      [first],
    );
    const [heir] = await take();
    expect(heir).toMatchObject({ id: first, attempts: 2 });

    expect(stalled && (await messages.noteBeginning(stalled, 'an event'))).toBe(false);
    expect(stalled && (await messages.remove(stalled))).toBe(false);
    expect(heir && (await messages.noteBeginning(heir, 'another event'))).toBe(true);
    expect(heir && (await messages.remove(heir))).toBe(true);
    expect(await take()).toMatchObject([{ id: second, attempts: 1 }]);
  });

  it('are for their own users only, and not for what is no conversation', async () => {
    const rows = new ConversationRows(app);
    const { id } = await rows.conversation(user.id);
    const task = await rows.startTask(user.id, { status: 'READY', appConversationId: id });
    for (const each of [id, `task-${task.id}`, `task-${randomUUID()}`, 'task-', 'x', task.id]) {
      await queue(each, TEXT('say hello'), app.user).expect(404);
    }
    await queue(task.id, TEXT('say hello')).expect(404);
    expect(await waiting()).toBe(0);
  });
});
