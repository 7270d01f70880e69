import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { MAX_IN_SANDBOX } from '../../src/v1/app-conversations/adoption/conversation.adopter.js';
import { ConversationResumeWorker } from '../../src/v1/app-conversations/conversation-resume.worker.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { insertRunningSandbox } from '../support/followed-logs.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { SettingsClient } from '../support/settings-client.js';
import type { SeparateAgentServer } from '../../packages/agent-server/test/support/test-agent-server.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const SECRET = 'value-of-a-custom-secret';

const backend = new InProcessSandboxBackend();
const app = useTestApp({}, { sandboxBackend: backend });
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

async function listed(who: TestUser = user): Promise<Record<string, unknown>[]> {
  const { body } = await request(app.url)
    .get(`${CONVERSATIONS}/search?limit=100`)
    .set(who.headers)
    .expect(200);
  return body.items;
}

async function webhook(key: string, id: string): Promise<void> {
  await request(app.url)
    .post('/api/v1/webhooks/conversations')
    .set('X-Session-API-Key', key)
    .send({ id })
    .expect(200, { success: true });
}

describe('a conversation that a client begins at an agent server', () => {
  let agent: Awaited<ReturnType<typeof FakeConversationServer.start>>;
  let sandboxId: string;
  const id = (): string => randomUUID();

  beforeEach(async () => {
    agent = await FakeConversationServer.start();
    sandboxId = await insertRunningSandbox(app, user.id, agent);
  });

  afterEach(async () => {
    await app.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL WHERE id = $1`, [
      sandboxId,
    ]);
    await agent.close();
  });

  it('is one of the owner of the sandbox as soon as its webhook tells of it, or before the sandbox stops', async () => {
    const own = id();
    agent.open(own, {
      title: 'Made with the SDK',
      created_at: '2026-05-01T10:00:00Z',
      agent: { llm: { model: 'openai/gpt-4o', base_url: 'https://models.example.com/v1' } },
      workspace: { working_dir: '/workspace/project' },
      execution_status: 'finished',
    });
    agent.append(own, { source: 'user' });

    await webhook(agent.key, own);

    await until(async () => (await listed()).length === 1);
    expect(await listed()).toMatchObject([
      {
        id: toHexId(own),
        created_by_user_id: user.id,
        sandbox_id: sandboxId,
        title: 'Made with the SDK',
        llm_model: 'openai/gpt-4o',
        created_at: '2026-05-01T10:00:00.000Z',
        sandbox_status: 'RUNNING',
        session_api_key: agent.key,
      },
    ]);
    const get = async (path: string): Promise<unknown> =>
      (await request(app.url).get(path).set(user.headers).expect(200)).body;
    await until(async () => (await get(`/api/v1/conversation/${own}/events/count`)) === 1);
    await until(async () => (await listed())[0]?.['execution_status'] === 'finished');
    expect(await get(`${CONVERSATIONS}?ids=${own}`)).toMatchObject([{ id: toHexId(own) }]);
    expect(await get(`${CONVERSATIONS}/count`)).toBe(1);
    expect(await listed(app.user)).toEqual([]);
    await request(app.url).get(`/api/v1/conversation/${own}/events/count`).set(app.user.headers).expect(404);

    const untold = id();
    agent.open(untold);
    agent.append(untold);
    await app.app.get(SandboxEvents).emit('stopping', sandboxId);
    expect(await get(`/api/v1/conversation/${untold}/events/count`)).toBe(1);
  });

  it('is named after its first message, shown with the kind of its agent, and refused under an id of another user', async () => {
    const rows = new ConversationRows(app);
    const other = await app.createUser();
    const conversation = await rows.conversation(other.id, { title: 'Not yours' });
    const start = await rows.startTask(other.id);
    const own = id();
    agent.open(conversation.id, { title: 'Mine now' });
    agent.open(start.appConversationId, { title: 'Mine now' });
    agent.open(own, { agent: { kind: 'ACPAgent', acp_model: 'sonnet' } });
    const content = [{ type: 'text', text: 'Make a file.' }];
    agent.append(own, { source: 'user', llm_message: { role: 'user', content } });

    await webhook(agent.key, conversation.id);
    await webhook(agent.key, start.appConversationId);
    await webhook(agent.key, own);

    await until(async () => (await listed())[0]?.['title'] === 'Make a file.');
    expect(await listed()).toEqual([
      expect.objectContaining({ id: toHexId(own), agent_kind: 'acp', llm_model: 'sonnet', acp_server: null }),
    ]);
    expect(await listed(other)).toMatchObject([{ id: conversation.hex, title: 'Not yours' }]);
  });

  it('does not come back once it is deleted, and is deleted at the agent server in the end', async () => {
    const [deleted, later] = [id(), id()];
    agent.open(deleted);
    agent.open(later);
    await webhook(agent.key, deleted);
    await until(async () => (await listed()).length === 2);
    // The fake forgets nothing, like a server that did not answer.
    await request(app.url).delete(`${CONVERSATIONS}/${deleted}`).set(user.headers).expect(200);
    await until(() => agent.calls.includes(`DELETE /api/conversations/${deleted}`));
    const another = id();
    agent.open(another);

    await webhook(agent.key, deleted);
    await webhook(agent.key, another);
    await until(async () => (await listed()).length === 2);
    expect(new Set((await listed()).map((each) => each['id']))).toEqual(
      new Set([toHexId(later), toHexId(another)]),
    );

    await until(
      () => agent.calls.filter((call) => call === `DELETE /api/conversations/${deleted}`).length > 1,
    );
    agent.conversations.delete(deleted);
    await app.app.get(SandboxEvents).emit('running', sandboxId);
    const remembered = async (): Promise<number> =>
      (await app.dataSource.query<unknown[]>('SELECT FROM removed_conversations WHERE id = $1', [deleted]))
        .length;
    await until(async () => (await remembered()) === 0);
  });

  it('is one of at most so many in a sandbox', async () => {
    await app.dataSource.query(
      `INSERT INTO app_conversations (id, user_id, sandbox_id, working_dir, sandbox_generation, adopted)
       SELECT gen_random_uuid(), $1, $2, '/workspace', 1, true FROM generate_series(1, $3::int)`,
      [user.id, sandboxId, MAX_IN_SANDBOX - 10],
    );
    const [first = ''] = Array.from({ length: 40 }, () => {
      const each = id();
      agent.open(each);
      return each;
    });

    await webhook(agent.key, first);

    const count = async (): Promise<number> =>
      (await request(app.url).get(`${CONVERSATIONS}/count`).set(user.headers)).body;
    await until(async () => (await count()) === MAX_IN_SANDBOX);
    await app.app.get(SandboxEvents).emit('stopping', sandboxId);
    expect(await count()).toBe(MAX_IN_SANDBOX);
  });

  it('is looked for a few times, however many reports there are', async () => {
    const own = id();
    agent.open(own);

    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => webhook(agent.key, id())));
    }
    await webhook(agent.key, own);

    await until(async () => (await listed()).length === 1);
    expect(agent.lists.length).toBeLessThan(80);
  });

  it('is read one by one where a page of them is too large', async () => {
    // As large as one may be: the state of an adopted conversation is read within narrower bounds than their list.
    const [first = ''] = Array.from({ length: 3 }, () => {
      const each = id();
      agent.open(each, { agent: { skills: 'x'.repeat(3 * 1024 * 1024) } });
      return each;
    });

    await webhook(agent.key, first);

    await until(async () => (await listed()).length === 3);
    expect(agent.lists.some((query) => query.startsWith('?limit=1&'))).toBe(true);
  });
});

describe('an adopted conversation after a resume', () => {
  let sandboxes: SandboxesClient;

  beforeEach(() => {
    sandboxes = new SandboxesClient(app.url, user);
  });

  /** A conversation that the service was not told of, in a sandbox that the user stopped and started again. */
  async function resumed(model: object): Promise<{ agent: SeparateAgentServer; id: string }> {
    await request(app.url)
      .post('/api/secrets')
      .set(user.headers)
      .send({ name: 'DEPLOY_KEY', value: SECRET })
      .expect(201);
    const { id: sandboxId } = await sandboxes.running();
    const box = backend.boxes.get(sandboxId);
    if (!box) {
      throw new Error('there is no such sandbox');
    }
    const agent = { kind: 'Agent', llm: { usage_id: 'agent', api_key: 'sk-of-the-client', ...model } };
    const id = await box.server.client.start({ agent });
    await box.server.client.say(id, 'settings');
    await box.server.client.untilStatus(id, 'finished');
    // Its webhook was lost, as was the look before the stop.
    await sandboxes.call('POST', `/${sandboxId}/pause`);
    await sandboxes.reach(sandboxId, 'PAUSED');
    await app.dataSource.query(`DELETE FROM app_conversations WHERE id = $1`, [id]);
    await app.dataSource.query(`DELETE FROM followed_conversations WHERE id = $1`, [id]);
    await sandboxes.call('POST', `/${sandboxId}/resume`);
    await sandboxes.reach(sandboxId, 'RUNNING');
    await until(async () => (await listed()).some((each) => each['id'] === toHexId(id)));
    // What resumes conversations has looked before that, and looks again within seconds.
    await app.app.get(ConversationResumeWorker).now();
    return { agent: box.server, id };
  }

  const say = (id: string): request.Test =>
    request(app.url)
      .post(`${CONVERSATIONS}/${id}/send-message`)
      .set(user.headers)
      .send({ content: [{ text: 'settings' }], run: true });

  async function answers({ client }: SeparateAgentServer, id: string): Promise<string[]> {
    const page = await client.get(`/api/conversations/${id}/events/search`);
    return jsonList(page, 'items')
      .filter((event) => jsonText(event, 'source') === 'agent')
      .map((event) => jsonText(jsonList(event, 'llm_message', 'content')[0], 'text') ?? '');
  }

  it('has the key of the settings again where they name its model server, and none of their secrets', async () => {
    const llm = { model: 'openai/gpt-4o', base_url: 'https://models.example.com/v1' };
    await new SettingsClient(app, user).store({
      llm_model: 'openai/other',
      llm_base_url: 'https://models.example.com/v2',
      llm_api_key: 'sk-mine',
    });
    const { agent, id } = await resumed(llm);

    await say(id).expect(200);

    await until(async () => (await answers(agent, id)).length === 2);
    const [before = '', after = ''] = await answers(agent, id);
    expect(before).toContain('"apiKey"');
    expect(after).toContain('https://models.example.com/v1');
    expect(after).not.toContain('"apiKey":null');
    expect(JSON.stringify(await agent.client.get(`/api/conversations/${id}`))).not.toContain('DEPLOY_KEY');
    await agent.client.say(id, 'env DEPLOY_KEY');
    await until(async () => (await answers(agent, id)).includes('unset'));
  });

  it('is told what to send where they name another one', async () => {
    await new SettingsClient(app, user).store({
      llm_model: 'openai/gpt-4o',
      llm_base_url: 'https://other.example.com/v1',
      llm_api_key: 'sk-mine',
    });
    const { agent, id } = await resumed({
      model: 'openai/gpt-4o',
      base_url: 'https://models.example.com/v1',
    });

    const { body } = await say(id).expect(409);

    expect(body.detail).toContain(`POST /api/conversations/${id}/credentials (llm_api_key)`);
    await agent.client.post(`/api/conversations/${id}/credentials`, { llm_api_key: 'sk-of-the-client' });
    await say(id).expect(200);
    await until(async () => (await answers(agent, id)).length === 2);
  });
});
