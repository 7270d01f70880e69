import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { messagesFor } from '../../src/v1/app-conversations/pending/pending-message.repository.js';
import { startsOf } from '../../src/v1/app-conversations/start/start.worker.js';
import { transitionalOf } from '../../src/v1/sandboxes/sandbox-lifecycle.repository.js';
import { ManualClock } from '../support/manual-clock.js';
import { DataSource } from 'typeorm';
import { dataSourceOptions, runMigrations } from '../../src/database/data-source-options.js';
import { type Lease, LeasedRows } from '@slipway/database/leased-rows.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { SettingsRepository } from '../../src/settings/settings.repository.js';
import { emptySettingsRow, type SettingsChanges, shownSettings } from '@slipway/settings/settings-row.js';
import type request from 'supertest';
import { generateApiKey, parsedApiKey } from '../../src/auth/api-key-format.js';
import { generateSession } from '../../src/auth/sessions/session-cookie.js';
import { SCOPES } from '../../src/common/scopes.js';
import { messageEvent } from '../fakes/sample-events.js';
import { createTestApp } from '../support/create-test-app.js';
import { createEmptyDatabase, type TestDatabase } from '../support/test-database.js';

/** Migrations of the first release; later ones have to let its programs live. */
const FIRST_RELEASE = 1;

interface Column {
  table: string;
  column: string;
  type: string;
  nullable: boolean;
  has_default: boolean;
}

const COLUMNS = `
  SELECT table_name AS "table", column_name AS "column", udt_name AS type, is_nullable = 'YES' AS nullable,
    column_default IS NOT NULL OR is_identity = 'YES' AS has_default
  FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`;

let database: TestDatabase;
let dataSource: DataSource;

beforeAll(async () => {
  database = await createEmptyDatabase();
});

afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

/** The schema as it is after so many migrations; earlier ones must have run. */
async function migrateTo(count: number): Promise<Map<string, Column>> {
  if (dataSource?.isInitialized) {
    await dataSource.destroy();
  }
  dataSource = await new DataSource({
    ...dataSourceOptions(database.url, 2),
    migrations: MIGRATIONS.slice(0, count),
  }).initialize();
  await dataSource.runMigrations({ transaction: 'each' });
  const columns = await dataSource.query<Column[]>(COLUMNS);
  return new Map(columns.map((each) => [`${each.table}.${each.column}`, each]));
}

/** Why a program that knows the schema of before cannot work on that of after. */
function breaks(before: ReadonlyMap<string, Column>, after: ReadonlyMap<string, Column>): string[] {
  const tables = new Set([...before.values()].map(({ table }) => table));
  const gone = [...before].flatMap(([name, { type, nullable }]) => {
    const now = after.get(name);
    if (now === undefined) {
      return [`${name} is gone`];
    }
    const isStricter = nullable && !now.nullable && !now.has_default;
    return [
      ...(now.type === type ? [] : [`${name} is another type`]),
      ...(isStricter ? [`${name} is required`] : []),
    ];
  });
  const demanded = [...after]
    .filter(
      ([name, { table, nullable, has_default: given }]) =>
        tables.has(table) && !before.has(name) && !nullable && !given,
    )
    .map(([name]) => `${name} is demanded of rows that do not know it`);
  return [...gone, ...demanded];
}

/** A database after so many migrations, with a user of then. */
async function ofThen(
  migrations: number,
  act: (before: DataSource, url: string) => Promise<void>,
): Promise<void> {
  const older = await createEmptyDatabase();
  const before = await new DataSource({
    ...dataSourceOptions(older.url, 2),
    migrations: MIGRATIONS.slice(0, migrations),
  }).initialize();
  try {
    await before.runMigrations({ transaction: 'each' });
    await before.query(`INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'then@example.com')`);
    await act(before, older.url);
  } finally {
    await before.destroy();
    await older.drop();
  }
}

/** How many migrations come before one. */
const upTo = (name: string): number => MIGRATIONS.findIndex((each) => each.name.startsWith(name));

