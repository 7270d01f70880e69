import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { useTestApp } from '../support/use-test-app.js';

describe('custom secrets', () => {
  const app = useTestApp();
  let user: TestUser;

  beforeEach(async () => {
    user = await app.createUser();
  });

  const list = async (owner = user): Promise<unknown> =>
    (await request(app.url).get('/api/secrets').set(owner.headers).expect(200)).body;
  const post = (body: object, owner = user): request.Test =>
    request(app.url).post('/api/secrets').set(owner.headers).send(body);
  const put = (name: string, body: object, owner = user): request.Test =>
    request(app.url).put(`/api/secrets/${name}`).set(owner.headers).send(body);
  const remove = (name: string, owner = user): request.Test =>
    request(app.url).delete(`/api/secrets/${name}`).set(owner.headers);
  const stored = async (): ReturnType<SettingsClient['customSecrets']> =>
    new SettingsClient(app, user).customSecrets();

  it('are stored with a warning where their values cannot be hidden', async () => {
    const warned = [
      await post({ name: 'IS_TRUE', value: 'true' }),
      await put('IS_TRUE', { name: 'IS_TRUE', value: 'production' }),
      await request(app.url).post('/api/v1/secrets').set(user.headers).send({ name: 'F', value: '/etc/app' }),
    ];
    expect(warned.map(({ body }) => body.warning)).toEqual([
      expect.stringContaining('The value of IS_TRUE is short'),
      expect.stringContaining('is a single word'),
      expect.stringContaining('looks like a path'),
    ]);
    const { body } = await request(app.url)
      .post('/api/settings')
      .set(user.headers)
      .send({
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
      await request(app.url)
        .post('/api/settings')
        .set(user.headers)
        .send({ secrets_store: { custom_secrets: { ONE_MORE: { secret: 'x' } } } }),
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

  it('are an empty list at first', async () => {
    expect(await list()).toEqual({ custom_secrets: [] });
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

  it('have names of their own', async () => {
    await post({ name: 'A', value: 'first' }).expect(201);

    const response = await post({ name: 'A', value: 'second' });

    expect(response.status).toBe(400);
    expect(response.body).toMatchObject({
      code: 'conflict',
      message: response.body.detail,
      error: response.body.detail,
    });
    expect(await stored()).toMatchObject([{ value: 'first' }]);
  });

  it('are created once when requests overlap', async () => {
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) => post({ name: 'A', value: `value-${index}` })),
    );

    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array.from({ length: 9 }, () => 400),
    ]);
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

  it('are not renamed onto one another', async () => {
    await post({ name: 'A', value: 'a' }).expect(201);
    await post({ name: 'B', value: 'b' }).expect(201);

    await put('A', { name: 'B', value: 'c' }).expect(400);

    expect(await stored()).toMatchObject([
      { name: 'A', value: 'a' },
      { name: 'B', value: 'b' },
    ]);
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
      request(app.url)
        .post('/api/settings')
        .set(user.headers)
        .send({ secrets_store: { custom_secrets: { [name]: 'x' } } }),
    ]);

    expect(responses.map(({ status, body }) => [status, body.detail[0].type])).toEqual(
      Array.from({ length: 5 }, () => [422, 'value_error']),
    );
    expect(await list()).toEqual({ custom_secrets: [{ name: longest, description: null }] });
  });

  it('are refused to a user who was removed while the key is still cached', async () => {
    await list();
    await app.dataSource.query('DELETE FROM users WHERE id = $1', [user.id]);

    expect((await post({ name: 'A', value: 'a' })).status).toBe(401);
  });
});
