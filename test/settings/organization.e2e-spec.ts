import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import { jsonAt } from '@slipway/common/json-access.js';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { operationsOf } from '@slipway/api/openapi/operations.js';
import { SCOPES } from '../../src/common/scopes.js';
import { INSTALLATION_ORGANIZATION_ID as ORGANIZATION } from '../../src/organizations/installation-organization.js';
import { SettingsRepository } from '../../src/settings/settings.repository.js';
import { AgentInputsReader } from '../../src/v1/app-conversations/agent-request/agent-inputs.reader.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { OpenHosts } from '../../src/v1/egress/open-hosts.js';
import { AuditClient } from '../support/audit-client.js';
import { builtRequest, modelIn, type Start } from '../support/built-request.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { committedDocument } from '../support/resolved-document.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { SettingsClient } from '../support/settings-client.js';
import { useTestApp } from '../support/use-test-app.js';

const GATEWAY = 'https://gateway.example.com/v1';
const MODEL = 'team/large';
/** Whatever is secret of the organization has this in it. */
const HUSH = 'hushoftheorganization70411';
const KEY = `sk-${HUSH}`;
const SECRETS = `/api/organizations/${ORGANIZATION}/secrets`;
const SETTINGS = `/api/organizations/${ORGANIZATION}/settings`;
const PROFILES = '/api/v1/settings/profiles';
const OF_ORGANIZATION = '?scope=organization';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
interface Call {
  method: Method;
  path: string;
  body?: object;
}

const app = useTestApp();
const audit = new AuditClient(app);
let member: TestUser;
let client: SettingsClient;

const call = ({ method, path, body }: Call, headers: Record<string, string>): request.Test => {
  const asked = app.as({ headers }).ask(method, path);
  return body === undefined ? asked : asked.send(body);
};
const asAdmin = (method: Method, path: string, body?: object): request.Test =>
  call({ method, path, ...(body && { body }) }, app.admin.headers);
const asMember = (method: Method, path: string, body?: object): request.Test =>
  call({ method, path, ...(body && { body }) }, member.headers);

beforeEach(async () => {
  await app.dataSource.query(
    `WITH s AS (DELETE FROM settings WHERE user_id = $1), m AS (DELETE FROM mcp_configs WHERE user_id = $1),
      p AS (DELETE FROM llm_profiles WHERE user_id = $1) DELETE FROM custom_secrets WHERE user_id = $1`,
    [ORGANIZATION],
  );
  member = await app.createUser();
  client = new SettingsClient(app, member);
});

async function share(body: object): Promise<void> {
  await asAdmin('post', `/api/settings${OF_ORGANIZATION}`, body).expect(200);
}

const startOf = (user: TestUser, start?: Start): Promise<unknown> => builtRequest(app, user, start);

