import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { SettingsClient } from '../support/settings-client.js';

const PATH = '/api/v1/secrets';

describe('/api/v1/secrets', () => {
  let app: TestApp;
  let hosts: GitHosts;
  let user: TestUser;

  beforeAll(async () => {
    hosts = await startGitHosts();
    app = await createTestApp(hosts.environment);
  });

  beforeEach(async () => {
    user = await app.createUser();
  });

  afterAll(async () => {
    await app.close();
    await hosts.close();
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

  it('needs a key', async () => {
    const responses = await Promise.all([
      request(app.url).get(`${PATH}/search`),
      request(app.url).post(PATH).send({ name: 'A', value: 'a' }),
      request(app.url).delete(`${PATH}/A`),
      request(app.url).delete(`${PATH}/git-providers`),
    ]);

    expect(responses.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  });

  it('stores, replaces, renames and deletes the rows of /api/secrets, and shows no value', async () => {
    const created = await post({ name: 'TOKEN', value: 'hush-1', description: 'd' }).expect(201);
    expect(created.body).toEqual({ message: 'Secret created successfully' });
    await post({ name: 'TOKEN', value: 'hush-2' }).expect(201);
    expect(await stored()).toEqual([{ name: 'TOKEN', value: 'hush-2', description: 'd' }]);
    expect(await search()).toEqual({ items: [{ name: 'TOKEN', description: 'd' }], next_page_id: null });
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

    const responses = [
      await post({ name: 'a b', value: 'x' }),
      await post({ name: 'C' }),
      await put('A', { name: 'B' }),
      await put('C', { name: 'D' }),
      await remove('C'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([422, 422, 400, 404, 404]);
    await request(app.url).get(`${PATH}/search`).query({ limit: 0 }).set(user.headers).expect(422);
    await request(app.url).get(`${PATH}/search`).query({ limit: 101 }).set(user.headers).expect(422);
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
        { name: 'S_240', description: null },
        { name: 'S_241', description: null },
      ],
      next_page_id: expect.any(String),
    });
    expect(await search({ name__contains: '%' })).toEqual({ items: [], next_page_id: null });
  });

  it('belongs to one user', async () => {
    const other = await app.createUser();
    await post({ name: 'TOKEN', value: 'hush' }).expect(201);

    expect(await search({}, other)).toEqual({ items: [], next_page_id: null });
    await put('TOKEN', { name: 'MINE' }, other).expect(404);
    await remove('TOKEN', other).expect(404);
    expect(await search()).toMatchObject({ items: [{ name: 'TOKEN' }] });
  });

  it('removes every git token of the user, and of nobody else', async () => {
    const other = await app.createUser();
    await app.dataSource.query(
      `INSERT INTO provider_tokens (user_id, provider, token) VALUES ($1, 'github', 'x'), ($2, 'github', 'x')`,
      [user.id, other.id],
    );
    const response = await request(app.url).delete(`${PATH}/git-providers`).set(user.headers).expect(200);

    expect(response.body).toEqual({ message: 'Unset Git provider tokens' });
    const rows = await app.dataSource.query('SELECT user_id FROM provider_tokens WHERE user_id IN ($1, $2)', [
      user.id,
      other.id,
    ]);
    expect(rows).toEqual([{ user_id: other.id }]);
    const empty = await request(app.url)
      .post(`${PATH}/git-providers`)
      .set(user.headers)
      .send({ provider_tokens: {} })
      .expect(200);
    expect(empty.body).toEqual({ message: 'Git providers stored' });
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

      const stored = await store(hosts.tokens).expect(200);

      expect(stored.body).toMatchObject({ message: 'Git providers stored' });
      expect(await providersOf()).toEqual(['bitbucket', 'github', 'gitlab']);
      expect(await providersOf(other)).toEqual([]);
      const read = await request(app.url).get('/api/v1/users/git-info').set(user.headers).expect(200);
      expect(read.body).toMatchObject({ login: 'mona' });
      for (const { token } of Object.values(hosts.tokens.provider_tokens)) {
        expect(stored.text + read.text).not.toContain(token);
      }

      await request(app.url).delete(`${PATH}/git-providers`).set(user.headers).expect(200);
      expect(await providersOf()).toEqual([]);
    });

    it('are refused with a token that its host does not know, and what is stored stays', async () => {
      await store(hosts.tokens).expect(200);

      const refused = await store({ provider_tokens: { github: { token: 'ghp_unknown' } } });

      expect([refused.status, refused.body.code]).toEqual([401, 'invalid_git_token']);
      expect(refused.text).not.toContain('ghp_unknown');
      await request(app.url).get('/api/v1/users/git-info').set(user.headers).expect(200);
    });

    it.each([
      [{ provider_tokens: { gitea: { token: 'x' } } }, 'provider_tokens'],
      [{ provider_tokens: 'x' }, 'provider_tokens'],
    ])('are refused as %j', async (body, member) => {
      const { body: problem } = await store(body).expect(422);

      expect(problem.detail[0].loc.slice(0, 2)).toEqual(['body', member]);
    });
  });
});
