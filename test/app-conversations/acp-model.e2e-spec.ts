import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';

describe('the model of an ACP agent', () => {
  let app: TestApp;
  let rows: ConversationRows;
  let user: TestUser;
  let agent: Awaited<ReturnType<typeof FakeConversationServer.start>>;
  let id: string;

  beforeAll(async () => {
    app = await createTestApp();
    rows = new ConversationRows(app);
  });

  beforeEach(async () => {
    agent = await FakeConversationServer.start();
    user = await app.createUser();
    const sandbox = await rows.sandbox(user.id, { key: agent.key, address: agent.address });
    ({ id } = await rows.conversation(user.id, { sandboxId: sandbox.id, llmModel: 'first' }));
    agent.open(id);
  });

  afterEach(async () => {
    await agent.close();
  });

  afterAll(async () => {
    await app.close();
  });

  const route = (): string => `POST /api/conversations/${id}/switch_acp_model`;
  const change = (body: object, who: TestUser = user): request.Test =>
    request(app.url).post(`/api/v1/app-conversations/${id}/switch_acp_model`).set(who.headers).send(body);
  const model = async (): Promise<string> => {
    const { body } = await request(app.url).get(`/api/v1/app-conversations?ids=${id}`).set(user.headers);
    return body[0].llm_model;
  };

  it('is changed at the agent server and shown', async () => {
    expect((await change({ model: 'second' }).expect(200)).body).toEqual({ success: true });

    expect(agent.calls).toEqual([route()]);
    expect(await model()).toBe('second');
  });

  it.each([
    [400, 400, 'conflict', 'out of order'],
    [504, 504, 'upstream_error', 'The program of the agent did not answer in time: try again.'],
    [500, 502, 'upstream_error', 'The agent server of the sandbox refused the request (500): out of order'],
  ])('stays when the agent server answers %i', async (given, status, code, detail) => {
    agent.refusals.set(route(), given);

    const { body } = await change({ model: 'second' }).expect(status);

    expect(body).toMatchObject({ code, detail });
    expect(await model()).toBe('first');
  });

  it("is nobody else's to change", async () => {
    await change({ model: 'second' }, app.user).expect(404);
    expect(agent.calls).toEqual([]);
  });

  it.each([
    [{}, 'missing'],
    [{ model: '' }, 'value_error'],
    [{ model: 5 }, 'string_type'],
  ])('is not %j', async (body, type) => {
    const { detail } = (await change(body).expect(422)).body;

    expect(detail).toEqual([{ loc: ['body', 'model'], msg: expect.any(String), type }]);
  });
});
