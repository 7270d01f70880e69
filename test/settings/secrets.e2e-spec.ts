import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const PATH = '/api/v1/secrets';
const { hosts, app } = useGitHosts();
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

const stored = async (): ReturnType<SettingsClient['customSecrets']> =>
  new SettingsClient(app, user).customSecrets();

describe('custom secrets', () => {
  const list = async (owner = user): Promise<unknown> =>
    (await app.as(owner).get('/api/secrets').expect(200)).body;
  const post = (body: object, owner = user): request.Test => app.as(owner).post('/api/secrets', body);
  const put = (name: string, body: object, owner = user): request.Test =>
    app.as(owner).put(`/api/secrets/${name}`, body);
  const remove = (name: string, owner = user): request.Test => app.as(owner).delete(`/api/secrets/${name}`);

  it('are stored with a warning where their values cannot be hidden', async () => {
    const warned = [
      await post({ name: 'IS_TRUE', value: 'true' }),
      await put('IS_TRUE', { name: 'IS_TRUE', value: 'production' }),
      await app.as(user).post('/api/v1/secrets', { name: 'F', value: '/etc/app' }),
    ];
    expect(warned.map(({ body }) => body.warning)).toEqual([
      expect.stringContaining('The value of IS_TRUE is short'),
      expect.stringContaining('is a single word'),
      expect.stringContaining('looks like a path'),
    ]);
    const { body } = await app.as(user).post('/api/settings', {
      secrets_store: { custom_secrets: { A: { secret: 'main' }, B: { secret: 'sk-5519-of-a-test' } } },
    });
    expect(body.secret_warnings).toEqual([expect.stringContaining('The value of A is short')]);
  });

  it.each([
    ['a thousand', `SELECT $1, 'S' || n, '' FROM generate_series(1, 1000) AS n`],
    ['4 MiB', `SELECT $1, 'S' || n, repeat('x', 1048576) FROM generate_series(1, 4) AS n`],
  ])('have room for %s of a user', async (_size, rows) => {
    await app.dataSource.query(`INSERT INTO custom_secrets (user_id, name, value) ${rows}`, [user.id]);

    const responses = [
      await post({ name: 'ONE_MORE', value: 'x' }),
      await app
        .as(user)
        .post('/api/settings', { secrets_store: { custom_secrets: { ONE_MORE: { secret: 'x' } } } }),
    ];

    expect(responses.map(({ status, body }) => [status, body.detail[0].msg])).toEqual(
      responses.map(() => [
        422,
        'Expected at most 1000 custom secrets with 4 MiB in all; remove some first.',
      ]),
    );
    expect(JSON.stringify(await list())).not.toContain('ONE_MORE');
    await remove('S1').expect(200);
    await post({ name: 'ONE_MORE', value: 'x' }).expect(201);
  });

  it('are stored, and listed without their values', async () => {
    const response = await post({ name: 'B_2', value: 'hush-b', description: 'second' });
    await post({ name: 'A', value: '' }).expect(201);

    expect([response.status, response.body]).toEqual([201, { message: 'Secret stored' }]);
    expect(await list()).toEqual({
      custom_secrets: [
        { name: 'A', description: null },
        { name: 'B_2', description: 'second' },
      ],
    });
    expect(await stored()).toEqual([
      { name: 'A', value: '', description: null },
      { name: 'B_2', value: 'hush-b', description: 'second' },
    ]);
    expect(await new SettingsClient(app, user).dump()).not.toContain('hush-');
  });

  it('are created once when requests overlap', async () => {
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) => post({ name: 'A', value: `value-${index}` })),
    );

    const [{ value } = { value: '' }] = await stored();
    for (const [index, { status, body }] of responses.entries()) {
      const { detail } = body;
      const refused = { code: 'conflict', message: detail, error: detail };
      expect([status, body]).toMatchObject(value === `value-${index}` ? [201, {}] : [400, refused]);
    }
  });

  it.each([
    ['a description', { name: 'A', description: 'new' }, { name: 'A', value: 'hush-a', description: 'new' }],
    ['no description', { name: 'A', description: null }, { name: 'A', value: 'hush-a', description: null }],
    ['another name', { name: 'B' }, { name: 'B', value: 'hush-a', description: 'old' }],
    ['a value', { name: 'A', value: 'hush-new' }, { name: 'A', value: 'hush-new', description: 'old' }],
    ['an empty value', { name: 'A', value: '' }, { name: 'A', value: '', description: 'old' }],
    ['the same', { name: 'A', value: null }, { name: 'A', value: 'hush-a', description: 'old' }],
    [
      'everything',
      { name: 'B', value: 'hush-new', description: 'new' },
      { name: 'B', value: 'hush-new', description: 'new' },
    ],
  ])('get %s', async (_what, body, expected) => {
    await post({ name: 'A', value: 'hush-a', description: 'old' }).expect(201);

    const response = await put('A', body);

    expect([response.status, response.body]).toEqual([200, { message: 'Secret changed' }]);
    expect(await stored()).toEqual([expected]);
  });

  it('get one name each when renames overlap', async () => {
    await Promise.all(['A', 'B', 'C', 'D'].map((name) => post({ name, value: name }).expect(201)));

    const responses = await Promise.all([
      ...['A', 'B', 'C', 'D'].map((name) => put(name, { name: 'Z' })),
      post({ name: 'Z', value: 'Z' }),
    ]);

    const winners = responses.filter(({ status }) => status < 300);
    expect(winners).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 400)).toHaveLength(4);
  });

  it('are removed', async () => {
    await post({ name: 'A', value: 'a' }).expect(201);

    const response = await remove('A');

    expect([response.status, response.body]).toEqual([200, { message: 'Secret removed' }]);
    expect(await list()).toEqual({ custom_secrets: [] });
    const again = await remove('A');
    expect(again.status).toBe(404);
    expect(again.body).toMatchObject({ code: 'not_found', error: again.body.detail });
    await put('A', { name: 'A' }).expect(404);
  });

  it('of others look like none', async () => {
    await post({ name: 'A', value: 'a' }).expect(201);
    const other = await app.createUser();

    expect(await list(other)).toEqual({ custom_secrets: [] });
    await put('A', { name: 'B' }, other).expect(404);
    await remove('A', other).expect(404);
    await post({ name: 'A', value: 'other' }, other).expect(201);
    expect(await stored()).toMatchObject([{ name: 'A', value: 'a' }]);
  });

  it('have names that can be variables', async () => {
    const renamed = await put('1A', { name: 'A' });
    expect(renamed.status).toBe(422);
    expect(renamed.body).toMatchObject({ detail: [{ loc: ['path', 'name'], type: 'value_error' }] });
    await remove('%00').expect(422);
    await remove('A%2FB').expect(422);
  });

  it('have names that an index can hold', async () => {
    // Not compressible: PostgreSQL would shorten a repeated letter.
    const name = `N${randomBytes(5_000).toString('hex')}`;
    const longest = name.slice(0, 255);
    await post({ name: longest, value: 'x' }).expect(201);
    const responses = await Promise.all([
      post({ name, value: 'x' }),
      post({ name: `${longest}0`, value: 'x' }),
      put(longest, { name }),
      remove(name),
      app.as(user).post('/api/settings', { secrets_store: { custom_secrets: { [name]: 'x' } } }),
    ]);

    expect(responses.map(({ status, body }) => [status, body.detail[0].type])).toEqual(
      Array.from({ length: 5 }, () => [422, 'value_error']),
    );
    expect(await list()).toEqual({ custom_secrets: [{ name: longest, description: null }] });
  });
});