describe('settings of the organization', () => {
  it('are there before anything is stored, for members to read', async () => {
    const { body } = await asMember('get', `/api/settings${OF_ORGANIZATION}`).expect(200);

    expect(body).toMatchObject({
      llm_model: null,
      llm_source: null,
      mcp_config: null,
      from_organization: [],
    });
    await asMember('get', '/api/settings').expect(404);
  });

  it('lie under those of a member, whose view tells which they are', async () => {
    await share({
      llm_model: MODEL,
      llm_api_key: KEY,
      llm_base_url: GATEWAY,
      max_iterations: 50,
      fork: 'never',
    });
    await share({ search_api_key: HUSH, enable_default_condenser: false });
    const inherited = ['max_iterations', 'search_api_key', 'enable_default_condenser', 'fork'];

    const shown = await client.stored();
    expect(shown).toMatchObject({
      llm_model: MODEL,
      llm_base_url: null,
      llm_api_key: null,
      llm_api_key_set: true,
      search_api_key_set: true,
      llm_source: 'organization',
      max_iterations: 50,
      fork: 'never',
      enable_default_condenser: false,
    });
    expect(shown['from_organization']).toEqual(
      expect.arrayContaining([...inherited, 'llm_model', 'llm_api_key']),
    );
    expect(shown['from_organization']).toHaveLength(inherited.length + 2);
    const { body: nested } = await asMember('get', '/api/v1/settings').expect(200);
    expect(nested).toMatchObject({
      llm_source: 'organization',
      from_organization: shown['from_organization'],
      agent_settings: { llm: { model: MODEL, base_url: null } },
      conversation_settings: { max_iterations: 50 },
    });

    await client.store({ max_iterations: 7, llm_model: 'mistral/own', llm_api_key: 'sk-own' });
    expect(await client.stored()).toMatchObject({
      max_iterations: 7,
      llm_model: 'mistral/own',
      llm_source: 'user',
      from_organization: expect.not.arrayContaining(['max_iterations', 'llm_model', 'llm_api_key']),
    });
    const { max_iterations: sent } = Object(jsonAt(await startOf(member), 'body'));
    expect(sent).toBe(7);
    expect(await app.app.get(SettingsRepository).effective(member.id)).toMatchObject({
      max_iterations: 7,
      fork: 'never',
      clone_depth: null,
    });
  });

  describe('and a whole form that sends back what it was shown', () => {
    const echo = async (by: 'nested' | 'flat', changed: object = {}): Promise<void> => {
      if (by === 'flat') {
        await client.store({ ...(await client.stored()), ...changed });
        return;
      }
      const { body } = await asMember('get', '/api/v1/settings').expect(200);
      const { agent_settings, conversation_settings, ...rest } = body;
      await asMember('post', '/api/v1/settings', {
        ...rest,
        ...changed,
        agent_settings_diff: agent_settings,
        conversation_settings_diff: conversation_settings,
      }).expect(200);
    };
    /** What is stored as the member's own, but for preferences, which are theirs alone. */
    const own = async (): Promise<unknown> => {
      const { document, details, keys } = await app.app.get(SettingsRepository).loadWithKeys(member.id);
      const isSet = ([, value]: [string, unknown]): boolean => Object.keys(Object(value)).length > 0;
      const agent = Object.fromEntries(Object.entries(details.agent).filter(isSet));
      const kept = Object.values(keys).filter((key) => key !== null);
      return { document, agent, conversation: details.conversation, keys: kept };
    };
    const NOTHING = { document: {}, agent: {}, conversation: {}, keys: [] };
    const nested = (agent: object, conversation: object, query = ''): request.Test =>
      (query === '' ? asMember : asAdmin)('post', `/api/v1/settings${query}`, {
        agent_settings_diff: agent,
        conversation_settings_diff: conversation,
      }).expect(200);

    it('makes nothing the own of its sender where nothing is set', async () => {
      await client.store({ language: 'fr' });
      await echo('nested');
      await echo('flat');
      expect(await own()).toEqual({ ...NOTHING, document: { language: 'fr' } });
    });

    it.each(['nested', 'flat'] as const)(
      'makes nothing of the organization the own of its sender: %s',
      async (by) => {
        await share({
          llm_model: MODEL,
          llm_api_key: KEY,
          max_iterations: 50,
          enable_default_condenser: false,
          search_api_key: HUSH,
          git_user_name: 'Team',
        });
        await nested(
          { agent: 'CodeActAgent', agent_context: { load_memory: true }, condenser: { max_size: 77 } },
          { confirmation_mode: true, security_analyzer: 'pattern' },
          OF_ORGANIZATION,
        );
        await client.store({ language: 'fr' });
        await echo(by);
        await echo(by === 'flat' ? 'nested' : 'flat');
        expect(await own()).toEqual({ ...NOTHING, document: { language: 'fr' } });
        const later = { confirmation_mode: false, max_iterations: 60, llm_model: 'openai/other' };
        await share({ ...later, git_user_name: null });
        expect(await client.stored()).toMatchObject({ ...later, git_user_name: null });
      },
    );

    it('keeps what its sender has set, and what its sender changes in it', async () => {
      await nested({ agent_context: { load_memory: true } }, { confirmation_mode: true }, OF_ORGANIZATION);
      await nested({ agent_context: { load_memory: false } }, { confirmation_mode: false });
      await echo('nested');
      await echo('flat');
      await nested({ agent_context: { load_memory: false } }, {}, OF_ORGANIZATION);
      const { body } = await asMember('get', '/api/v1/settings').expect(200);
      expect(body).toMatchObject({
        agent_settings: { agent_context: { load_memory: false } },
        conversation_settings: { confirmation_mode: false },
      });
      expect(await own()).toMatchObject({
        document: { confirmation_mode: false },
        agent: { agent_context: { load_memory: false } },
      });
    });

    it('shows what agents of its sender get', async () => {
      const shown = async (): Promise<unknown> => {
        const { body } = await asMember('get', '/api/v1/settings').expect(200);
        const { agent_context, condenser } = body.agent_settings;
        return { memory: agent_context.load_memory, size: condenser.max_size };
      };
      const used = async (): Promise<unknown> => {
        const { settings } = await app.app.get(AgentInputsReader).readConfiguration(member.id, null);
        return { memory: settings.load_memory ?? false, size: settings.condenser_parameters?.['max_size'] };
      };
      await nested(
        { agent_context: { load_memory: true }, condenser: { max_size: 77 } },
        {},
        OF_ORGANIZATION,
      );
      expect([await shown(), await used()]).toEqual(
        Array.from({ length: 2 }, () => ({ memory: true, size: 77 })),
      );
      await nested({ condenser: { max_size: 50 }, agent_context: {} }, {});
      expect([await shown(), await used()]).toEqual(
        Array.from({ length: 2 }, () => ({ memory: true, size: 50 })),
      );
    });
  });

  it('give way to a value that is the default otherwise, and to one that is the same', async () => {
    await share({ enable_default_condenser: false, max_iterations: 50 });
    await client.store({ enable_default_condenser: true, max_iterations: 40 });
    await client.store({ max_iterations: 50, language: 'fr' });
    await share({ max_iterations: 60 });

    expect(await client.stored()).toMatchObject({
      enable_default_condenser: true,
      max_iterations: 50,
      from_organization: [],
    });
    await client.store({ max_iterations: null });
    expect(await client.stored()).toMatchObject({
      max_iterations: 60,
      from_organization: ['max_iterations'],
    });
  });

  it('have parameters of the condenser that a member completes one by one', async () => {
    const condense = async (given: object, query = ''): Promise<unknown> =>
      (query === '' ? asMember : asAdmin)('post', `/api/v1/settings${query}`, {
        agent_settings_diff: { condenser: given },
      }).expect(200);
    await condense({ max_size: 77, max_tokens: 9_999 }, OF_ORGANIZATION);
    const used = async (): Promise<unknown> =>
      (await app.app.get(AgentInputsReader).readConfiguration(member.id, null)).settings.condenser_parameters;

    // As forms send back what nobody has set.
    await condense({ enabled: true, max_tokens: null, max_size: null, keep_first: null });
    expect(await used()).toEqual({ max_size: 77, max_tokens: 9_999 });
    await condense({ max_size: 50 });
    expect(await used()).toEqual({ max_size: 50, max_tokens: 9_999 });
  });

  it('store the model of the same name that comes with a key or an address', async () => {
    await share({ llm_model: MODEL, llm_api_key: KEY, llm_base_url: GATEWAY });
    await client.store({ llm_model: MODEL, llm_api_key: 'sk-own', llm_base_url: 'https://mine.example.com' });
    expect(modelIn(await startOf(member))).toEqual({
      key: 'sk-own',
      model: MODEL,
      at: 'https://mine.example.com',
    });
    await client.store({ llm_model: '', llm_api_key: '' });
    await client.store({ llm_model: MODEL });
    expect(modelIn(await startOf(member))).toEqual({
      key: null,
      model: MODEL,
      at: 'https://mine.example.com',
    });
  });

  it('are shown and changed by the routes of clients of OpenHands, too', async () => {
    const change = { agent_settings_diff: { llm: { model: 'openai/gpt-5', temperature: 0.5 } } };
    await asAdmin('patch', SETTINGS, { ...change, llm_api_key: KEY, search_api_key: HUSH }).expect(200);
    await asAdmin('patch', SETTINGS, { conversation_settings_diff: { max_iterations: 9 } }).expect(200);

    for (const headers of [app.admin.headers, member.headers]) {
      const { body } = await call({ method: 'get', path: SETTINGS }, headers).expect(200);
      expect(body).toEqual({
        agent_settings: expect.objectContaining({
          llm: expect.objectContaining({ model: 'openai/gpt-5', temperature: 0.5 }),
        }),
        conversation_settings: expect.objectContaining({ max_iterations: 9 }),
        llm_api_key_set: true,
        search_api_key: null,
      });
    }
    const sent = await startOf(member);
    expect(modelIn(sent)).toEqual({ key: KEY, model: 'openai/gpt-5', at: null });
    expect(jsonAt(sent, 'body', 'agent', 'llm', 'temperature')).toBe(0.5);
    const own = { agent_settings_diff: { agent: 'CodeActAgent' }, max_iterations: 3 };
    await asMember('patch', `/api/organizations/${member.id}/settings`, own).expect(200);
    expect(await client.stored()).toMatchObject({ max_iterations: 3 });
  });

  it('have no git tokens and no secrets', async () => {
    for (const members of [
      { provider_tokens: { github: { token: 'ghp_x' } } },
      { custom_secrets: { NAME: { secret: 'x' } } },
    ]) {
      const [name] = Object.keys(members);
      const { body } = await asAdmin('post', `/api/settings${OF_ORGANIZATION}`, { secrets_store: members });
      expect(body.detail).toMatchObject([{ loc: ['body', 'secrets_store', name] }]);
    }
    await share({ secrets_store: { provider_tokens: {}, custom_secrets: {} }, language: 'de' });
    const { body } = await asMember('get', '/api/settings?scope=all').expect(422);
    expect(body.detail).toMatchObject([{ loc: ['query', 'scope'], type: 'enum' }]);
  });

  it('stay when the user goes who stored them, and name that user in the audit', async () => {
    const { key, id } = await administrator();
    await call(
      { method: 'post', path: `/api/settings${OF_ORGANIZATION}`, body: { language: 'it' } },
      { 'X-Session-API-Key': key },
    ).expect(200);
    const entries = await audit.find({ actor_user_id: id });
    expect(entries).toMatchObject([{ action: 'settings.update', owner_user_id: ORGANIZATION }]);
    await asAdmin('delete', `/api/v1/users/${id}`).expect(204);

    expect(await client.stored()).toMatchObject({ language: 'it' });
  });
});

