import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { MCP_CONFIG_ENCRYPTED_COLUMNS } from '../../src/settings/mcp/mcp-config.repository.js';
import { CUSTOM_SECRET_ENCRYPTED_COLUMNS } from '../../src/settings/secrets/custom-secret.repository.js';
import { SETTINGS_ENCRYPTED_COLUMNS } from '../../src/settings/settings.repository.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { SettingsClient } from '../support/settings-client.js';

const STORED = { message: 'Settings stored' };

const EVERYTHING = {
  language: 'en',
  agent: 'CodeActAgent',
  max_iterations: 100,
  security_analyzer: 'llm',
  confirmation_mode: true,
  llm_model: 'provider/model-1',
  llm_base_url: 'https://llm.example.com/v1',
  remote_runtime_resource_factor: 2,
  enable_default_condenser: false,
  enable_sound_notifications: true,
  enable_proactive_conversation_starters: false,
  enable_solvability_analysis: false,
  user_consents_to_analytics: true,
  sandbox_base_container_image: 'image:1',
  sandbox_runtime_container_image: 'image:2',
  max_budget_per_task: 2.5,
  email: 'ada@example.com',
  email_verified: false,
  git_user_name: 'Ada',
  git_user_email: 'ada@users.example.com',
  fork: 'never',
  clone_depth: 50,
  clone_filter: 'tree:0',
  sandbox_egress: { default: 'deny', allow: ['npm'] },
  repositories_read: ['github:octo/*'],
};
const KEYS = { llm_api_key: 'hush-llm', search_api_key: 'hush-search', sandbox_api_key: 'hush-sandbox' };

const KEYS_SET = {
  llm_api_key_set: true,
  search_api_key_set: true,
  sandbox_api_key_set: true,
  llm_source: 'user',
  from_organization: [],
};

const INITIAL = {
  ...Object.fromEntries(Object.keys(EVERYTHING).map((member) => [member, null])),
  llm_api_key: null,
  search_api_key: null,
  sandbox_api_key: null,
  secrets_store: { provider_tokens: {}, custom_secrets: {} },
  enable_default_condenser: true,
  enable_sound_notifications: false,
  enable_proactive_conversation_starters: true,
  enable_solvability_analysis: true,
  mcp_config: null,
  llm_api_key_set: false,
  search_api_key_set: false,
  sandbox_api_key_set: false,
  provider_tokens_set: {},
  llm_source: null,
  from_organization: [],
};

