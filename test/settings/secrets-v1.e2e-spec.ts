import { beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { SettingsClient } from '../support/settings-client.js';

const PATH = '/api/v1/secrets';

describe('/api/v1/secrets', () => {
  const { hosts, app } = useGitHosts();
  let user: TestUser;

  beforeEach(async () => {
    user = await app.createUser();
  });

  const search = async (query: object = {}, owner = user): Promise<Record<string, unknown>> =>
    (await request(app.url).get(`${PATH}/search`).query(query).set(owner.headers).expect(200)).body;
  const post = (body: object, owner = user): request.Test =>
    request(app.url).post(PATH).set(owner.headers).send(body);
  const put = (name: string, body: object, owner = user): request.Test =>
    request(app.url).put(`${PATH}/${name}`).set(owner.headers).send(body);
  const remove = (name: string, owner = user): request.Test =>
    request(app.url).delete(`${PATH}/${name}`).set(owner.headers);
  const stored = async (): ReturnType<SettingsClient['customSecrets']> =>
    new SettingsClient(app, user).customSecrets();

  it('stores, replaces, renames and deletes the rows of /api/secrets, and shows no value', async () => {
    const created = await post({ name: 'TOKEN', value: 'hush-1', description: 'd' }).expect(201);
    expect(created.body).toEqual({ message: 'Secret created successfully' });
    await post({ name: 'TOKEN', value: 'hush-2' }).expect(201);
    expect(await stored()).toEqual([{ name: 'TOKEN', value: 'hush-2', description: 'd' }]);
    expect(await search()).toEqual({
      items: [{ name: 'TOKEN', description: 'd', scope: 'user' }],
      next_page_id: null,
    });
    const flat = await request(app.url).get('/api/secrets').set(user.headers).expect(200);
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
      const flat = await request(app.url).get('/api/secrets').set(user.headers).expect(200);
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
      request(app.url).post(`${PATH}/git-providers`).set(owner.headers).send(body);
    const providersOf = async (owner = user): Promise<string[]> => {
      const { body } = await request(app.url).get('/api/settings').set(owner.headers);
      return Object.keys(Object(body.provider_tokens_set)).toSorted();
    };

    it('are checked at their hosts and stored for one user, with no token in any answer', async () => {
      const other = await app.createUser();
      await store({ provider_tokens: { github: hosts.tokens.provider_tokens.github } }, other).expect(200);

      const stored = await store(hosts.tokens).expect(200);

      expect(stored.body).toMatchObject({ message: 'Git providers stored' });
      expect(await providersOf()).toEqual(['bitbucket', 'github', 'gitlab']);
      const read = await request(app.url).get('/api/v1/users/git-info').set(user.headers).expect(200);
      expect(read.body).toMatchObject({ login: 'mona' });
      for (const { token } of Object.values(hosts.tokens.provider_tokens)) {
        expect(stored.text + read.text).not.toContain(token);
      }

      const removed = await request(app.url).delete(`${PATH}/git-providers`).set(user.headers).expect(200);
      expect(removed.body).toEqual({ message: 'Unset Git provider tokens' });
      expect([await providersOf(), await providersOf(other)]).toEqual([[], ['github']]);
    });
  });
});