async function administrator(): Promise<TestUser> {
  const user = await app.createUser();
  await app.dataSource.query('UPDATE users SET is_admin = true WHERE id = $1', [user.id]);
  return user;
}

describe('the model of the organization', () => {
  beforeEach(() =>
    share({ llm_model: MODEL, llm_api_key: KEY, llm_base_url: GATEWAY, max_budget_per_task: 3 }),
  );

  it('is called for members who have none, and given again after a restart', async () => {
    const sent = await startOf(member);
    expect(modelIn(sent)).toEqual({ key: KEY, model: MODEL, at: GATEWAY });
    expect(JSON.stringify(sent)).toContain('"max_budget":3');
    expect(modelIn(await startOf(member, { llm_model: 'team/small' }))).toMatchObject({
      key: KEY,
      at: GATEWAY,
    });

    const credentials = async (isOurs: boolean): Promise<unknown> => {
      const began = { llmModel: MODEL, llmBaseUrl: GATEWAY };
      const { id } = await new ConversationRows(app).conversation(member.id, began);
      return await app.app.get(CredentialsBuilder).build({ id, userId: member.id }, isOurs);
    };
    expect(await credentials(true)).toMatchObject({ llm_model: MODEL, llm_api_key: KEY });
    expect(JSON.stringify(await credentials(false))).not.toContain(HUSH);
    const { open } = await app.app.get(OpenHosts).of({ id: 'none', userId: member.id, egressMode: 'rules' });
    expect(open).toContainEqual({ host: 'gateway.example.com' });
  });

  it.each<[string, object, Start]>([
    ['an address below its own', { llm_base_url: `${GATEWAY}/mine` }, {}],
    ['a model of the start that is called there', {}, { llm_model: 'ollama/mine' }],
    ['an agent server of others', {}, { dialect: 'stock' }],
    ['an image of the member', {}, { hasOwnImage: true }],
  ])('keeps its key, and those of tool servers and the search, from %s', async (_case, settings, given) => {
    await share({
      search_api_key: HUSH,
      mcp_config: { shttp_servers: [{ url: 'https://files.example.com/mcp', api_key: HUSH }] },
    });
    await client.store({ llm_model: null, ...settings });
    const isOthers = given.dialect !== undefined || given.hasOwnImage === true;
    const sent = await startOf(member, given);

    expect(JSON.stringify(sent)).not.toContain(KEY);
    expect(JSON.stringify(sent).includes(HUSH)).toBe(!isOthers && jsonAt(sent, 'body') !== undefined);
  });

  it('keeps the headers that it is called with from other servers, and takes none that steer it elsewhere', async () => {
    const llm = { extra_headers: { 'x-team': HUSH }, temperature: 0.2 };
    await asAdmin('post', `/api/v1/settings${OF_ORGANIZATION}`, { agent_settings_diff: { llm } }).expect(200);
    await asMember('post', '/api/v1/settings', {
      agent_settings_diff: {
        llm: { temperature: 0.7, extra_headers: { 'x-custom-host': 'mine.example.com' } },
      },
    }).expect(200);

    const shared = await startOf(member);
    expect(jsonAt(shared, 'body', 'agent', 'llm')).toMatchObject({
      temperature: 0.7,
      extra_headers: { 'x-team': HUSH },
    });
    expect(JSON.stringify(shared)).not.toContain('mine.example.com');
    for (const settings of [{ llm_api_key: 'sk-own' }, { llm_base_url: 'https://mine.example.com' }]) {
      await client.store(settings);
      expect(JSON.stringify(await startOf(member))).not.toContain(HUSH);
    }
  });

  it('has no key where a program of the member may listen', async () => {
    await share({ llm_model: 'ollama/large', llm_base_url: '' });

    expect(JSON.stringify(await startOf(member))).not.toContain(HUSH);
  });

  it('is tried at its own address alone', async () => {
    const trial = { llm: { model: MODEL, base_url: 'https://mine.example.com/v1', api_key: '**********' } };
    const { text } = await asMember('post', '/api/v1/model-check', trial);

    expect(text).not.toContain(HUSH);
  });
});

