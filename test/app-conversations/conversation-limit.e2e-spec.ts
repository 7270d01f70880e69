import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { descending } from '@slipway/common/compare.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { insertRunningSandbox } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';

describe('a user with as many conversations as are kept', () => {
  const app = useTestApp({ MAX_CONVERSATIONS_PER_USER: '2' });
  const rows = new ConversationRows(app);

  const start = ({ headers }: TestUser): request.Test =>
    request(app.url).post(CONVERSATIONS).set(headers).send({});

  it('is told what to delete, and goes on after that', async () => {
    const [first] = [await rows.conversation(app.user.id), await rows.conversation(app.user.id)];

    const { body } = await start(app.user).expect(409);

    expect(body).toMatchObject({
      code: 'conversation_limit',
      detail:
        'You have 2 conversations, the most that are kept. Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.',
    });
    await start(await app.createUser()).expect(200);
    await request(app.url).delete(`${CONVERSATIONS}/${first.hex}`).set(app.user.headers).expect(200);
    await start(app.user).expect(200);
  });

  it('starts no more than have room, however many at a time', async () => {
    const user = await app.createUser();
    const { id: sandboxId } = await rows.sandbox(user.id);
    await rows.conversation(user.id, { sandboxId });
    await rows.startTask(user.id);
    const inSandbox = (): request.Test =>
      request(app.url).post(CONVERSATIONS).set(user.headers).send({ sandbox_id: sandboxId });

    await inSandbox().expect(409);
    await app.dataSource.query('DELETE FROM app_conversation_start_tasks WHERE user_id = $1', [user.id]);
    const answers = await Promise.all([inSandbox(), inSandbox(), inSandbox()]);

    expect(answers.map(({ status }) => status).toSorted(descending)).toEqual([409, 409, 200]);
  });

  it('counts a conversation that is about to begin once', async () => {
    const user = await app.createUser();
    const { id } = await rows.conversation(user.id);
    await rows.startTask(user.id, { appConversationId: id, status: 'STARTING_CONVERSATION' });

    await start(user).expect(200);
  });

  it('gets none from an agent server either', async () => {
    const agent = await FakeConversationServer.start();
    const user = await app.createUser();
    await rows.conversation(user.id);
    const { hex } = await rows.conversation(user.id);
    await insertRunningSandbox(app, user.id, agent);
    const id = randomUUID();
    agent.open(id);
    const report = (): request.Test =>
      request(app.url)
        .post('/api/v1/webhooks/conversations')
        .set('X-Session-API-Key', agent.key)
        .send({ id })
        .expect(200);
    const count = async (): Promise<number> =>
      (await request(app.url).get(`${CONVERSATIONS}/count`).set(user.headers)).body;

    await report();
    await until(() => agent.lists.length > 0);
    expect(await count()).toBe(2);
    await request(app.url).delete(`${CONVERSATIONS}/${hex}`).set(user.headers).expect(200);
    await until(async () => {
      await report();
      return (await count()) === 2;
    });
    await app.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
    await agent.close();
  });
});