describe('settings', () => {
  const { hosts, app } = useGitHosts();
  let client: SettingsClient;
  let github: { github: { token: string } };

  beforeAll(async () => {
    github = { github: { token: hosts.worlds.github.token } };
  });

  beforeEach(async () => {
    hosts.clearFaults();
    client = new SettingsClient(app, await app.createUser());
  });

  it('finds nothing before anything was stored, and the defaults after an empty request', async () => {
    const { status, body } = await client.get();
    expect(status).toBe(404);
    const detail = 'Settings not found';
    expect(body).toMatchObject({ code: 'not_found', detail, error: detail });
    await client.store({ mcp_config: {} });
    expect((await client.stored())['mcp_config']).toEqual({
      sse_servers: [],
      stdio_servers: [],
      shttp_servers: [],
    });
    await client.store({ mcp_config: null });

    expect(await client.stored()).toEqual(INITIAL);
  });

  it('shows every member, keys only as set, and keeps what a request leaves out', async () => {
    const response = await client.post({ ...EVERYTHING, ...KEYS });

    expect([response.status, response.body]).toMatchObject([200, STORED]);
    expect(await client.stored()).toEqual({ ...INITIAL, ...EVERYTHING, ...KEYS_SET });
    await client.store({ language: 'de' });
    await client.store({});

    expect(await client.stored()).toMatchObject({ ...EVERYTHING, language: 'de', ...KEYS_SET });
  });

  it('stores no default: it would lie over what is set for users who have set nothing', async () => {
    const defaults = Object.entries(INITIAL).filter(([name]) => name.startsWith('enable_'));
    const document = async (): Promise<unknown> => {
      const text = 'SELECT document FROM settings WHERE user_id = $1';
      return (await app.dataSource.query<unknown[]>(text, [client.user.id]))[0];
    };
    // Forms send all that they were shown.
    await client.store(Object.fromEntries(defaults));
    expect(await document()).toEqual({ document: {} });
    await client.store(EVERYTHING);
    expect(await document()).toEqual({ document: EVERYTHING });
    await client.store(Object.fromEntries(defaults));
    expect(await document()).toEqual({
      document: Object.fromEntries(
        Object.entries(EVERYTHING).filter(([name]) => !name.startsWith('enable_')),
      ),
    });
  });

  it('takes tool servers and settings of concurrent requests without losing or blocking any', async () => {
    const server = { url: 'https://mcp.example.com/sse', api_key: 'hush-mcp' };
    const masked = { sse_servers: [{ ...server, api_key: '**********' }] };
    await client.store({ mcp_config: { sse_servers: [server] } });

    const members = Object.entries({ ...EVERYTHING, ...KEYS });
    const answers = await Promise.all(
      members.map(([member, value], index) =>
        client.post({
          [member]: value,
          // With a secret, with a mask (which reads what is stored), and without tool servers, in turn.
          ...[{ mcp_config: { sse_servers: [server] } }, { mcp_config: masked }, {}][index % 3],
        }),
      ),
    );

    expect(answers.map(({ status }) => status)).toEqual(members.map(() => 200));
    expect(await client.stored()).toMatchObject({
      ...EVERYTHING,
      ...KEYS_SET,
      mcp_config: masked,
    });
  });

  it('refuses a user who was removed while the key is still cached', async () => {
    await client.store({ language: 'en' });
    await app.dataSource.query('DELETE FROM users WHERE id = $1', [client.user.id]);

    expect((await client.post({ language: 'de' })).status).toBe(401);
    expect((await client.post({ mcp_config: {} })).status).toBe(401);
  });

  describe('with secrets_store', () => {
    it('merges tokens and secrets into the stored ones', async () => {
      await client.store({
        secrets_store: {
          provider_tokens: github,
          custom_secrets: { A: { secret: 'hush-1', description: 'first' } },
        },
      });
      await client.store({
        secrets_store: {
          provider_tokens: { gitlab: { token: hosts.worlds.gitlab.token } },
          custom_secrets: { A: 'hush-2', B: { secret: 'hush-3', description: null } },
        },
      });

      expect(await client.stored()).toMatchObject({
        secrets_store: { provider_tokens: {}, custom_secrets: {} },
        provider_tokens_set: { github: null, gitlab: null },
      });
      expect(await client.customSecrets()).toEqual([
        { name: 'A', value: 'hush-2', description: 'first' },
        { name: 'B', value: 'hush-3', description: null },
      ]);
    });

    it('is found when only tokens are stored', async () => {
      await app.as(client.user).post('/api/add-git-providers', { provider_tokens: github }).expect(200);

      expect(await client.stored()).toEqual({ ...INITIAL, provider_tokens_set: { github: null } });
    });

    it('stores nothing when a provider rejects its token', async () => {
      const response = await client.post({
        language: 'en',
        mcp_config: {},
        secrets_store: {
          provider_tokens: { github: { token: 'ghp_unknown' } },
          custom_secrets: { A: 'hush-a' },
        },
      });

      expect(response.status).toBe(401);
      expect(response.body).toMatchObject({ code: 'invalid_git_token' });
      expect((await client.get()).status).toBe(404);
      expect(await client.customSecrets()).toEqual([]);
    });

    it('names members that are not known, and nulls that kept a value', async () => {
      await client.post({ llm_model: 'provider/model-1', language: 'de', llm_api_key: 'hush-llm' });
      const shown = await client.stored();

      const { body } = await client.post({
        lanugage: 'en',
        constructor: 1,
        llm_model: null,
        llm_base_url: null,
        language: null,
      });
      expect(body.warnings).toEqual([
        { code: 'null_keeps', member: 'llm_model', detail: expect.stringContaining('blank text clears it') },
        { code: 'unknown_member', member: 'lanugage', detail: expect.any(String) },
        { code: 'unknown_member', member: 'constructor', detail: expect.any(String) },
      ]);
      const { body: echoed } = await client.post(shown);
      expect(echoed.warnings).toEqual([expect.objectContaining({ member: 'llm_api_key' })]);
    });

    it('warns of tokens without a verdict', async () => {
      hosts.github.injectFault({ kind: 'status', status: 503 });

      const response = await client.post({ secrets_store: { provider_tokens: github } });

      expect(response.status).toBe(200);
      expect(response.body).toMatchObject({
        message: 'Settings stored',
        warnings: [{ provider: 'github', code: 'unavailable', detail: expect.any(String) }],
      });
      expect(await client.stored()).toMatchObject({ provider_tokens_set: { github: null } });
    });
  });

  it('keeps no secret in clear, and every record belongs to its place', async () => {
    await client.store({
      ...KEYS,
      mcp_config: {
        sse_servers: [{ url: 'https://mcp.example.com', api_key: 'hush-mcp' }],
        stdio_servers: [{ name: 'a', command: 'b', env: { TOKEN: 'hush-env' } }],
      },
      secrets_store: {
        provider_tokens: { github: { token: hosts.worlds.github.token } },
        custom_secrets: { A: 'hush-custom' },
      },
    });

    const response = await client.get();
    expect(response.text).not.toMatch(/hush-/);
    expect(response.text).not.toContain(hosts.worlds.github.token);
    const dump = await client.dump();
    expect(dump).toContain('mcp.example.com');
    expect(dump).not.toMatch(/hush-/);
    expect(dump).not.toContain(hosts.worlds.github.token);
    const secrets = await Promise.all(
      [
        ...SETTINGS_ENCRYPTED_COLUMNS.filter(({ column }) => column !== 'details'),
        ...CUSTOM_SECRET_ENCRYPTED_COLUMNS,
        ...MCP_CONFIG_ENCRYPTED_COLUMNS,
      ].map(async (place) => {
        const keys = place.keyColumns.map((column) => `${column}::text`).join(', ');
        const [row] = await app.dataSource.query<[Record<string, string>]>(
          `SELECT ${keys}, ${place.column} AS record FROM ${place.table} WHERE user_id = $1`,
          [client.user.id],
        );
        return app.app.get(SecretCipher).decrypt(row['record'] ?? '', place.binding(row));
      }),
    );
    const ofTools = expect.stringContaining('hush-mcp');
    expect(secrets).toEqual(['hush-llm', 'hush-search', 'hush-sandbox', 'hush-custom', ofTools]);
  });
});
