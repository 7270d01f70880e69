import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { START_TASK_STATUSES } from '../../src/v1/app-conversations/start-task.entity.js';
import { newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import { SESSION_KEY } from '../../packages/agent-server/test/support/agent-server-client.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { startSeparateAgentServer } from '../../packages/agent-server/test/support/test-agent-server.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';

const app = useTestApp();
const rows = new ConversationRows(app);
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

function remove(id: string, who: TestUser = user): request.Test {
  return request(app.url).delete(`${CONVERSATIONS}/${id}`).set(who.headers);
}

async function sandboxStatus(id: string): Promise<string | undefined> {
  const [row] = await app.dataSource.query<{ status: string }[]>(
    'SELECT status FROM sandboxes WHERE id = $1',
    [id],
  );
  return row?.status;
}

/** How many rows of a table belong to a conversation. */
async function count(table: string, column: string, id: string): Promise<number> {
  const [row] = await app.dataSource.query<{ count: number }[]>(
    `SELECT count(*)::int AS count FROM ${table} WHERE ${column} = $1`,
    [id],
  );
  return row?.count ?? -1;
}

describe('DELETE /api/v1/app-conversations/{id}', () => {
  it('removes the conversation with its log, its start task and its sandbox, once', async () => {
    const sandbox = await rows.sandbox(user.id);
    const { id, hex } = await rows.conversation(user.id, { sandboxId: sandbox.id }, { eventCount: 1 });
    await rows.startTask(user.id, { status: 'READY', appConversationId: id, sandboxId: sandbox.id });
    await app.dataSource.query(
      `INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
       VALUES ($1, 1, 'e', 'PauseEvent', now(), '{}')`,
      [id],
    );

    expect((await remove(hex).expect(200)).body).toEqual({ success: true });

    expect(await count('app_conversations', 'id', id)).toBe(0);
    expect(await count('followed_conversations', 'id', id)).toBe(0);
    expect(await count('conversation_events', 'conversation_id', id)).toBe(0);
    expect(await count('app_conversation_start_tasks', 'app_conversation_id', id)).toBe(0);
    expect(await sandboxStatus(sandbox.id)).toBe('DELETING');
    await remove(hex).expect(404);
  });

  it.each(START_TASK_STATUSES.filter((status) => status !== 'READY'))(
    'cancels a start that is %s',
    async (status) => {
      // There is none yet.
      const sandbox = status === 'WORKING' ? undefined : await rows.sandbox(user.id, { status: 'STARTING' });
      const task = await rows.startTask(user.id, { status, ...(sandbox && { sandboxId: sandbox.id }) });

      await remove(task.appConversationId).expect(200);

      expect(await count('app_conversation_start_tasks', 'id', task.id)).toBe(0);
      expect(await sandboxStatus(task.sandboxId)).toBe(sandbox && 'DELETING');
    },
  );

  it('keeps a sandbox that another conversation uses, and removes the conversation from the agent server', async () => {
    const key = newSessionKey();
    const agent = await startSeparateAgentServer({ sessionKeys: [SESSION_KEY, key] });
    try {
      const sandbox = await rows.sandbox(user.id, { key, address: `http://127.0.0.1:${agent.port}` });
      const first = await rows.conversation(user.id, { sandboxId: sandbox.id });
      const second = await rows.conversation(user.id, { sandboxId: sandbox.id });
      await agent.client.start({ conversation_id: first.id });
      await agent.client.start({ conversation_id: second.id });

      await remove(first.hex).expect(200);

      expect(await sandboxStatus(sandbox.id)).toBe('RUNNING');
      await until(
        async () => (await agent.client.send('GET', `/api/conversations/${first.id}`)).status === 404,
      );
      expect((await agent.client.send('GET', `/api/conversations/${second.id}`)).status).toBe(200);

      await remove(second.hex).expect(200);
      expect(await sandboxStatus(sandbox.id)).toBe('DELETING');
    } finally {
      await agent.stop();
    }
  });

  it('keeps a sandbox in which a conversation is being started', async () => {
    const sandbox = await rows.sandbox(user.id, { status: 'PAUSED' });
    const { hex } = await rows.conversation(user.id, { sandboxId: sandbox.id });
    const task = await rows.startTask(user.id, { sandboxId: sandbox.id, status: 'WAITING_FOR_SANDBOX' });

    await remove(hex).expect(200);
    expect(await sandboxStatus(sandbox.id)).toBe('PAUSED');

    await remove(task.appConversationId).expect(200);
    expect(await sandboxStatus(sandbox.id)).toBe('DELETING');
  });

  it('leaves no sandbox behind when its last conversations are removed at once', async () => {
    const sandbox = await rows.sandbox(user.id, { status: 'PAUSED' });
    const conversations = await Promise.all(
      Array.from({ length: 4 }, () => rows.conversation(user.id, { sandboxId: sandbox.id })),
    );

    const responses = await Promise.all(conversations.map(({ hex }) => remove(hex)));

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await sandboxStatus(sandbox.id)).toBe('DELETING');
  });

  it('keeps sub-conversations, without a parent', async () => {
    const parent = await rows.conversation(user.id);
    const part = await rows.conversation(user.id, { parentConversationId: parent.id });

    await remove(parent.hex).expect(200);

    const { body } = await request(app.url).get(`${CONVERSATIONS}/search`).set(user.headers).expect(200);
    expect(body.items).toEqual([expect.objectContaining({ id: part.hex, parent_conversation_id: null })]);
  });

  it('accepts dashed ids, and answers 404 for unknown and invalid ones', async () => {
    const { id } = await rows.conversation(user.id);

    await remove(id).expect(200);
    expect((await remove(randomUUID()).expect(404)).body.code).toBe('not_found');
    await remove('nonsense').expect(404);
  });

  it("never removes another user's sandbox, even if a row names it", async () => {
    const stranger = await app.createUser();
    const sandbox = await rows.sandbox(stranger.id);
    const { hex } = await rows.conversation(user.id, { sandboxId: sandbox.id });

    await remove(hex).expect(200);

    expect(await sandboxStatus(sandbox.id)).toBe('RUNNING');
  });
});
