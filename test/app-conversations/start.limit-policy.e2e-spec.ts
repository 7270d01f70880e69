import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { MoreThan } from 'typeorm';
import { jsonNumber } from '@slipway/common/json-access.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { StartWorkflow } from '../../src/v1/app-conversations/start/start-workflow.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestApp, TestUser } from '../support/create-test-app.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const FULL = 'As many of your sandboxes run as may at a time (1). Pause or delete one, then try again.';

describe('a start beyond the quota of sandboxes', () => {
  let backend: InProcessSandboxBackend;
  let app: TestApp;
  let user: TestUser;
  let client: StartsClient;

  function begin(environment: Record<string, string>): void {
    const machine = new InProcessSandboxBackend();
    const started = useTestApp({ MAX_RUNNING_SANDBOXES: '1', ...environment }, { sandboxBackend: machine });
    beforeEach(async () => {
      [app, backend] = [started, machine];
      user = await app.createUser();
      client = new StartsClient(app, user);
      await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
    });
  }

  const post = (body: object = {}, headers: Record<string, string> = {}): request.Test =>
    request(app.url)
      .post(CONVERSATIONS)
      .set({ ...user.headers, ...headers })
      .send(body);
  const started = async (body: object = {}): Promise<StartTask> => {
    const answer = await post(body).expect(200);
    return client.reached({ id: parseHexId(answer.body.id) ?? '' }, 'READY');
  };
  const detailOf = async (task: StartTask): Promise<string | null> => {
    const path = `${CONVERSATIONS}/start-tasks?ids=${task.id}`;
    return (await request(app.url).get(path).set(user.headers).expect(200)).body[0].detail;
  };
  const statusOf = async (sandboxId: string): Promise<string | undefined> =>
    (await client.sandboxes()).find(({ id }) => id === sandboxId)?.status;
  const pause = async (sandboxId: string): Promise<void> => {
    await request(app.url).post(`/api/v1/sandboxes/${sandboxId}/pause`).set(user.headers).expect(200);
    await until(async () => (await statusOf(sandboxId)) === 'PAUSED');
  };
  /** Waits until its sandbox has been idle for long enough to be evicted. */
  const becomeIdle = async ({ sandboxId }: StartTask): Promise<void> => {
    const server = backend.boxes.get(sandboxId)?.server;
    await until(async () => (jsonNumber(await server?.client.get('/server_info'), 'idle_time') ?? 0) > 0.1);
  };

  describe('with pause_oldest_idle', () => {
    begin({ SANDBOX_WAIT_SECONDS: '100000' });

    const note = ({ sandboxId }: StartTask): string =>
      `Sandbox ${sandboxId} was idle for longest, and was paused to make room.`;

    it('names the one that was paused, from the first response on', async () => {
      const first = await started();
      await becomeIdle(first);
      const { body } = await post().expect(200);

      expect(body.detail).toBe(note(first));
      const second = await client.reached({ id: parseHexId(body.id) ?? '' }, 'READY');
      expect(await detailOf(second)).toBe(note(first));
    });

    it('makes room at once where a start has ended, and nothing goes on', async () => {
      const first = await started();
      // One that runs already says nothing of its start.
      backend.gate.close();
      const { body } = await request(app.url).post('/api/v1/sandboxes').set(user.headers).expect(200);
      backend.gate.open();

      expect(body.status_detail).toBe(note(first));
    });

    it('does not make room where another start goes on', async () => {
      const first = await started();
      await new ConversationRows(app).startTask(user.id, { sandboxId: first.sandboxId });
      await client.reached(await client.start({ sandbox_id: first.sandboxId }), 'READY');
      const [row] = await app.dataSource.query<{ held: boolean }[]>(
        'SELECT keep_alive_until > $2 AS held FROM sandboxes WHERE id = $1',
        [first.sandboxId, new Date(app.clock.now())],
      );

      expect(row).toEqual({ held: true });
    });

    it('does not keep the starts of others waiting, however many wait', async () => {
      const tasks = app.dataSource.getRepository(StartTask);
      const rows = new ConversationRows(app);
      backend.gate.close();
      const { hostId, sandboxId } = await client.start();
      const due = { hostId, dueAt: new Date(0), status: 'WAITING_FOR_SANDBOX' } as const;
      const waiting = Array.from({ length: 100 }, () =>
        rows.startTask(user.id, { ...due, sandboxId, sandboxMade: true }),
      );
      await Promise.all(waiting);
      const takenOf = (userId: string): Promise<number> => tasks.countBy({ userId, attempts: MoreThan(0) });
      await until(async () => (await takenOf(user.id)) >= 75);

      const other = await app.createUser();
      await rows.startTask(other.id, due);
      await until(async () => (await takenOf(other.id)) === 1);
      expect(await takenOf(user.id)).toBe(75);
      await tasks.delete({ userId: user.id });
      backend.gate.open();
    });

    it('names the one that was paused to resume its sandbox', async () => {
      const first = await started();
      await pause(first.sandboxId);
      const second = await started();
      await becomeIdle(second);

      const third = await started({ sandbox_id: first.sandboxId });
      expect(await detailOf(third)).toBe(note(second));
    });

    it('names the one that was paused after it waited for quota', async () => {
      const first = await started();
      const hold = async (end: Date | null): Promise<unknown> =>
        app.dataSource.getRepository(Sandbox).update(first.sandboxId, { keepAliveUntil: end });
      await hold(new Date(app.clock.now() + 3_600_000));
      const second = await client.start();
      await until(async () => (await client.read(second.id)).detail !== null);
      await hold(null);

      expect(await detailOf(await client.reached(second, 'READY'))).toBe(note(first));
    });
  });

  describe('with reject', () => {
    begin({ SANDBOX_LIMIT_POLICY: 'reject' });

    it('is refused at once, and nothing is paused', async () => {
      const first = await started();
      await becomeIdle(first);
      for (const route of ['', '/stream-start']) {
        const { body, headers } = await request(app.url)
          .post(`${CONVERSATIONS}${route}`)
          .set(user.headers)
          .send({})
          .expect(429);
        expect(body).toMatchObject({ code: 'sandbox_limit', detail: FULL });
        expect(headers['retry-after']).toBe('30');
      }
      expect(await statusOf(first.sandboxId)).toBe('RUNNING');
      const { body: count } = await request(app.url)
        .get(`${CONVERSATIONS}/start-tasks/count`)
        .set(user.headers);
      expect(count).toBe(1);
    });

    it('returns the first task for a repeated request', async () => {
      const headers = { 'Idempotency-Key': 'once' };
      const { body } = await post({}, headers).expect(200);

      await post().expect(429);
      expect((await post({}, headers).expect(200)).body.id).toBe(body.id);
    });

    it('may use a running sandbox, and resume one while there is quota', async () => {
      const first = await started();
      await started({ sandbox_id: first.sandboxId });
      await pause(first.sandboxId);
      const second = await started();

      expect((await post({ sandbox_id: first.sandboxId }).expect(429)).body.detail).toBe(FULL);
      await pause(second.sandboxId);
      expect((await started({ sandbox_id: first.sandboxId })).sandboxId).toBe(first.sandboxId);
    });

    it('ends in ERROR when another start takes the last quota first, or the policy changed while it waited', async () => {
      const first = await started();
      await pause(first.sandboxId);
      const late = await new ConversationRows(app).startTask(user.id, {
        status: 'WAITING_FOR_SANDBOX',
        sandboxId: first.sandboxId,
        sandboxMade: true,
      });
      await started();
      const waiting = await new ConversationRows(app).startTask(user.id, { status: 'WAITING_FOR_SANDBOX' });
      for (const { id } of [late, waiting]) {
        await app.app.get(StartWorkflow).run(id, new AbortController().signal);
        expect(await client.read(id)).toMatchObject({ status: 'ERROR', detail: FULL });
      }
    });
  });
});
