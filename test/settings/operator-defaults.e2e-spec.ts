import { beforeEach, describe, expect, it } from '@jest/globals';
import path from 'node:path';
import { jsonAt } from '@slipway/common/json-access.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { builtRequest, modelIn, type Start } from '../support/built-request.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { useFiles } from '../support/use-files.js';
import { useTestApp } from '../support/use-test-app.js';

const KEY = 'sk-keyoftheoperator51802';
const TOOL_KEY = 'keyofatoolserver51802';
const GATEWAY = 'https://gateway.example.com/v1';
/** Nothing listens there: a key that a user stores is not verified. */
const OWN_KEY = 'sk-keyoftheuser51802';

const folder = useFiles({
  'agents.yaml':
    '[{ name: other, command: other, secrets: [llm_api_key, mcp_keys], env: { KEY: "${llm_api_key}" } }]',
  'servers.yaml': `files: { url: https://files.example.com/mcp, api_key: ${TOOL_KEY} }\nown: { command: operators, args: [--all] }\n`,
});

describe('a model of the operator', () => {
  const [model, address] = ['team/large', GATEWAY];
  const app = useTestApp({
    DEFAULT_LLM_MODEL: model,
    DEFAULT_LLM_BASE_URL: address,
    DEFAULT_LLM_API_KEY: KEY,
    DEFAULT_MAX_BUDGET_PER_TASK: '4.5',
    DEFAULT_MCP_SERVERS_FILE: path.join(folder, 'servers.yaml'),
    ACP_AGENTS_FILE: path.join(folder, 'agents.yaml'),
  });
  let user: TestUser;
  let client: SettingsClient;

  beforeEach(async () => {
    user = await app.createUser();
    client = new SettingsClient(app, user);
  });

  it('is shown by its name to a user who stored nothing, and its key never', async () => {
    expect(await client.stored()).toMatchObject({
      llm_model: model,
      llm_api_key: null,
      llm_api_key_set: true,
      llm_base_url: null,
      llm_source: 'operator',
      mcp_config: null,
    });
    for (const route of ['/api/settings', '/api/v1/settings', '/api/v1/users/me']) {
      const { text } = await app.as(user).get(route).expect(200);
      expect(text).toContain(model);
      expect(text).not.toContain(KEY);
      expect(text).not.toContain('gateway.example.com');
      expect(text).not.toContain('files.example.com');
    }
  });

  it('is called for a user without one, also when a form has sent back what it was shown', async () => {
    expect(modelIn(await builtRequest(app, user))).toEqual({ key: KEY, model, at: address });
    const sent = JSON.stringify(await builtRequest(app, user));
    expect(sent).toContain(TOOL_KEY);
    expect(sent).toContain('"max_budget":4.5');

    const shown = await client.stored();
    const answer = await client.post({ ...shown, language: 'en' });
    expect([answer.status, answer.body.warnings ?? []]).toEqual([
      200,
      expect.not.arrayContaining([expect.objectContaining({ code: 'unknown_member' })]),
    ]);
    expect(await client.stored()).toMatchObject({ llm_model: model, llm_source: 'operator' });
    expect(modelIn(await builtRequest(app, user))).toEqual({ key: KEY, model, at: address });
  });

  it.each<[string, object, Start]>([
    ['an address below that of the operator', { llm_base_url: `${GATEWAY}/mine` }, {}],
    ['a model of the start that is called there', {}, { llm_model: 'ollama/mine' }],
    ['an agent of others', { agent: 'acp:other' }, {}],
    ['an agent server of others', {}, { dialect: 'stock' }],
    ['an image of the user', {}, { hasOwnImage: true }],
  ])('does not send the key to %s', async (_case, settings, given) => {
    await client.store({ ...settings });

    const sent = await builtRequest(app, user, given);
    expect(JSON.stringify(sent)).not.toContain(KEY);
    const isOthers = 'agent' in settings || given.dialect !== undefined || given.hasOwnImage === true;
    expect(JSON.stringify(sent).includes(TOOL_KEY)).toBe(!isOthers && jsonAt(sent, 'body') !== undefined);
  });

  it('is nothing beside a model and key of the user, and its profiles', async () => {
    await client.store({ llm_model: 'mistral/own', llm_api_key: OWN_KEY, max_budget_per_task: 50 });
    expect(modelIn(await builtRequest(app, user))).toEqual({ key: OWN_KEY, model: 'mistral/own', at: null });
    expect(JSON.stringify(await builtRequest(app, user))).toContain('"max_budget":50');
    expect(await client.stored()).toMatchObject({ llm_model: 'mistral/own', llm_source: 'user' });

    const own = { llm: { model, base_url: 'https://mine.example.com/v1' } };
    for (const each of [user, await app.createUser()]) {
      await app.as(each).post('/api/v1/settings/profiles/mine', own).expect(201);
      const sent = await builtRequest(app, each, { llm_profile: 'mine' });
      expect(modelIn(sent)).toEqual({ key: null, model, at: 'https://mine.example.com/v1' });
    }
  });

  it('is given again after a restart to a conversation that began with it, and to no other server', async () => {
    const credentials = async (llmModel: string, llmBaseUrl: string, isOurs = true) => {
      const { id } = await new ConversationRows(app).conversation(user.id, { llmModel, llmBaseUrl });
      return await app.app.get(CredentialsBuilder).build({ id, userId: user.id }, isOurs);
    };

    expect(await credentials(model, address)).toMatchObject({ llm_model: model, llm_api_key: KEY });
    for (const other of [
      await credentials(model, 'https://mine.example.com/v1'),
      await credentials(model, `${GATEWAY}/mine`),
      await credentials('ollama/mine', ''),
      await credentials(model, address, false),
    ]) {
      expect(JSON.stringify(other)).not.toContain(KEY);
    }
  });
});
