import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { AuditRetentionWorker } from '../../src/audit/audit-retention.worker.js';
import type { AuditEntryDto } from '../../src/audit/api/audit.controller.js';
import { AuditClient } from '../support/audit-client.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { runKeysOn } from '../support/run-keys.js';
import { createTestDatabase } from '../support/test-database.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const ENCRYPTION_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

describe('GET /api/v1/audit', () => {
  const app = useTestApp();
  let audit: AuditClient;
  let user: TestUser;

  beforeAll(async () => {
    audit = new AuditClient(app);
  });

  beforeEach(async () => {
    user = await app.createUser();
  });

  const settings = (body: object): request.Test => app.as(user).post('/api/settings', body);
  const ofUser = (action: string): Promise<AuditEntryDto[]> => audit.find({ owner_user_id: user.id, action });
  /** Entries of the user with these times. */
  const insert = async (times: readonly string[], members = { action: 'settings.update' }): Promise<void> => {
    await app.dataSource.query(
      `INSERT INTO audit_entries (at, id, action, outcome, actor_kind, actor_user_id, owner_user_id, details)
       SELECT at, gen_random_uuid(), $2, 'done', 'user', $3, $3, '{}' FROM unnest($1::timestamptz[]) AS at`,
      [times, members.action, user.id],
    );
  };

  it('says who did what to whose secret, from where and in which request', async () => {
    const { headers } = await app
      .as(user)
      .post('/api/secrets', { name: 'DEPLOY_TOKEN', value: 'a value' })
      .expect(201);

    expect(await ofUser('secret.create')).toEqual([
      {
        id: expect.any(String),
        time: expect.stringMatching(/Z$/),
        action: 'secret.create',
        outcome: 'done',
        actor: { kind: 'user', user_id: user.id, key_id: user.key.split('_')[1] },
        resource: { type: 'secret', id: 'DEPLOY_TOKEN' },
        owner_user_id: user.id,
        request_id: headers['x-request-id'],
        caller_request_id: null,
        client_address: '127.0.0.1',
        details: {},
      },
    ]);
  });

  it('has an id of our own for each request, whatever id the caller gives it', async () => {
    const ids: unknown[] = [];
    const store = async (name: string, id: string): Promise<void> => {
      const { headers } = await request(app.url)
        .post('/api/secrets')
        .set({ ...user.headers, 'X-Request-Id': id })
        .send({ name, value: 'a value' })
        .expect(201);
      expect(headers['x-request-id']).toBe(id);
      const [newest] = await ofUser('secret.create');
      expect(newest).toMatchObject({ resource: { id: name }, caller_request_id: id });
      ids.push(newest?.request_id);
    };
    await store('FIRST', 'given');
    await store('SECOND', 'given');
    await store('THIRD', String(ids[0]));

    expect(new Set(ids).size).toBe(3);
    expect(ids).toEqual(ids.map(() => expect.stringMatching(/^[0-9a-f-]{36}$/)));
    const named = async (filter: Record<string, string>) =>
      (await audit.find({ owner_user_id: user.id, ...filter })).map(({ resource }) => resource.id);
    expect(await named({ request_id: String(ids[0]) })).toEqual(['FIRST']);
    expect(await named({ request_id: 'given' })).toEqual([]);
    expect(await named({ caller_request_id: 'given' })).toEqual(['SECOND', 'FIRST']);
  });

  it('has what administrators do to others under both', async () => {
    const { body: key } = await app
      .as(app.admin)
      .post('/api/v1/api-keys', { name: 'for somebody', user_id: user.id })
      .expect(201);
    await app.as(app.admin).delete(`/api/v1/api-keys/${key.id}`).expect(204);
    await app.as(app.admin).delete(`/api/v1/api-keys/${key.id}`).expect(204);

    const filter = { actor_user_id: app.admin.id, owner_user_id: user.id };
    expect(await audit.find(filter)).toMatchObject([
      { action: 'api_key.revoke', resource: { type: 'api_key', id: key.id } },
      { action: 'api_key.create', details: { name: 'for somebody' } },
    ]);
    expect(await audit.find({ ...filter, actor_user_id: user.id })).toEqual([]);
  });

  it('keeps users who were removed, by their ids', async () => {
    await settings({ language: 'de' }).expect(200);
    await app.as(app.admin).delete(`/api/v1/users/${user.id}`).expect(204);

    expect(await audit.find({ owner_user_id: user.id })).toMatchObject([
      { action: 'user.delete', actor: { kind: 'user', user_id: app.admin.id } },
      { action: 'settings.update', actor: { kind: 'user', user_id: user.id } },
      { action: 'api_key.create' },
      { action: 'user.create' },
    ]);
  });

  it('filters by time, action, type, name and request', async () => {
    await insert(['2020-01-01T00:00:00Z', '2020-01-02T00:00:00Z', '2020-01-03T00:00:00Z']);
    await insert(['2020-01-02T12:00:00Z'], { action: 'secret.delete' });
    const times = async (filter: Record<string, string>): Promise<string[]> =>
      (await audit.find({ owner_user_id: user.id, until: '2021-01-01T00:00:00Z', ...filter })).map(
        ({ time }) => time.slice(0, 13),
      );

    expect(await times({})).toEqual(['2020-01-03T00', '2020-01-02T12', '2020-01-02T00', '2020-01-01T00']);
    expect(await times({ since: '2020-01-02T00:00:00Z', until: '2020-01-03T00:00:00Z' })).toEqual([
      '2020-01-02T12',
      '2020-01-02T00',
    ]);
    expect(await times({ action: 'secret.delete' })).toEqual(['2020-01-02T12']);
    expect(await times({ resource_type: 'secret' })).toEqual(['2020-01-02T12']);
    expect(await times({ resource_type: 'secret', action: 'settings.update' })).toEqual([]);
    expect(await times({ resource_id: 'nothing' })).toEqual([]);
    expect(await times({ request_id: 'nothing' })).toEqual([]);
    expect(await times({ caller_request_id: 'nothing' })).toEqual([]);
  });

  it('pages through everything once, the newest first, also where times are equal', async () => {
    await insert(Array.from({ length: 250 }, (_, index) => `2020-01-01T00:00:00.${index % 7}00001Z`));
    const seen: AuditEntryDto[] = [];
    let pageId: string | null = '';
    let pages = 0;
    while (pageId !== null) {
      const filter = { owner_user_id: user.id, until: '2021-01-01T00:00:00Z', limit: '40' };
      const page = await audit.page({ ...filter, ...(pageId !== '' && { page_id: pageId }) });
      // What is stored meanwhile is newer than every page to come.
      await insert(['2020-06-01T00:00:00Z']);
      seen.push(...page.items);
      pageId = page.next_page_id;
      pages += 1;
    }

    expect(pages).toBe(7);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(250);
    const times = seen.map(({ time }) => time);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  it('can be added to, and not changed', async () => {
    await insert(['2020-01-01T00:00:00Z']);
    const { dataSource } = app;

    await expect(dataSource.query("UPDATE audit_entries SET action = 'user.create'")).rejects.toThrow(
      'audit_entries is append only',
    );
    await expect(dataSource.query('TRUNCATE audit_entries')).rejects.toThrow('audit_entries is append only');
    for (const method of ['post', 'put', 'patch', 'delete'] as const) {
      await app.as(app.admin).ask(method, '/api/v1/audit', {}).expect(405);
    }
  });

  describe('settings', () => {
    const members = async (): Promise<unknown[]> =>
      (await ofUser('settings.update')).map(({ details }) => details['members']);

    it('are named as far as they changed', async () => {
      await settings({ language: 'en', confirmation_mode: true, llm_api_key: 'a-key' }).expect(200);
      await settings({ language: 'en', confirmation_mode: false, max_iterations: null }).expect(200);
      await settings({ language: 'en', confirmation_mode: false }).expect(200);
      await settings({ llm_api_key: '' }).expect(200);
      await settings({ llm_api_key: '' }).expect(200);

      expect(await members()).toEqual([
        ['llm_api_key'],
        ['confirmation_mode'],
        ['language', 'confirmation_mode', 'llm_api_key'],
      ]);
    });

    it('are compared with what another request has just stored', async () => {
      await settings({ language: 'en' }).expect(200);
      const runner = app.dataSource.createQueryRunner();
      await runner.startTransaction();
      await runner.query("UPDATE settings SET language = 'de' WHERE user_id = $1", [user.id]);
      const back = settings({ language: 'en' }).then(({ status }) => status);
      await untilBlocked(app.dataSource);
      await runner.commitTransaction();
      await runner.release();

      expect(await back).toBe(200);
      expect(await members()).toEqual([['language'], ['language']]);
    });

    it('that are refused leave no entry, in whatever order they are stored', async () => {
      const masked = {
        sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: '**********' }],
        stdio_servers: [],
        shttp_servers: [],
      };
      const { headers } = await settings({ language: 'fr', mcp_config: masked }).expect(422);

      expect(await audit.find({ request_id: String(headers['x-request-id']) })).toEqual([]);
      expect(await members()).toEqual([]);
    });

    it('name tool servers, when some of them changed', async () => {
      const stored = (command: string): object => ({
        mcp_config: {
          sse_servers: [],
          shttp_servers: [],
          stdio_servers: [{ name: 'files', command, args: [], env: {} }],
        },
      });
      await settings(stored('files')).expect(200);
      await settings(stored('files')).expect(200);
      await settings(stored('others')).expect(200);
      await settings({ mcp_config: null }).expect(200);
      await settings({ mcp_config: null }).expect(200);

      expect((await ofUser('mcp_servers.update')).map(({ details }) => details)).toEqual([
        {},
        { servers: ['files'] },
        { servers: ['files'] },
      ]);
    });

    it('in nested form are named by their paths', async () => {
      const nested = (llm: object): request.Test =>
        app.as(user).post('/api/v1/settings', { agent_settings_diff: { llm } });
      await nested({ temperature: 0.5, aws_session_token: 'a-token' }).expect(200);
      await nested({ temperature: 0.5, top_p: 0.9 }).expect(200);
      await nested({ temperature: 0.5 }).expect(200);

      expect((await members()).slice(0, 2)).toEqual([
        ['agent.llm.top_p'],
        ['agent.llm.temperature', 'agent.llm.aws_session_token'],
      ]);
    });
  });

  describe('what nobody asked for', () => {
    it('is of the operator, where npm run keys did it', async () => {
      const run = (...args: string[]) => runKeysOn(app.databaseUrl, args, { ENCRYPTION_KEYS });
      const email = `${randomUUID()}@example.com`;
      await run('create', '--user', email, '--name', 'ci');
      await run('create', '--user', email, '--admin');
      const [created] = await audit.find({ action: 'user.make_admin', limit: '1' });
      const keys = await audit.find({
        owner_user_id: created?.owner_user_id ?? '',
        action: 'api_key.create',
      });
      await run('revoke', keys[0]?.resource.id ?? '');
      await run('reencrypt');

      const entries = await audit.find({ owner_user_id: created?.owner_user_id ?? '' });
      expect(entries.map(({ action }) => action)).toEqual([
        'api_key.revoke',
        'api_key.create',
        'user.make_admin',
        'api_key.create',
        'user.create',
      ]);
      const operator = {
        actor: { kind: 'operator', user_id: null, key_id: null },
        request_id: null,
        client_address: null,
      };
      expect(entries).toMatchObject(entries.map(() => operator));
      expect(await audit.find({ action: 'encryption_keys.rotate' })).toMatchObject([
        { ...operator, outcome: 'done', resource: { id: 'test' } },
        { ...operator, outcome: 'requested', resource: { id: 'test' } },
      ]);
    });

    it('is of the service, where it made the first key, and changed it, which ends the one before', async () => {
      const database = await createTestDatabase();
      const boot = async (key: string): Promise<AuditEntryDto[]> => {
        const replica = await createTestApp({ BOOTSTRAP_API_KEY: key }, database.url);
        const { items } = await new AuditClient({
          ...replica,
          admin: { ...replica.admin, headers: { 'X-Session-API-Key': key } },
        }).page({ owner_user_id: replica.admin.id });
        for (const [of, status] of [
          [key, 200],
          ['first-administrator-key', key.startsWith('first') ? 200 : 401],
        ] as const) {
          await replica.as(of).get('/api/v1/users').expect(status);
        }
        await replica.close();
        return items;
      };
      try {
        const first = await boot('first-administrator-key');
        expect(first.map(({ action, actor }) => [action, actor.kind])).toEqual([
          ['api_key.create', 'service'],
          ['user.create', 'service'],
        ]);
        expect(await boot('first-administrator-key')).toEqual(first);
        const later = await boot('second-administrator-key');
        expect(
          later
            .slice(0, -first.length)
            .map(({ action }) => action)
            .toSorted(),
        ).toEqual(['api_key.create', 'api_key.revoke']);
      } finally {
        await database.drop();
      }
    });
  });

  describe('retention', () => {
    const old = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();
    const sweep = (): Promise<void> => app.app.get(AuditRetentionWorker).now();

    it('removes what is older than AUDIT_RETENTION_DAYS in batches, and says so', async () => {
      await insert([old(364), ...Array.from({ length: 5_001 }, () => '2019-01-01T00:00:00Z')]);
      await sweep();

      expect(await audit.find({ until: old(366) })).toEqual([]);
      expect(await audit.find({ owner_user_id: user.id, until: old(363) })).toHaveLength(1);
      const pruned = await audit.find({ action: 'audit.prune' });
      expect(pruned.slice(0, 2)).toMatchObject([
        { actor: { kind: 'service' }, owner_user_id: null, details: { entries: expect.any(Number) } },
        { details: { entries: 5_000 } },
      ]);
    });

    it('leaves them to the replica that removes some already', async () => {
      await insert(['2019-01-01T00:00:00Z']);
      const runner = app.dataSource.createQueryRunner();
      await runner.startTransaction();
      await runner.query('SELECT pg_advisory_xact_lock(7240815557)');
      await sweep();
      expect(await audit.find({ owner_user_id: user.id, until: '2020-01-01T00:00:00Z' })).toHaveLength(1);
      await runner.rollbackTransaction();
      await runner.release();
      await sweep();

      expect(await audit.find({ owner_user_id: user.id, until: '2020-01-01T00:00:00Z' })).toEqual([]);
    });
  });
});
