import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { AgentInputsReader } from '../../src/v1/app-conversations/agent-request/agent-inputs.reader.js';
import { MODEL } from '../../packages/agent-server/test/support/agent-server-client.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { until } from '../support/until.js';
import { useAgentSandboxes } from '../support/use-agent-sandboxes.js';
import { useTestApp } from '../support/use-test-app.js';

const PROFILE = { model: 'openai/second', base_url: 'http://second.example/v1', api_key: 'key-of-second' };

const app = useTestApp();
const rows = new ConversationRows(app);

async function modelOf(id: string, { headers }: TestUser): Promise<unknown> {
  const { body } = await request(app.url).get(`/api/v1/app-conversations?ids=${id}`).set(headers);
  return body[0].llm_model;
}

describe('the model of a stored profile', () => {
  const sandboxes = useAgentSandboxes(app);
  let user: TestUser;
  let id: string;

  beforeEach(async () => {
    user = await app.createUser();
    const { sandbox, folder } = await sandboxes.open(user.id);
    ({ id } = await rows.conversation(user.id, {
      sandboxId: sandbox.id,
      workingDir: folder,
      llmModel: MODEL.llm_model,
      llmBaseUrl: MODEL.llm_base_url,
    }));
    await sandboxes.agent.client.start({ conversation_id: id });
    await save('fast', PROFILE);
  });

  const save = async (name: string, llm: object): Promise<void> => {
    await request(app.url)
      .post(`/api/v1/settings/profiles/${name}`)
      .set(user.headers)
      .send({ llm })
      .expect(201);
  };
  const change = (body: object, who: TestUser = user): request.Test =>
    request(app.url).post(`/api/v1/app-conversations/${id}/switch_profile`).set(who.headers).send(body);
  const model = (): Promise<unknown> => modelOf(id, user);
  /** What the agent works with, as it answers `settings`. */
  const settingsOfAgent = async (): Promise<unknown> => {
    await request(app.url)
      .post(`/api/v1/app-conversations/${id}/send-message`)
      .set(user.headers)
      .send({ content: [{ text: 'settings' }], run: true })
      .expect(200);
    await until(
      async () =>
        jsonText(await sandboxes.agent.client.get(`/api/conversations/${id}`), 'execution_status') ===
        'finished',
    );
    return JSON.parse(String((await sandboxes.agent.client.answers(id)).at(-1)));
  };

  it('brings its price along', async () => {
    await save('priced', { ...PROFILE, model: 'openai/gpt-4o' });
    await change({ profile_name: 'priced' }).expect(200);
    expect(Object.keys(Object(jsonAt(await settingsOfAgent(), 'modelPrices')))).toEqual(['openai/gpt-4o']);

    await change({ profile_name: 'fast' }).expect(200);
    expect(jsonAt(await settingsOfAgent(), 'modelPrices')).toEqual({});
  });

  it('is what a running conversation goes on with, and gets its key from after a restart', async () => {
    expect((await change({ profile_name: 'fast' }).expect(200)).body).toEqual({ success: true });

    expect(await model()).toBe('openai/second');
    expect(await settingsOfAgent()).toMatchObject({
      llm: { model: 'openai/second', baseUrl: 'http://second.example/v1' },
    });
    const shown = await sandboxes.agent.client.get(`/api/conversations/${id}`);
    expect(jsonAt(shown, 'agent', 'llm', 'model')).toBe('openai/second');
    expect(JSON.stringify(shown)).not.toContain('key-of-second');
    const build = (): Promise<object> => app.app.get(CredentialsBuilder).build({ id, userId: user.id });
    expect(await build()).toMatchObject({
      llm_model: 'openai/second',
      llm_base_url: 'http://second.example/v1',
      llm_api_key: 'key-of-second',
    });

    // A key for another server is not sent to this one.
    await save('fast', {
      model: 'openai/third',
      base_url: 'http://third.example/v1',
      api_key: 'key-of-third',
    });
    expect(await build()).toMatchObject({ llm_model: 'openai/second', llm_key_withheld: true });
    await request(app.url).delete('/api/v1/settings/profiles/fast').set(user.headers).expect(200);
    expect(await build()).toMatchObject({ llm_model: 'openai/second', llm_key_withheld: true });
  });

  it('is what a start may ask for', async () => {
    const inputs = app.app.get(AgentInputsReader);
    const settings = new SettingsClient(app, user);
    await settings.store({ llm_model: 'openai/own', llm_api_key: 'key-of-own', max_iterations: 7 });

    expect(await inputs.readConfiguration(user.id, 'fast')).toMatchObject({
      settings: {
        llm_model: 'openai/second',
        llm_base_url: 'http://second.example/v1',
        llm_api_key: 'key-of-second',
        max_iterations: 7,
      },
      lacksProfile: false,
    });
    expect(await inputs.readConfiguration(user.id, 'none')).toMatchObject({
      settings: { llm_model: 'openai/own', llm_api_key: 'key-of-own' },
      lacksProfile: true,
    });
  });

  it.each<[object, number, string]>([
    [{ profile_name: 'none' }, 404, 'not_found'],
    [{ profile_name: 'keyless' }, 409, 'conflict'],
  ])('stays when %j cannot be used', async (body, status, code) => {
    await save('keyless', { model: 'openai/keyless' });

    expect((await change(body).expect(status)).body).toMatchObject({ code });
    expect(await model()).toBe(MODEL.llm_model);
  });
});

describe('the model of an ACP agent', () => {
  let user: TestUser;
  let agent: Awaited<ReturnType<typeof FakeConversationServer.start>>;
  let id: string;

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

  const route = (): string => `POST /api/conversations/${id}/switch_acp_model`;
  const change = (body: object, who: TestUser = user): request.Test =>
    request(app.url).post(`/api/v1/app-conversations/${id}/switch_acp_model`).set(who.headers).send(body);
  const model = (): Promise<unknown> => modelOf(id, user);

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
});