describe('profiles of the organization', () => {
  const fast = {
    llm: { model: MODEL, base_url: 'https://fast.example.com/v1', api_key: KEY, temperature: 0.1 },
  };

  beforeEach(() => asAdmin('post', `${PROFILES}/fast${OF_ORGANIZATION}`, fast).expect(201));

  it('are named in starts by members, whose own of that name win', async () => {
    expect((await asMember('get', PROFILES).expect(200)).body.profiles).toEqual([
      { name: 'fast', model: MODEL, base_url: fast.llm.base_url, api_key_set: true, source: 'organization' },
    ]);
    const sent = await startOf(member, { llm_profile: 'fast' });
    expect(modelIn(sent)).toEqual({ key: KEY, model: MODEL, at: fast.llm.base_url });
    expect(jsonAt(sent, 'body', 'agent', 'llm', 'temperature')).toBe(0.1);
    await client.store({ llm_model: 'mistral/own', llm_api_key: 'sk-own' });
    expect(modelIn(await startOf(member, { llm_profile: 'fast' }))).toMatchObject({ key: KEY });

    const own = { llm: { model: 'openai/own', api_key: 'sk-mine' } };
    await asMember('post', `${PROFILES}/fast`, own).expect(201);
    expect(modelIn(await startOf(member, { llm_profile: 'fast' }))).toMatchObject({ key: 'sk-mine' });
    const { body } = await asMember('get', PROFILES).expect(200);
    expect(body.profiles).toMatchObject([{ name: 'fast', model: 'openai/own', source: 'user' }]);
  });

  it('are not made the own of a member, who could read their keys', async () => {
    for (const [method, path, body] of [
      ['post', '/fast/activate', {}],
      ['post', '/fast/rename', { new_name: 'mine' }],
      ['delete', '/fast', undefined],
    ] as const) {
      const answer = await asMember(method, `${PROFILES}${path}`, body).expect(409);
      expect(answer.body.detail).toContain('llm_profile');
    }
    expect(await client.dump()).toBe('[[],[],[],[]]');
  });

  it('change by the query and by the address of the organization', async () => {
    const at = `/api/organizations/${ORGANIZATION}/profiles`;
    await asAdmin('post', `${at}/slow`, { llm: { model: 'openai/slow' } }).expect(201);
    await asAdmin('post', `${PROFILES}/slow/rename${OF_ORGANIZATION}`, { new_name: 'slower' }).expect(200);
    await asAdmin('post', `${at}/slower/activate`).expect(200);
    expect((await asAdmin('get', at).expect(200)).body).toMatchObject({
      profiles: [{ name: 'fast' }, { name: 'slower', source: 'organization' }],
      active_profile: 'slower',
    });
    expect(await client.stored()).toMatchObject({
      llm_model: 'openai/slow',
      from_organization: ['llm_model'],
    });
    await asAdmin('delete', `${at}/slower`).expect(200);
  });

  it('lie under the own of members at the address of the organization, where clients of the peer look', async () => {
    const at = `/api/organizations/${ORGANIZATION}/profiles`;
    await asMember('post', `${at}/mine`, { llm: { model: 'openai/mine' } }).expect(201);

    const listed = [
      { name: 'mine', source: 'user' },
      { name: 'fast', source: 'organization' },
    ];
    expect((await asMember('get', at).expect(200)).body.profiles).toMatchObject(listed);
    expect((await asMember('get', PROFILES).expect(200)).body.profiles).toMatchObject(listed);
    expect((await asAdmin('get', at).expect(200)).body.profiles).toMatchObject([{ name: 'fast' }]);
  });
});

