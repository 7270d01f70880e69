import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { parseEncryptionKeys } from '../../src/config/encryption-keys.js';
import { dataSourceOptions } from '../../src/database/data-source-options.js';
import { customSecretBinding } from '../../src/settings/secrets/custom-secret.repository.js';
import { settingsBinding } from '../../src/settings/settings.repository.js';
import { SandboxesService } from '../../src/v1/sandboxes/sandboxes.service.js';
import { FakeBrowser } from '../fakes/fake-push-service.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { runKeysOn, type KeysRun } from '../support/run-keys.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { untilBlocked } from '../support/until-blocked.js';

const OLD = `old:${Buffer.alloc(32, 1).toString('base64')}`;
const NEW = `new:${Buffer.alloc(32, 2).toString('base64')}`;

describe('npm run keys -- reencrypt', () => {
  let hosts: GitHosts;
  /** With secrets of the user. */
  let filled: TestDatabase;
  let user: TestUser;
  let database: TestDatabase;
  let dataSource: DataSource;

  const open = (keys: string, url = database.url): Promise<TestApp> =>
    createTestApp({ ...hosts.environment, ENCRYPTION_KEYS: keys }, url);

  beforeAll(async () => {
    hosts = await startGitHosts();
    filled = await createTestDatabase();
    const before = await open(OLD, filled.url);
    ({ user } = before);
    await store(before, before.user, {
      llm_api_key: 'llm-secret',
      search_api_key: 'search-secret',
      sandbox_api_key: 'sandbox-secret',
      mcp_config: {
        sse_servers: [],
        shttp_servers: [],
        stdio_servers: [{ name: 'tool', command: 'tool', env: { TOKEN: 'mcp-secret' } }],
      },
      secrets_store: {
        provider_tokens: { github: hosts.tokens.provider_tokens.github },
        custom_secrets: { CUSTOM: { secret: 'custom-secret' } },
      },
    });
    await before
      .as(before.user)
      .post('/api/v1/settings', {
        agent_settings_diff: {
          llm: { aws_session_token: 'aws-secret' },
          mcp_config: {
            docs: { url: 'https://docs.example.com/mcp', headers: { 'X-Key': 'header-secret' } },
          },
        },
      })
      .expect(200);
    await before
      .as(before.user)
      .post('/api/v1/settings/profiles/fast', { llm: { model: 'openai/m', api_key: 'profile-secret' } })
      .expect(201);
    await before
      .as(before.user)
      .post('/api/v1/push/subscriptions', new FakeBrowser('https://push.example.com/x').subscription)
      .expect(201);
    await before.app.get(SandboxesService).create(before.user.id, null, null);
    await before.close();
  });

  beforeEach(async () => {
    database = await createTestDatabase(filled);
    dataSource = await new DataSource(dataSourceOptions(database.url, 4)).initialize();
  });

  afterEach(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  afterAll(async () => {
    await filled.drop();
    await hosts.close();
  });

  const run = (keys: string): Promise<KeysRun> =>
    runKeysOn(database.url, ['reencrypt'], { ENCRYPTION_KEYS: keys });

  /** Columns of any table that hold a record under the key. */
  const columnsUnder = async (keyId: string): Promise<string[]> => {
    const tables = await dataSource.query<{ name: string }[]>(
      `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
    );
    const columns: string[] = [];
    for (const { name } of tables) {
      const rows = await dataSource.query<{ column: string }[]>(
        `SELECT DISTINCT '${name}.' || member.key AS column
           FROM ${name} AS source, jsonb_each_text(to_jsonb(source)) AS member WHERE member.value LIKE $1 ORDER BY 1`,
        [`${keyId}.%`],
      );
      columns.push(...rows.map(({ column }) => column));
    }
    return columns;
  };

  it('moves every secret to the new key, and the service then starts with that one alone', async () => {
    const columns = await columnsUnder('old');
    expect(columns).toEqual([
      'custom_secrets.value',
      'llm_profiles.config',
      'mcp_configs.secrets',
      'provider_tokens.token',
      'push_subscriptions.subscription',
      'sandboxes.session_key',
      'service_state.key_check',
      'service_state.push_keys',
      'settings.details',
      'settings.llm_api_key',
      'settings.sandbox_api_key',
      'settings.search_api_key',
    ]);

    const { status, stdout } = await run(`${NEW},${OLD}`);

    expect(status).toBe(0);
    // No start of a conversation with secrets of its own waits here.
    expect(stdout.filter((line) => !line.endsWith(': 0')).toSorted()).toEqual(
      columns.filter((column) => column !== 'service_state.key_check').map((column) => `${column}: 1`),
    );
    expect(await columnsUnder('old')).toEqual([]);
    expect(await columnsUnder('new')).toEqual(columns);
    const after = await open(NEW);
    try {
      const { status: answered } = await after.as(user).get('/api/user/suggested-tasks');
      expect(answered).toBe(200);
    } finally {
      await after.close();
    }
  });

  it('loses nothing of four writers, and leaves nothing under the old key', async () => {
    const keys = `${NEW},${OLD}`;
    const before = await open(OLD);
    const serving = [await open(keys), await open(keys)];
    const writers = await Promise.all(
      [0, 1, 2, 3].map(async (index) => ({
        app: serving[index % 2] ?? before,
        owner: await before.createUser(),
        written: new Map<string, string>(),
      })),
    );
    // All of them have secrets under the old key, which the rotation and the writers then change at the same time.
    await Promise.all(
      writers.map(({ owner }) =>
        store(before, owner, {
          llm_api_key: 'llm-old',
          search_api_key: 'search-old',
          secrets_store: { custom_secrets: { KEPT: { secret: 'kept' }, CUSTOM: { secret: 'custom-old' } } },
        }),
      ),
    );
    try {
      const rotation = { ended: false };
      const writing = writers.map(async ({ app, owner, written }) => {
        for (let turn = 0; !rotation.ended || turn < 20; turn += 1) {
          await store(app, owner, {
            llm_api_key: `llm-${turn}`,
            secrets_store: { custom_secrets: { CUSTOM: { secret: `custom-${turn}` } } },
          });
          written.set('llm_api_key', `llm-${turn}`).set('CUSTOM', `custom-${turn}`);
        }
      });
      const { status } = await run(keys);
      rotation.ended = true;
      await Promise.all(writing);

      expect(status).toBe(0);
      expect(await columnsUnder('old')).toEqual([]);
      for (const { owner, written } of writers) {
        const found = await secretsOf(owner.id);
        expect(found).toEqual({
          llm_api_key: written.get('llm_api_key'),
          search_api_key: 'search-old',
          CUSTOM: written.get('CUSTOM'),
          KEPT: 'kept',
        });
      }
    } finally {
      await Promise.all([before, ...serving].map((app) => app.close()));
    }
  });

  it('never overwrites a value that was written after it was read', async () => {
    const binding = settingsBinding('llm_api_key', user.id);
    const newer = new SecretCipher(parseEncryptionKeys(NEW)).encrypt('newer', binding);
    const writer = dataSource.createQueryRunner();
    await writer.startTransaction();
    await writer.query('UPDATE settings SET llm_api_key = $1', [newer]);

    const rotation = run(`${NEW},${OLD}`);
    await untilBlocked(dataSource);
    await writer.commitTransaction();
    await writer.release();

    expect((await rotation).status).toBe(0);
    expect(await llmKey()).toBe(newer);
  });

  it('walks over more rows than one batch holds', async () => {
    const cipher = new SecretCipher(parseEncryptionKeys(OLD));
    const names = Array.from({ length: 1_100 }, (_, index) => `SECRET_${index}`);
    const values = names.map((name) => cipher.encrypt('value', customSecretBinding(user.id, name)));
    await dataSource.query(
      `INSERT INTO custom_secrets (user_id, name, value) SELECT $1, * FROM unnest($2::text[], $3::text[])`,
      [user.id, names, values],
    );

    const { stdout } = await run(`${NEW},${OLD}`);

    expect(stdout).toContain('custom_secrets.value: 1101');
    expect(await columnsUnder('old')).toEqual([]);
  });

  it('changes nothing the second time', async () => {
    await run(`${NEW},${OLD}`);
    const record = await llmKey();

    const { status, stdout } = await run(`${NEW},${OLD}`);

    expect(status).toBe(0);
    expect(stdout).toContain('settings.llm_api_key: 0');
    expect(await llmKey()).toBe(record);
  });

  it('refuses keys that do not fit, and leaves everything as it was', async () => {
    const { status, stderr } = await run(NEW);

    expect(status).toBe(1);
    expect(stderr[0]).toMatch(/^slipway keys: ENCRYPTION_KEYS: .* encrypted with another key/);
    expect(await columnsUnder('new')).toEqual([]);
  });

  it('names records that it cannot read and keeps the old key in force', async () => {
    await dataSource.query('UPDATE settings SET llm_api_key = $1', ['lost.c2VjcmV0']);

    const { status, stderr } = await run(`${NEW},${OLD}`);

    expect(status).toBe(1);
    expect(stderr).toEqual([
      `settings.llm_api_key of ${user.id}: no encryption key with id "lost" is configured`,
      'slipway keys: ENCRYPTION_KEYS: 1 records cannot be read; keep all keys, and give the missing one too',
    ]);
    expect(await columnsUnder('old')).toEqual(['service_state.key_check']);
  });

  /** Everything of a user, read with the new key alone. */
  async function secretsOf(userId: string): Promise<Record<string, string>> {
    const rows = await dataSource.query<{ name: string; record: string }[]>(
      `SELECT name, value AS record FROM custom_secrets WHERE user_id = $1
       UNION ALL SELECT 'llm_api_key', llm_api_key FROM settings WHERE user_id = $1
       UNION ALL SELECT 'search_api_key', search_api_key FROM settings WHERE user_id = $1`,
      [userId],
    );
    return Object.fromEntries(
      rows.map(({ name, record }) => [
        name,
        decrypt(
          NEW,
          record,
          name === 'llm_api_key' || name === 'search_api_key'
            ? settingsBinding(name, userId)
            : customSecretBinding(userId, name),
        ),
      ]),
    );
  }

  async function llmKey(): Promise<string> {
    const [row] = await dataSource.query<{ llm_api_key: string }[]>('SELECT llm_api_key FROM settings');
    return row?.llm_api_key ?? '';
  }
});

async function store(app: TestApp, user: TestUser, settings: object): Promise<void> {
  await app.as(user).post('/api/settings', settings).expect(200);
}

function decrypt(keys: string, record: string, binding: string): string {
  return new SecretCipher(parseEncryptionKeys(keys)).decrypt(record, binding);
}