describe('an upgrade', () => {
  it('adds before it removes: each schema serves the programs of all before it', async () => {
    const schemas = [await migrateTo(FIRST_RELEASE)];
    for (let count = FIRST_RELEASE + 1; count <= MIGRATIONS.length; count += 1) {
      schemas.push(await migrateTo(count));
    }
    const newest = schemas.at(-1) ?? new Map();

    expect(schemas.flatMap((schema) => breaks(schema, newest))).toEqual([]);
  });

  it('finds what would break an older program', () => {
    const column = (name: string, given: Partial<Column> = {}): [string, Column] => [
      `t.${name}`,
      { table: 't', column: name, type: 'text', nullable: true, has_default: false, ...given },
    ];
    const before = new Map([column('a'), column('b'), column('c')]);
    const after = new Map([
      column('a', { type: 'int4' }),
      column('b', { nullable: false }),
      column('d', { nullable: false }),
    ]);

    expect(breaks(before, after)).toEqual([
      't.a is another type',
      't.b is required',
      't.c is gone',
      't.d is demanded of rows that do not know it',
    ]);
  });

  it('takes up the starts that version 0.2.0 left unfinished, or makes afterwards, when it has had its chance', async () => {
    await ofThen(FIRST_RELEASE, async (before, url) => {
      const start = (status: string, host: string): Promise<unknown> =>
        before.query(
          `INSERT INTO app_conversation_start_tasks
          (id, user_id, status, app_conversation_id, sandbox_id, host_id, request)
        SELECT gen_random_uuid(), id, $1, gen_random_uuid(), 's', $2, '{}' FROM users WHERE email = 'then@example.com'`,
          [status, host],
        );
      const clock = new ManualClock();
      const take = async (host: string): Promise<unknown[]> =>
        (
          await new LeasedRows(before, clock, startsOf(host)).take({
            limit: 9,
            share: 9,
            leaseMs: 60_000,
            held: [],
          })
        ).rows;
      await start('WORKING', 'a');
      await start('ERROR', 'a');
      await runMigrations(url);
      await start('WORKING', 'b');

      expect([await take('a'), await take('b')]).toEqual([[], []]);
      clock.advance(60_000);
      expect([await take('a'), await take('b')]).toMatchObject([[{ attempts: 1 }], [{ attempts: 1 }]]);
    });
  });

  it.each([
    {
      what: 'sandboxes',
      // As version 0.2.0 takes one, and gives it back.
      theirs: `UPDATE sandboxes SET lease_owner = 'theirs', lease_until = $1::timestamptz + interval '15 seconds'
        WHERE host_id = 'a' AND status = ANY('{STARTING,PAUSING,DELETING}') AND (lease_until IS NULL OR lease_until < $1) RETURNING id`,
      back: `UPDATE sandboxes SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = 'theirs' AND $1::timestamptz IS NOT NULL`,
      ours: transitionalOf('a'),
    },
    {
      what: 'pending messages',
      theirs: `UPDATE pending_messages SET attempts = attempts + 1, due_at = $1::timestamptz + interval '2 minutes'
        WHERE due_at <= $1 RETURNING id`,
      back: 'UPDATE pending_messages SET due_at = $1',
      ours: messagesFor('b'),
    },
  ])(
    'shares $what with replicas of version 0.2.0, which skip what this one has',
    async ({ theirs, back, ours }) => {
      const clock = new ManualClock();
      clock.stop();
      await ofThen(FIRST_RELEASE, async (before, url) => {
        await before.query(`
        INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, generation, last_activity_at)
          SELECT host, id, 's', status, 'process', host, 'key', host::bytea, 1, now()
          FROM users, (VALUES ('a', 'STARTING'), ('b', 'RUNNING')) AS given (host, status);
        INSERT INTO app_conversations (id, user_id, sandbox_id, sandbox_generation, working_dir)
          SELECT gen_random_uuid(), id, 'b', 1, '/workspace' FROM users;
        INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
          SELECT gen_random_uuid(), user_id, id, 1, '[]' FROM app_conversations`);
        await runMigrations(url);
        clock.advance(60_000);
        const leases = new LeasedRows(before, clock, ours);
        const take = async (): Promise<Lease[]> =>
          (await leases.take({ limit: 9, share: 9, leaseMs: 60_000, held: [] })).rows;
        const takeTheirs = async (): Promise<number> =>
          (await before.query<[unknown[], number]>(theirs, [new Date(clock.now())]))[1];

        const [mine] = await take();
        expect(mine).toMatchObject({ attempts: 1 });
        expect(await takeTheirs()).toBe(0);
        clock.advance(61_000);
        expect(await takeTheirs()).toBe(1);
        expect(await take()).toEqual([]);
        await before.query(back, [new Date(clock.now())]);
        const [again] = await take();
        expect(again).toMatchObject({ id: mine?.id });
        expect(again && (await leases.end(again, { dueAt: new Date(clock.now()) }))).toBe(true);
        expect(await takeTheirs()).toBe(1);
      });
    },
  );

  it('knows the keys of devices that were let in before they were marked', async () => {
    await ofThen(upTo('LimitKeysAndUsers'), async (before, url) => {
      const names = ['OpenHands/1.13 at 10.0.0.7', 'curl at 2001:db8::', 'ci', 'ci at night'];
      await before.query(
        `INSERT INTO api_keys (id, user_id, name, secret_hash)
        SELECT 'key-' || number, users.id, given.name, '' FROM users, unnest($1::text[]) WITH ORDINALITY AS given (name, number)`,
        [names],
      );
      await runMigrations(url);

      const marked = await before.query<{ name: string }[]>(
        'SELECT name FROM api_keys WHERE of_device ORDER BY id',
      );
      expect(marked.map(({ name }) => name)).toEqual(names.slice(0, 2));
    });
  });

  it('keeps users, keys, sessions and conversations of version 0.2.0, each with its owner', async () => {
    await ofThen(FIRST_RELEASE, async (before, url) => {
      const [admin, ada] = [generateApiKey(), generateApiKey()];
      const [conversation, event] = [randomUUID(), randomUUID()];
      const { value, id: sessionId, secretHash } = generateSession();
      const of = (email: string): string => `(SELECT id FROM users WHERE email = '${email}')`;
      await before.query(
        `INSERT INTO users (id, email, name, is_admin)
         VALUES (gen_random_uuid(), 'admin@localhost', 'admin', true), (gen_random_uuid(), 'ada@example.com', 'Ada', false)`,
      );
      for (const [email, key] of [
        ['admin@localhost', admin],
        ['ada@example.com', ada],
      ] as const) {
        const { id, secretHash: hash } = parsedApiKey(key);
        const values = [id, email, hash];
        await before.query(
          `INSERT INTO api_keys (id, user_id, name, secret_hash) SELECT $1, id, 'old', $3 FROM users WHERE email = $2`,
          values,
        );
      }
      await before.query(
        `INSERT INTO sessions (id, user_id, api_key_id, secret_hash, last_used_at)
         VALUES ($1, ${of('ada@example.com')}, $2, $3, now())`,
        [sessionId, parsedApiKey(ada).id, secretHash],
      );
      await before.query(
        `INSERT INTO app_conversations (id, user_id, sandbox_id, working_dir, title)
         VALUES ($1, ${of('ada@example.com')}, 'gone', '/workspace', 'of before')`,
        [conversation],
      );
      await before.query(
        `INSERT INTO followed_conversations (id, user_id, sandbox_id) VALUES ($1, ${of('ada@example.com')}, 'gone')`,
        [conversation],
      );
      const body = messageEvent(event, 'user', 'said before');
      await before.query(
        `INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
         VALUES ($1, 1, $2, 'MessageEvent', now(), $3)`,
        [conversation, event, body],
      );
      await runMigrations(url);
      const service = await createTestApp({ BOOTSTRAP_API_KEY: admin }, url);
      try {
        const get = (path: string, by: string | { headers: Record<string, string> }): request.Test =>
          service.as(by).get(path);
        const ids = async (by: string): Promise<unknown> => {
          const { body: found } = await get('/api/v1/app-conversations/search', by).expect(200);
          return found.items.map((item: { id: string; title: string }) => [item.id, item.title]);
        };
        const hex = conversation.replaceAll('-', '');
        const session = { headers: { Cookie: `slipway_session=${value}` } };
        const { body: current } = await get('/api/keys/current', ada).expect(200);
        expect(current).toMatchObject({ id: parsedApiKey(ada).id, scopes: SCOPES });
        expect((await get('/auth/session', session).expect(200)).body.user).toMatchObject({
          email: 'ada@example.com',
          is_admin: false,
        });
        const { body: users } = await get('/api/v1/users', admin).expect(200);
        expect(users.items).toEqual(
          expect.arrayContaining([
            expect.objectContaining({ email: 'admin@localhost', role: 'owner', kind: 'person' }),
            expect.objectContaining({ email: 'ada@example.com', role: 'member', disabled_at: null }),
          ]),
        );
        expect([await ids(ada), await ids(service.user.key)]).toEqual([[[hex, 'of before']], []]);
        const { text } = await get(`/api/v1/conversation/${hex}/events/search`, ada).expect(200);
        expect(text).toContain('said before');
        await get(`/api/v1/conversation/${hex}/events/search`, service.user.key).expect(404);
        const share = { visibility: 'organization' };
        await service.as(ada).patch(`/api/v1/app-conversations/${hex}`, share).expect(200);
        expect(await ids(service.user.key)).toEqual([[hex, 'of before']]);
        const { body: made } = await service
          .as(ada)
          .post('/api/v1/api-keys', { name: 'less', scopes: ['read'] });
        expect(await ids(made.key)).toEqual([[hex, 'of before']]);
      } finally {
        await service.close();
      }
    });
  });

  it('shares settings with replicas of version 0.2.0, which know columns in place of the document', async () => {
    await ofThen(upTo('StoreSettings'), async (before, url) => {
      const email = 'then@example.com';
      // As version 0.2.0 merges a request.
      const theirs = async (members: object): Promise<void> => {
        const names = Object.keys(members);
        await before.query(
          `INSERT INTO settings (user_id, ${names.join(', ')})
          SELECT users.id, ${names.map((name) => `given.${name}`).join(', ')}
          FROM users, jsonb_populate_record(NULL::settings, $1) AS given WHERE users.email = $2
          ON CONFLICT (user_id) DO UPDATE SET ${names.map((name) => `${name} = EXCLUDED.${name}`).join(', ')}`,
          [members, email],
        );
      };
      const columns = async (): Promise<object | undefined> => {
        const rows = await before.query<object[]>(
          `SELECT language, max_iterations, confirmation_mode, max_budget_per_task, clone_filter,
            enable_sound_notifications, enable_solvability_analysis FROM settings`,
        );
        return rows[0];
      };
      const first = {
        language: 'de',
        max_iterations: 7,
        confirmation_mode: false,
        max_budget_per_task: 0.1,
        clone_filter: 'tree:0',
        enable_sound_notifications: true,
        enable_solvability_analysis: true,
      };
      await theirs(first);
      await runMigrations(url);
      const service = await createTestApp({}, url);
      try {
        const settings = service.app.get(SettingsRepository);
        const [user] = await before.query<{ id: string }[]>('SELECT id FROM users WHERE email = $1', [email]);
        const ours = async (members: object): Promise<void> => {
          const change = { columns: new Map(Object.entries(members)) as SettingsChanges };
          const id = user?.id ?? '';
          await settings.transaction(id, (manager) => settings.mergeWithin(manager, id, change));
        };
        const shown = async (): Promise<object> =>
          shownSettings((await settings.load(user?.id ?? '')) ?? emptySettingsRow());

        expect(await shown()).toMatchObject(first);
        await ours({ language: 'fr', max_iterations: null, enable_solvability_analysis: false });
        const second = {
          ...first,
          language: 'fr',
          max_iterations: null,
          enable_solvability_analysis: false,
        };
        expect([await columns(), await shown()]).toMatchObject([second, second]);
        await theirs({ language: null, max_iterations: 9, enable_sound_notifications: false });
        const third = { ...second, language: null, max_iterations: 9, enable_sound_notifications: false };
        expect([await columns(), await shown()]).toMatchObject([third, third]);
        await ours(
          Object.fromEntries(Object.keys(third).map((name) => [name, name.startsWith('enable') || null])),
        );
        // As a later version adds members, which have no column.
        await before.query(`UPDATE settings SET document = document || '{"later": 1}'`);
        await theirs({ email: 'now@example.com' });
        expect(await before.query('SELECT document FROM settings')).toMatchObject([
          { document: { later: 1 } },
        ]);
        expect(await columns()).toEqual({
          language: null,
          max_iterations: null,
          confirmation_mode: null,
          max_budget_per_task: null,
          clone_filter: null,
          enable_sound_notifications: true,
          enable_solvability_analysis: true,
        });
        expect(await shown()).toMatchObject({ email: 'now@example.com', enable_sound_notifications: true });
        // As pg_restore writes rows into tables that are there.
        await before.transaction(async (manager) => {
          await manager.query(`SELECT set_config('search_path', '', true)`);
          await manager.query(`UPDATE public.settings SET language = 'it'`);
        });
        expect(await shown()).toMatchObject({ email: 'now@example.com', language: 'it' });
      } finally {
        await service.close();
      }
    });
  });

  it('keeps what the version before the last migration wrote, and takes what it writes afterwards', async () => {
    await ofThen(Math.max(FIRST_RELEASE, MIGRATIONS.length - 1), async (before, url) => {
      const write = async (): Promise<unknown> =>
        before.query(`INSERT INTO settings (user_id, language) SELECT id, 'de' FROM users
          WHERE email LIKE '%@example.com' ON CONFLICT DO NOTHING`);
      await write();
      await runMigrations(url);
      await before.query(
        `INSERT INTO users (id, email) VALUES (gen_random_uuid(), 'rolled-back@example.com')`,
      );
      await write();
      const found = await before.query<{ email: string }[]>(
        'SELECT users.email FROM users JOIN settings ON user_id = users.id ORDER BY 1',
      );
      expect(found.map(({ email }) => email)).toEqual(['rolled-back@example.com', 'then@example.com']);
    });
  });
});