describe('tool servers of the organization', () => {
  it('are started for members, whose own of that name win', async () => {
    const mcp_config = { own: { command: 'shared' }, files: { command: 'files', env: { TOKEN: HUSH } } };
    await share({ llm_model: MODEL, llm_base_url: GATEWAY });
    const diff = { agent_settings_diff: { mcp_config } };
    await asAdmin('post', `/api/v1/settings${OF_ORGANIZATION}`, diff).expect(200);
    await asMember('post', '/api/v1/settings', {
      agent_settings_diff: { mcp_config: { own: { command: 'mine' } } },
    }).expect(200);

    const servers = jsonAt(await startOf(member), 'body', 'agent', 'mcp_config');
    expect(servers).toMatchObject({ own: { command: 'mine' }, files: { env: { TOKEN: HUSH } } });
    const { body } = await asMember('get', `/api/settings${OF_ORGANIZATION}`).expect(200);
    expect(body.mcp_config.stdio_servers).toMatchObject([{ name: 'own' }, { env: { TOKEN: '**********' } }]);
  });
});

describe('secrets of the organization', () => {
  const create = (body: object): request.Test => asAdmin('post', SECRETS, body);

  it('are stored, listed, described anew and deleted, and no answer has a value', async () => {
    const { body: stored, text } = await create({ name: 'TOKEN', value: HUSH, description: 'd' }).expect(201);
    expect(stored).toEqual({ name: 'TOKEN', description: 'd', created_at: expect.any(String) });
    await create({ name: 'OTHER', value: HUSH }).expect(201);
    const list = await asMember('get', `${SECRETS}?limit=1`).expect(200);
    expect(list.body).toEqual({
      items: [{ name: 'OTHER', description: null, created_at: expect.any(String) }],
      next_page_id: expect.any(String),
    });
    const next = await asMember('get', `${SECRETS}?page_id=${list.body.next_page_id}`).expect(200);
    expect(next.body).toMatchObject({ items: [{ name: 'TOKEN' }], next_page_id: null });

    const { body: taken } = await create({ name: 'TOKEN', value: HUSH }).expect(409);
    expect(taken).toMatchObject({ code: 'conflict' });
    const { body: limited } = await create({ name: 'X', value: HUSH, host: ['a.example.com'] }).expect(422);
    expect(limited.detail).toMatchObject([{ loc: ['body', 'host'] }]);
    const put = (name: string, body: object): request.Test => asAdmin('put', `${SECRETS}/${name}`, body);
    const { body: refused } = await put('TOKEN', { value: 'x' }).expect(422);
    expect(refused.detail).toMatchObject([{ loc: ['body', 'value'], type: 'extra_forbidden' }]);
    await put('TOKEN', { name: 'OTHER' }).expect(409);
    await put('NONE', { description: 'x' }).expect(404);
    const { body: changed } = await put('TOKEN', { name: 'RENAMED', description: null }).expect(200);
    expect(changed).toEqual({ name: 'RENAMED', description: null, created_at: stored.created_at });
    await asAdmin('delete', `${SECRETS}/TOKEN`).expect(404);
    await asAdmin('delete', `${SECRETS}/RENAMED`).expect(204);
    for (const [method, path, body] of [
      ['get', '', undefined],
      ['post', '', { name: 'X', value: 'x' }],
    ] as const) {
      await asAdmin(method, `/api/organizations/${member.id}/secrets${path}`, body).expect(404);
    }
    const { text: listed } = await asAdmin('get', SECRETS).expect(200);
    expect(text + listed).not.toContain(HUSH);
    const [row] = await app.dataSource.query<{ value: string }[]>(
      'SELECT value FROM custom_secrets WHERE user_id = $1',
      [ORGANIZATION],
    );
    expect(row?.value).not.toContain(HUSH);
  });

  it('are given to conversations of members, whose own of that name win, and as far as a start names them', async () => {
    await create({ name: 'SHARED', value: HUSH, description: 'd' }).expect(201);
    await create({ name: 'BOTH', value: HUSH }).expect(201);
    await asMember('post', '/api/v1/secrets', { name: 'BOTH', value: 'mine' }).expect(201);
    await share({ llm_model: MODEL, llm_base_url: GATEWAY });

    const given = async (start: Start = {}): Promise<unknown> =>
      jsonAt(await startOf(member, start), 'body', 'secrets');
    expect(await given()).toEqual({
      SHARED: { kind: 'StaticSecret', value: HUSH, description: 'd' },
      BOTH: { kind: 'StaticSecret', value: 'mine' },
    });
    expect(Object.keys(Object(await given({ secret_names: ['BOTH'] })))).toEqual(['BOTH']);
    expect(await given({ secret_names: [] })).toEqual({});
    const { body } = await asMember('get', '/api/v1/secrets/search').expect(200);
    expect(body.items).toEqual([
      { name: 'BOTH', description: null, scope: 'user' },
      { name: 'SHARED', description: 'd', scope: 'organization' },
    ]);
  });
});