describe('/api/v1/secrets', () => {
  const search = async (query: object = {}, owner = user): Promise<Record<string, unknown>> =>
    (await app.as(owner).get(`${PATH}/search`).query(query).expect(200)).body;
  const post = (body: object, owner = user): request.Test => app.as(owner).post(PATH, body);
  const put = (name: string, body: object, owner = user): request.Test =>
    app.as(owner).put(`${PATH}/${name}`, body);
  const remove = (name: string, owner = user): request.Test => app.as(owner).delete(`${PATH}/${name}`);
  it('stores, replaces, renames and deletes the rows of /api/secrets, and shows no value', async () => {
    const created = await post({ name: 'TOKEN', value: 'hush-1', description: 'd' }).expect(201);
    expect(created.body).toEqual({ message: 'Secret created successfully' });
    await post({ name: 'TOKEN', value: 'hush-2' }).expect(201);
    expect(await stored()).toEqual([{ name: 'TOKEN', value: 'hush-2', description: 'd' }]);
    expect(await search()).toEqual({
      items: [{ name: 'TOKEN', description: 'd', scope: 'user' }],
      next_page_id: null,
    });
    const flat = await app.as(user).get('/api/secrets').expect(200);
    expect(flat.body).toEqual({ custom_secrets: [{ name: 'TOKEN', description: 'd' }] });

    const updated = await put('TOKEN', { name: 'OTHER', description: 'e' }).expect(200);
    expect(updated.body).toEqual({ message: 'Secret updated successfully' });
    expect(await stored()).toEqual([{ name: 'OTHER', value: 'hush-2', description: 'e' }]);

    const removed = await remove('OTHER').expect(200);
    expect(removed.body).toEqual({ message: 'Secret deleted successfully' });
    expect(await search()).toEqual({ items: [], next_page_id: null });
  });

  it('says what is wrong', async () => {
    await post({ name: 'A', value: 'x' }).expect(201);
    await post({ name: 'B', value: 'x' }).expect(201);

    const responses = [await put('A', { name: 'B' }), await put('C', { name: 'D' }), await remove('C')];
    expect(responses.map(({ status }) => status)).toEqual([400, 404, 404]);
  });

  it('shows names in pages, and those that contain a text', async () => {
    await app.dataSource.query(
      `INSERT INTO custom_secrets (user_id, name, value)
       SELECT $1, 'S_' || lpad(n::text, 3, '0'), '' FROM generate_series(1, 250) AS n`,
      [user.id],
    );
    const names: unknown[] = [];
    let page: unknown = undefined;
    do {
      const { items, next_page_id: next } = await search({ ...(page !== undefined && { page_id: page }) });
      names.push(...(Array.isArray(items) ? items.map(({ name }) => name) : []));
      page = next;
    } while (page !== null);

    expect(names).toEqual(Array.from({ length: 250 }, (_, n) => `S_${String(n + 1).padStart(3, '0')}`));
    expect(await search({ name__contains: 's_24', limit: 2 })).toEqual({
      items: [
        { name: 'S_240', description: null, scope: 'user' },
        { name: 'S_241', description: null, scope: 'user' },
      ],
      next_page_id: expect.any(String),
    });
    expect(await search({ name__contains: '%' })).toEqual({ items: [], next_page_id: null });
  });

  describe('with hosts', () => {
    const RULE = { hosts: ['api.example.com'], inject: { header: 'Authorization', format: 'Bearer {}' } };
    const problem = async (answer: request.Test): Promise<unknown> => {
      const { status, body, text } = await answer;
      expect(text).not.toContain('hush');
      return [status, ...(body.detail ?? []).map(({ loc, type }: Record<string, unknown>) => [loc, type])];
    };

    it('are shown with them, keep them when their value is replaced, and get others or none later', async () => {
      const given = { name: 'T', value: 'hush-hush-1', hosts: ['API.example.com'], methods: ['GET'] };
      await post({ ...given, placeholder: `${user.id}-own` }).expect(201);
      const shown = { name: 'T', description: null, ...RULE, methods: ['GET'] };
      expect(await search()).toMatchObject({ items: [shown] });
      await post({ name: 'T', value: 'hush-hush-2' }).expect(201);
      const flat = await app.as(user).get('/api/secrets').expect(200);
      expect(flat.body).toEqual({ custom_secrets: [shown] });

      await put('T', { name: 'U', hosts: ['http://b.example:81'], methods: null }).expect(200);
      expect(await search()).toMatchObject({
        items: [{ name: 'U', hosts: ['http://b.example:81'], inject: RULE.inject }],
      });
      await new SettingsClient(app, user).store({
        secrets_store: { custom_secrets: { U: { secret: 'hush-hush-3' } } },
      });
      expect(await search()).toMatchObject({ items: [{ name: 'U', hosts: ['http://b.example:81'] }] });
      await put('U', { name: 'U', hosts: [] }).expect(200);
      expect(await search()).toEqual({
        items: [{ name: 'U', description: null, scope: 'user' }],
        next_page_id: null,
      });
    });

    it('say that the value is in sandboxes all the same where the operator keeps credentials inside', async () => {
      const created = await post({ name: 'T', value: 'hush-hush-1', hosts: ['a.example'] }).expect(201);
      expect(created.body).toMatchObject({ warning: expect.stringContaining('SANDBOX_CREDENTIALS') });
      const changed = await put('T', { name: 'T', hosts: ['b.example'] }).expect(200);
      expect(changed.body).toMatchObject({ warning: expect.stringContaining('in clear') });
      expect((await put('T', { name: 'T', hosts: null }).expect(200)).body).not.toHaveProperty('warning');
    });

    it('are refused where the value signs, at whichever change', async () => {
      const name = 'AWS_SECRET_ACCESS_KEY';
      const signs = [422, [['body', 'hosts'], 'not_injectable']];
      expect(await problem(post({ name, value: 'hush', hosts: ['a.example'] }))).toEqual(signs);
      await post({ name, value: 'hush-hush' }).expect(201);
      expect(await problem(put(name, { name, hosts: ['a.example'] }))).toEqual(signs);
      await post({ name: 'T', value: 'hush-hush', hosts: ['a.example'] }).expect(201);
      expect(await problem(put('T', { name: `T_${name}` }))).toEqual(signs);
      const pem = '-----BEGIN PRIVATE KEY-----\nhush';
      expect(await problem(put('T', { name: 'T', value: pem }))).toEqual(signs);
      expect(await problem(post({ name: 'T', value: pem }))).toEqual(signs);
    });

    it('have a placeholder that no other secret has, of whichever user', async () => {
      const placeholder = `taken-${user.id}`;
      const hosts = ['a.example'];
      const taken = [422, [['body', 'placeholder'], 'value_error']];
      await post({ name: 'T', value: 'hush-hush', hosts, placeholder }).expect(201);
      await post({ name: 'T', value: 'hush-hush', hosts, placeholder }).expect(201);
      expect(await problem(post({ name: 'U', value: 'hush-hush', hosts, placeholder }))).toEqual(taken);
      const other = await app.createUser();
      expect(await problem(post({ name: 'T', value: 'hush-hush', hosts, placeholder }, other))).toEqual(
        taken,
      );
      await post({ name: 'U', value: 'hush-hush', hosts }).expect(201);
      expect(await problem(put('U', { name: 'U', placeholder }))).toEqual(taken);
    });
  });

  describe('git-providers', () => {
    const store = (body: object, owner = user): request.Test =>
      app.as(owner).post(`${PATH}/git-providers`, body);
    const providersOf = async (owner = user): Promise<string[]> => {
      const { body } = await app.as(owner).get('/api/settings');
      return Object.keys(Object(body.provider_tokens_set)).toSorted();
    };

    it('are checked at their hosts and stored for one user, with no token in any answer', async () => {
      const other = await app.createUser();
      await store({ provider_tokens: { github: hosts.tokens.provider_tokens.github } }, other).expect(200);

      const stored = await store(hosts.tokens).expect(200);

      expect(stored.body).toMatchObject({ message: 'Git providers stored' });
      expect(await providersOf()).toEqual(['bitbucket', 'github', 'gitlab']);
      const read = await app.as(user).get('/api/v1/users/git-info').expect(200);
      expect(read.body).toMatchObject({ login: 'mona' });
      for (const { token } of Object.values(hosts.tokens.provider_tokens)) {
        expect(stored.text + read.text).not.toContain(token);
      }

      const removed = await app.as(user).delete(`${PATH}/git-providers`).expect(200);
      expect(removed.body).toEqual({ message: 'Unset Git provider tokens' });
      expect([await providersOf(), await providersOf(other)]).toEqual([[], ['github']]);
    });
  });
});
