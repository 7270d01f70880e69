import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { McpConfigRepository } from '../../src/settings/mcp/mcp-config.repository.js';
import { SettingsRepository } from '../../src/settings/settings.repository.js';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { untilBlocked } from '../support/until-blocked.js';
import { remoteServer } from '../support/sample-tool-servers.js';
import { useTestApp } from '../support/use-test-app.js';

const PATH = '/api/v1/settings';
interface Shown {
  agent_settings: Record<string, unknown>;
  conversation_settings: Record<string, unknown>;
  [member: string]: unknown;
}

const MASK = '**********';

describe('/api/v1/settings', () => {
  const app = useTestApp();
  let user: TestUser;
  let flat: SettingsClient;

  beforeEach(async () => {
    user = await app.createUser();
    flat = new SettingsClient(app, user);
  });

  const post = (body: object): request.Test => app.as(user).post(PATH, body);
  const store = async (body: object): Promise<void> => {
    const { body: answer } = await post(body).expect(200);
    expect(answer).toMatchObject({ message: 'Settings stored' });
  };
  const shown = async (): Promise<Shown> => (await app.as(user).get(PATH).expect(200)).body;
  /** Older clients are told so. */
  const notStored = async (): Promise<void> => {
    await app.as(user).get('/api/settings').expect(404);
  };
  const problems = async (body: object): Promise<string[]> => {
    const response = await post(body).expect(422);
    return response.body.detail.map(
      ({ loc, type }: { loc: string[]; type: string }) => `${loc.join('.')} ${type}`,
    );
  };

  it('shows a newcomer the defaults, and stores nothing for it', async () => {
    const defaults = await shown();
    expect(defaults).toMatchObject({
      language: null,
      agent_settings: {
        agent_kind: 'openhands',
        agent: 'CodeActAgent',
        llm: { model: null, api_key: null, base_url: null },
        agent_context: { load_memory: false },
        condenser: { enabled: true },
        mcp_config: {},
      },
      conversation_settings: { max_iterations: 500, confirmation_mode: false },
      llm_profiles: { profiles: {}, active: null },
      llm_api_key_set: false,
      search_api_key_set: false,
      provider_tokens_set: {},
    });
    await notStored();

    // What is stored of the defaults reads as they do.
    await store({});
    expect(await shown()).toEqual(defaults);
  });

  it('shows the rows of /api/settings, and stores into them', async () => {
    await flat.store({
      language: 'en',
      agent: 'CodeActAgent',
      llm_model: 'anthropic/m1',
      llm_api_key: 'hush-1',
      llm_base_url: 'https://llm.example.com/v1',
      max_iterations: 7,
      confirmation_mode: true,
      security_analyzer: 'llm',
      enable_default_condenser: false,
      search_api_key: 'hush-2',
    });
    expect(await shown()).toMatchObject({
      language: 'en',
      llm_api_key_set: true,
      search_api_key: null,
      search_api_key_set: true,
      agent_settings: {
        agent_kind: 'openhands',
        agent: 'CodeActAgent',
        llm: { model: 'anthropic/m1', api_key: null, base_url: 'https://llm.example.com/v1' },
        condenser: { enabled: false },
        mcp_config: {},
      },
      conversation_settings: { max_iterations: 7, confirmation_mode: true, security_analyzer: 'llm' },
      llm_profiles: { profiles: {}, active: null },
      provider_tokens_set: {},
    });

    await store({
      language: 'de',
      agent_settings_diff: {
        llm: { model: 'openai/m2', base_url: null },
        condenser: { enabled: null },
      },
      conversation_settings_diff: { max_iterations: null, security_analyzer: 'none' },
    });
    expect(await flat.stored()).toMatchObject({
      language: 'de',
      llm_model: 'openai/m2',
      llm_api_key_set: true,
      llm_base_url: null,
      max_iterations: null,
      confirmation_mode: true,
      enable_default_condenser: true,
      search_api_key_set: true,
    });
    expect((await shown()).conversation_settings).toEqual({
      schema_version: 1,
      max_iterations: 500,
      confirmation_mode: true,
      security_analyzer: 'none',
    });
  });

  it.each([
    ['null', null, 'hush-1'],
    ['the mask', MASK, 'hush-1'],
    ['blank text', '', null],
    ['another key', 'hush-2', 'hush-2'],
  ])('takes %s for the key', async (_what, apiKey, expected) => {
    await store({ agent_settings_diff: { llm: { api_key: 'hush-1' } } });
    await store({ agent_settings_diff: { llm: { api_key: apiKey, model: 'm' } } });

    const { keys } = await app.app.get(SettingsRepository).loadWithKeys(user.id);
    expect(keys.llm_api_key).toBe(expected);
    expect((await shown())['llm_api_key_set']).toBe(expected !== null);
  });

  it('keeps what has no column, also what it does not know, and shows none of its secrets', async () => {
    await store({
      title_llm_profile: 'fast',
      disabled_skills: ['a'],
      some_token: 'hush-app',
      agent_settings_diff: {
        llm: {
          temperature: 0.5,
          aws_secret_access_key: 'hush-aws',
          extra_headers: { 'X-Team': 'hush-header' },
          new_member: { deep: [1, { api_key: 'hush-deep' }] },
        },
        agent_context: { load_memory: true, new_member: 2 },
        condenser: { max_size: 100 },
        verification: { critic_enabled: true, critic_api_key: 'hush-critic' },
      },
      conversation_settings_diff: { new_member: 1 },
    });
    await store({ agent_settings_diff: { llm: { temperature: null, top_p: 1 } } });
    await flat.store({ llm_model: 'm', language: 'en' });

    const settings = await shown();
    expect(settings).toMatchObject({
      title_llm_profile: 'fast',
      disabled_skills: ['a'],
      some_token: MASK,
      git_full_clone: false,
      agent_settings: {
        llm: {
          model: 'm',
          temperature: null,
          top_p: 1,
          aws_secret_access_key: MASK,
          extra_headers: { 'X-Team': MASK },
          new_member: { deep: [1, { api_key: MASK }] },
        },
        agent_context: { load_memory: true, new_member: 2 },
        condenser: { enabled: true, max_size: 100 },
        verification: { critic_enabled: true, critic_api_key: MASK },
      },
      conversation_settings: { new_member: 1 },
    });
    expect(JSON.stringify(settings)).not.toContain('hush');
    expect(await flat.dump()).not.toContain('hush');
    expect(JSON.stringify(await flat.stored())).not.toContain('hush');
  });

  it('takes back what it shows without a change', async () => {
    await flat.store({
      llm_api_key: 'hush-1',
      mcp_config: { sse_servers: [{ url: 'https://sse.example.com', api_key: 'hush-2' }] },
    });
    await store({
      agent_settings_diff: {
        llm: { model: 'openai/m', temperature: 0.5, extra_headers: { A: 'hush-3' } },
        mcp_config: { files: { command: 'npx', env: { T: 'hush-4' }, enabled: false } },
      },
    });
    const before = await shown();
    const stored = async (): Promise<unknown> => [
      await app.app.get(SettingsRepository).loadWithKeys(user.id),
      await app.app.get(McpConfigRepository).read(user.id),
    ];
    const inside = JSON.stringify(await stored());

    const { agent_settings: agent, conversation_settings: conversation, ...others } = before;
    await store({ ...others, agent_settings_diff: agent, conversation_settings_diff: conversation });

    // A remote server has a name from now on; what is shown and stored of everything else is the same.
    expect(await shown()).toEqual(before);
    const after = JSON.stringify(await stored());
    for (const secret of ['hush-1', 'hush-2', 'hush-3']) {
      expect(inside).toContain(secret);
      expect(after).toContain(secret);
    }
  });

  it('merges tool servers by name, as clients send them', async () => {
    await flat.store({
      mcp_config: {
        sse_servers: [{ url: 'https://sse.example.com', api_key: 'hush-1' }],
        stdio_servers: [{ name: 'files', command: 'npx', args: ['-y'], env: { T: 'hush-2' } }],
      },
    });
    await store({
      agent_settings_diff: {
        mcp_config: {
          docs: {
            transport: 'http',
            url: 'https://docs.example.com/mcp',
            headers: { Authorization: 'Bearer hush-3', 'X-Team': 'hush-4' },
            timeout: 30,
            tools: ['search'],
          },
        },
      },
    });
    const servers = async (): Promise<unknown> => (await shown()).agent_settings['mcp_config'];
    expect(await servers()).toEqual({
      files: { transport: 'stdio', command: 'npx', args: ['-y'], env: { T: MASK } },
      sse_0: { transport: 'sse', url: 'https://sse.example.com', auth: { strategy: 'bearer', value: MASK } },
      docs: {
        transport: 'http',
        url: 'https://docs.example.com/mcp',
        auth: { strategy: 'bearer', value: MASK },
        headers: { 'X-Team': MASK },
        timeout: 30,
        tools: ['search'],
      },
    });

    // Older clients send the whole of it, without what they do not know.
    const shownFlat = await flat.stored();
    await flat.store({ language: 'en', mcp_config: shownFlat['mcp_config'] });
    await flat.store({
      mcp_config: {
        sse_servers: [],
        stdio_servers: [{ name: 'files', command: 'uvx', env: 'T=hush-5' }],
        shttp_servers: [{ url: 'https://docs.example.com/mcp', api_key: 'hush-6' }],
      },
    });
    expect(await servers()).toEqual({
      files: { transport: 'stdio', command: 'uvx', args: [], env: { T: MASK } },
      docs: {
        transport: 'http',
        url: 'https://docs.example.com/mcp',
        auth: { strategy: 'bearer', value: MASK },
        headers: { 'X-Team': MASK },
        timeout: 30,
        tools: ['search'],
      },
    });
    expect(await app.app.get(McpConfigRepository).read(user.id)).toContainEqual(
      expect.objectContaining({
        name: 'docs',
        apiKey: 'hush-6',
        details: { headers: { 'X-Team': 'hush-4' }, timeout: 30, tools: ['search'] },
      }),
    );

    await store({ agent_settings_diff: { mcp_config: { files: null, docs: { enabled: false } } } });
    expect(await servers()).toMatchObject({ docs: { enabled: false, timeout: 30 } });
    await store({ agent_settings_diff: { mcp_config: { mcpServers: { only: { command: 'true' } } } } });
    expect(await servers()).toEqual({ only: { transport: 'stdio', command: 'true', args: [], env: {} } });
    await store({ agent_settings_diff: { mcp_config: null } });
    expect(await servers()).toEqual({});
    expect(await flat.dump()).not.toContain('hush');
  });

  it('bounds what patches add up to, variables of commands too', async () => {
    const patch = (name: string): object => {
      const env = Object.fromEntries(
        Array.from({ length: 10 }, (_, index) => [`V${index}`, 'v'.repeat(60_000)]),
      );
      return { agent_settings_diff: { mcp_config: { [name]: { command: 'npx', env } } } };
    };
    await store(patch('first'));
    expect(await problems(patch('second'))).toEqual(['body.agent_settings_diff.mcp_config value_error']);
    await store({ agent_settings_diff: { mcp_config: null } });
  });

  it('gives the secrets of a tool server to no other one that takes its name', async () => {
    const patch = (docs: object): object => ({ agent_settings_diff: { mcp_config: { docs } } });
    const auth = { strategy: 'bearer', value: 'hush-1' };
    await store(
      patch({ url: 'https://docs.example.com/mcp', auth, headers: { 'X-Team': 'hush-2' }, timeout: 30 }),
    );
    const stored = async (): Promise<unknown> => app.app.get(McpConfigRepository).read(user.id);

    await store(patch({ url: 'https://docs.example.com/v2' }));
    expect(await stored()).toMatchObject([
      { apiKey: 'hush-1', details: { headers: { 'X-Team': 'hush-2' } } },
    ]);
    const elsewhere = 'https://docs.example.org/v2';
    expect(await problems(patch({ url: elsewhere, auth: { strategy: 'bearer', value: MASK } }))).toEqual([
      'body.agent_settings_diff.mcp_config.docs.auth.value value_error',
    ]);
    await store(patch({ url: elsewhere }));
    expect(await stored()).toEqual([remoteServer(elsewhere, { name: 'docs', details: { timeout: 30 } })]);
    await store({ agent_settings_diff: { mcp_config: null } });
  });

  it('keeps an agent of the Agent Client Protocol in one place', async () => {
    await store({ agent_settings_diff: { agent_kind: 'acp', acp_server: 'gemini-cli' } });
    expect(await flat.stored()).toMatchObject({ agent: 'acp:gemini-cli' });
    expect((await shown()).agent_settings).toMatchObject({ agent_kind: 'acp', acp_server: 'gemini-cli' });
    await store({ agent_settings_diff: { agent_kind: 'openhands' } });
    expect(await flat.stored()).toMatchObject({ agent: 'CodeActAgent' });
  });

  const agent = (members: object): object => ({ agent_settings_diff: members });
  const llm = (members: object): object => agent({ llm: members });
  const tools = (servers: object): object => agent({ mcp_config: servers });
  it.each<[object, string[]]>([
    [{ agent_settings: {} }, ['agent_settings value_error']],
    [{ conversation_settings: {}, language: 'en' }, ['conversation_settings value_error']],
    [{ agent_settings_diff: 5 }, ['agent_settings_diff dict_type']],
    [agent({ llm: 5 }), ['agent_settings_diff.llm dict_type']],
    [
      agent({ agent_context: { load_memory: 'yes' } }),
      ['agent_settings_diff.agent_context.load_memory bool_type'],
    ],
    [{ language: 5 }, ['language string_type']],
    [
      llm({ model: 5, temperature: 'abc', timeout: -5 }),
      [
        'agent_settings_diff.llm.model string_type',
        'agent_settings_diff.llm.temperature float_type',
        'agent_settings_diff.llm.timeout greater_than_equal',
      ],
    ],
    [llm({ base_url: 'ftp://x' }), ['agent_settings_diff.llm.base_url value_error']],
    [llm({ aws_session_token: MASK }), ['agent_settings_diff.llm.aws_session_token value_error']],
    [
      { conversation_settings_diff: { max_iterations: 0, security_analyzer: 'invariant' } },
      [
        'conversation_settings_diff.max_iterations greater_than_equal',
        'conversation_settings_diff.security_analyzer literal_error',
      ],
    ],
    [agent({ agent_kind: 'x' }), ['agent_settings_diff.agent_kind literal_error']],
    [
      tools({ a: { url: 'nowhere' }, b: 5, c: { command: 'a b' }, d: { command: 'a', tools: 'all' } }),
      [
        'agent_settings_diff.mcp_config.b dict_type',
        'agent_settings_diff.mcp_config.a.url value_error',
        'agent_settings_diff.mcp_config.c.command value_error',
        'agent_settings_diff.mcp_config.d.tools value_error',
      ],
    ],
    [
      tools({ a: { url: 'https://a.example', headers: { A: MASK } } }),
      ['agent_settings_diff.mcp_config.a.headers.A value_error'],
    ],
    [
      tools({ a: { url: 'https://a.example', auth: { strategy: 'oauth2' } } }),
      ['agent_settings_diff.mcp_config.a.auth value_error'],
    ],
  ])('refuses %j and stores nothing of it', async (body, expected) => {
    expect(await problems({ git_user_name: 'Ada', ...body })).toEqual(expected.map((at) => `body.${at}`));
    await notStored();
  });

  it('has room for 64 KiB of what has no column', async () => {
    expect(await problems({ anything: 'x'.repeat(70_000) })).toEqual(['body value_error']);
  });

  it('lets no member reach a prototype', async () => {
    await request(app.url)
      .post(PATH)
      .set({ ...user.headers, 'content-type': 'application/json' })
      .send(
        '{"__proto__":{"a":1},"agent_settings_diff":{"__proto__":{"polluted":1},"llm":{"__proto__":{"b":2}}}}',
      )
      .expect(200);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    await shown();
  });

  it('merges into what the first request of a user stores at the same time', async () => {
    const settings = app.app.get(SettingsRepository);
    const { second } = await settings.transaction(user.id, async (manager) => {
      await settings.mergeWithin(manager, user.id, {
        columns: new Map(),
        details: (stored) => ({ ...stored, app: { first: 1 } }),
      });
      const later = post({ second: 2 }).then(({ status }) => status);
      await untilBlocked(app.dataSource);
      return { second: later };
    });

    expect(await second).toBe(200);
    expect(await shown()).toMatchObject({ first: 1, second: 2 });
  });

  it('describes what can be set', async () => {
    const [agent, conversation] = await Promise.all(
      ['agent-schema', 'conversation-schema'].map(
        async (path) => (await app.as(user).get(`${PATH}/${path}`).expect(200)).body,
      ),
    );
    expect(agent).toMatchObject({ model_name: 'AgentSettings', sections: expect.any(Array) });
    expect(conversation.sections.map(({ key }: { key: string }) => key)).toEqual(['general', 'verification']);
    // The pages of agent-canvas: one without its section says that there is no schema.
    expect(agent.sections.map(({ key }: { key: string }) => key)).toEqual([
      'general',
      'llm',
      'agent_context',
      'condenser',
    ]);
    const llm = agent.sections.find(({ key }: { key: string }) => key === 'llm');
    expect(llm.fields[1]).toEqual({
      key: 'llm.api_key',
      label: 'API key',
      description: expect.any(String),
      section: 'llm',
      section_label: 'LLM',
      value_type: 'string',
      default: null,
      prominence: 'critical',
      depends_on: [],
      secret: true,
      choices: [],
      variant: 'openhands',
    });
  });
});