describe('what has no organization', () => {
  const alone = operationsOf(committedDocument())
    .map(({ name, operation }) => {
      const [method = '', path = ''] = name.split(' ');
      const isScoped = JSON.stringify(operation.parameters ?? []).includes('scope');
      return { method: method.toLowerCase() as Method, path: path.replace(/\{\w+\}/, 'NAME'), isScoped };
    })
    .filter(
      ({ path, isScoped }) => !isScoped && /\/secrets|git-providers|provider-tokens|model-check/.test(path),
    )
    .filter(({ path }) => !/organizations|sandboxes/.test(path));

  it('are secrets, git tokens and tests of models', () => {
    expect(alone).toHaveLength(13);
  });

  it.each(alone)('$method $path says so, and what to ask instead', async ({ method, path }) => {
    const { body } = await asAdmin(method, `${path}${OF_ORGANIZATION}`, {}).expect(422);
    const instead = path.includes('model-check')
      ? 'profile'
      : /git-providers|provider-tokens/.test(path)
        ? 'git tokens are of users'
        : '/api/organizations/{organization_id}/secrets';
    expect(body.detail).toEqual([
      { loc: ['query', 'scope'], type: 'value_error', msg: expect.stringContaining(instead) },
    ]);
    const own = await asAdmin(method, `${path}?scope=user`, {});
    expect(JSON.stringify(own.body)).not.toContain('"query","scope"');
  });
});

