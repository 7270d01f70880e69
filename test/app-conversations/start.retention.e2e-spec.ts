import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { StartTaskRepository } from '../../src/v1/app-conversations/start-task.repository.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { say, StartsClient } from '../support/starts-client.js';
import { useTestApp } from '../support/use-test-app.js';

const KEPT = 100;
const PATH = '/api/v1/app-conversations';

describe('ended start tasks', () => {
  const app = useTestApp();
  const rows = new ConversationRows(app);
  let user: TestUser;
  let client: StartsClient;

  beforeEach(async () => {
    user = await app.createUser();
    client = new StartsClient(app, user);
  });

  /** Ended starts, one a second since midnight. */
  const ended = async (count: number, of: TestUser = user): Promise<void> => {
    await app.dataSource.query(
      `INSERT INTO app_conversation_start_tasks
         (id, user_id, status, app_conversation_id, sandbox_id, host_id, request, created_at, updated_at)
       SELECT gen_random_uuid(), $1, 'ERROR', gen_random_uuid(), 'none', 'nobody', $3,
         timestamptz '2026-01-01' + n * interval '1 second', timestamptz '2026-01-01' + n * interval '1 second'
       FROM generate_series(1, $2::int) AS n`,
      [of.id, count, JSON.stringify(sampleStartRequest(say('x')))],
    );
  };
  /** It has no model, so it fails. */
  const fail = async (): Promise<StartTask> => client.reached(await client.start(), 'ERROR');
  const count = async (): Promise<number> =>
    (await request(app.url).get(`${PATH}/start-tasks/count`).set(user.headers).expect(200)).body;
  const stored = (of: TestUser = user): Promise<StartTask[]> =>
    app.dataSource.getRepository(StartTask).find({ where: { userId: of.id }, order: { updatedAt: 'ASC' } });

  it('are trimmed to the newest hundred as one ends', async () => {
    const other = await app.createUser();
    await ended(KEPT + 20);
    await ended(KEPT + 20, other);
    const waiting = await rows.startTask(user.id, { updatedAt: new Date('2026-01-01') });
    const last = await fail();

    const left = await stored();
    expect(left).toHaveLength(KEPT + 1);
    expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining([waiting.id, last.id]));
    expect(await count()).toBe(KEPT + 1);
    const [oldest] = left.filter(({ id }) => id !== waiting.id);
    expect(oldest?.updatedAt).toEqual(new Date(Date.parse('2026-01-01T00:00:22Z')));
    expect(await stored(other)).toHaveLength(KEPT + 20);
  });

  it('are as many when several end at once', async () => {
    await ended(KEPT);
    const tasks = await Promise.all(Array.from({ length: 20 }, () => client.start()));
    await Promise.all(tasks.map((task) => client.reached(task, 'ERROR')));

    expect(await stored()).toHaveLength(KEPT);
  });

  it('leave their conversations what those were started with, and go with them', async () => {
    await ended(KEPT);
    const conversation = await rows.conversation(user.id);
    const starts = app.app.get(StartTaskRepository);
    const id = randomUUID();
    await app.dataSource.transaction((manager) =>
      starts.insert(manager, {
        id,
        userId: user.id,
        status: 'READY',
        appConversationId: conversation.id,
        sandboxId: conversation.sandboxId,
        hostId: 'nobody',
        request: sampleStartRequest({
          ...say('a long text'),
          secrets: { MINE: 'only-here' },
          secret_names: ['SHARED'],
        }),
        notes: ['a note'],
        sandboxMade: true,
        workingDir: null,
      }),
    );
    await app.dataSource.query(
      `UPDATE app_conversation_start_tasks SET updated_at = '2025-12-31' WHERE id = $1`,
      [id],
    );
    await fail();

    const { body } = await request(app.url)
      .get(`${PATH}/start-tasks?ids=${id}`)
      .set(user.headers)
      .expect(200);
    expect(body).toEqual([null]);
    expect(await count()).toBe(KEPT);
    const row = await app.dataSource.getRepository(StartTask).findOneByOrFail({ id });
    expect(row).toMatchObject({
      trimmed: true,
      notes: [],
      request: { initial_message: null, secrets: null },
    });
    const { own, limits } = await starts.grantsOfConversation(user.id, conversation.id);
    expect([[...own], limits.secret_names]).toEqual([[['MINE', 'only-here']], ['SHARED']]);
    const [all] = await starts.limitsInSandbox(user.id, conversation.sandboxId);
    expect(all).toEqual({
      secret_names: ['SHARED'],
      git: 'write',
      own_repository: false,
      repositories_read: null,
    });

    await request(app.url).delete(`${PATH}/${conversation.hex}`).set(user.headers).expect(200);
    expect(await app.dataSource.getRepository(StartTask).findBy({ id })).toEqual([]);
  });

  it('cannot be repeated under their keys any more', async () => {
    const send = () =>
      request(app.url)
        .post(PATH)
        .set({ ...user.headers, 'Idempotency-Key': 'once' })
        .send({});
    const { body } = await send().expect(200);
    await app.dataSource.query(`UPDATE app_conversation_start_tasks SET trimmed = true WHERE user_id = $1`, [
      user.id,
    ]);

    const again = await send().expect(422);
    expect(again.body.detail).toMatchObject([{ loc: ['header', 'Idempotency-Key'] }]);
    expect(body.id).toMatch(/^[0-9a-f]{32}$/);
  });
});