describe('what the organization has', () => {
  const CHANGES: Call[] = [
    { method: 'post', path: `/api/settings${OF_ORGANIZATION}`, body: { language: 'de' } },
    { method: 'post', path: `/api/v1/settings${OF_ORGANIZATION}`, body: { language: 'de' } },
    { method: 'patch', path: SETTINGS, body: { language: 'de' } },
    { method: 'post', path: `${PROFILES}/p${OF_ORGANIZATION}`, body: { llm: { model: 'openai/x' } } },
    { method: 'post', path: `${PROFILES}/p/activate${OF_ORGANIZATION}` },
    { method: 'post', path: `${PROFILES}/p/rename${OF_ORGANIZATION}`, body: { new_name: 'q' } },
    { method: 'delete', path: `${PROFILES}/q${OF_ORGANIZATION}` },
    { method: 'post', path: SECRETS, body: { name: 'NAME', value: 'value' } },
    { method: 'put', path: `${SECRETS}/NAME`, body: { description: 'x' } },
    { method: 'delete', path: `${SECRETS}/NAME` },
  ];
  const READS: Call[] = [
    `/api/settings${OF_ORGANIZATION}`,
    `/api/v1/settings${OF_ORGANIZATION}`,
    SETTINGS,
    `${PROFILES}${OF_ORGANIZATION}`,
    `/api/organizations/${ORGANIZATION}/profiles`,
    SECRETS,
  ].map((path) => ({ method: 'get', path }));
  let viewer: TestUser;
  /** Keys of an administrator without one scope each. */
  let lacking: Record<string, Record<string, string>>;

  beforeAll(async () => {
    viewer = await app.createUser();
    await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [viewer.id]);
    lacking = {};
    for (const scope of SCOPES) {
      const scopes = SCOPES.filter((each) => each !== scope);
      const given = { userId: app.admin.id, name: scope, expiresAt: null, scopes };
      const { key } = await app.app.get(ApiKeysService).issue(given);
      lacking[scope] = { 'X-Session-API-Key': key };
    }
  });

  it('is changed by administrators alone, with keys that have both scopes', async () => {
    const before = await rows();
    for (const change of CHANGES) {
      const refused = await call(change, member.headers).expect(403);
      expect(refused.body.detail).toBe('Only administrators change what the organization has.');
      await call(change, viewer.headers).expect(403);
      for (const scope of ['settings', 'admin']) {
        const answer = await call(change, lacking[scope] ?? {}).expect(403);
        expect(answer.body).toMatchObject({ code: 'insufficient_scope', scope });
      }
    }
    expect(await rows()).toEqual(before);
    for (const change of CHANGES) {
      const { status } = await call(change, app.admin.headers);
      expect([change.path, status < 300]).toEqual([change.path, true]);
    }
  });

  it('is read by every member, by keys that may read', async () => {
    await share({ language: 'de' });
    for (const read of READS) {
      for (const headers of [member.headers, viewer.headers, app.admin.headers, lacking['admin'] ?? {}]) {
        await call(read, headers).expect(200);
      }
      await call(read, lacking['read'] ?? {}).expect(403);
    }
  });

  it('shows no key and no secret to a member by any route', async () => {
    await share({ llm_model: MODEL, llm_api_key: KEY, search_api_key: HUSH, sandbox_api_key: HUSH });
    await share({
      mcp_config: {
        shttp_servers: [{ url: 'https://mcp.example.com', api_key: HUSH }],
        stdio_servers: [{ name: 'x', command: 'x', env: { TOKEN: HUSH } }],
      },
    });
    const llm = { extra_headers: { 'x-team': HUSH } };
    await asAdmin('post', `/api/v1/settings${OF_ORGANIZATION}`, { agent_settings_diff: { llm } }).expect(200);
    await asAdmin('post', `${PROFILES}/fast${OF_ORGANIZATION}`, {
      llm: { model: MODEL, api_key: KEY },
    }).expect(201);
    await asAdmin('post', SECRETS, { name: 'TOKEN', value: HUSH }).expect(201);
    const sandbox = await insertSandboxRow(app.dataSource, member.id);
    const beside = { Authorization: `Bearer ${member.key}`, 'X-Session-API-Key': sandbox.key };
    const ofSandbox = `/api/v1/sandboxes/${sandbox.id}/settings/secrets`;
    const lists = operationsOf(committedDocument())
      .filter(({ name }) => /^GET \/api\/[^{]*$/.test(name) && !name.includes('/stream'))
      .map(({ name }) => name.replace('GET ', ''));

    const read = [...lists, ...READS.map(({ path }) => path)];
    const texts = await Promise.all(
      [...read, `${PROFILES}/fast`, `${PROFILES}/fast${OF_ORGANIZATION}`].map(
        async (path) => (await asMember('get', path)).text,
      ),
    );
    const others = [
      await call({ method: 'get', path: '/api/v1/users/me?expose_secrets=true' }, beside).expect(200),
      await call({ method: 'get', path: ofSandbox }, sandbox.headers).expect(200),
      await call({ method: 'get', path: `${ofSandbox}/TOKEN` }, sandbox.headers).expect(404),
      await asMember('post', `${PROFILES}/mine`, { include_secrets: true }).expect(404),
    ];
    texts.push(...others.map(({ text }) => text));
    expect(texts.filter((text) => text.includes(HUSH))).toEqual([]);
    expect(texts.join('')).toContain(MODEL);
    expect(await client.dump()).toBe('[[],[],[],[]]');
  });

  it('belongs to no user that a route knows', async () => {
    await asAdmin('get', `/api/v1/users`).expect(({ text }) => expect(text).not.toContain(ORGANIZATION));
    for (const [method, path] of [
      ['delete', ''],
      ['patch', ''],
      ['post', '/disable'],
      ['post', '/restore'],
    ] as const) {
      await asAdmin(
        method,
        `/api/v1/users/${ORGANIZATION}${path}`,
        method === 'patch' ? { is_admin: true } : {},
      ).expect(404);
    }
    await asAdmin('post', '/api/v1/api-keys', { name: 'x', user_id: ORGANIZATION }).expect(404);
  });

  async function rows(): Promise<unknown> {
    const tables = ['settings', 'mcp_configs', 'llm_profiles', 'custom_secrets'];
    return await Promise.all(
      tables.map((table) =>
        app.dataSource.query(`SELECT * FROM ${table} WHERE user_id = $1`, [ORGANIZATION]),
      ),
    );
  }
});
