import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { SCOPES } from '../../src/common/scopes.js';
import { useTestApp } from '../support/use-test-app.js';

describe('keys of one user', () => {
  const app = useTestApp();

  const issue = (headers: Record<string, string>, members: object = {}): request.Test =>
    request(app.url)
      .post('/api/v1/api-keys')
      .set(headers)
      .send({ name: 'another', ...members });

  it('outlive none that they were issued with, nor the key of a session', async () => {
    const { headers } = app.admin;
    const [soon, sooner] = ['2099-01-31T12:00:00.000Z', '2099-01-30T12:00:00.000Z'];
    const { body: temporary } = await issue(headers, { expires_at: soon, scopes: SCOPES }).expect(201);
    const signedIn = await request(app.url).post('/auth/key').send({ key: temporary.key }).expect(200);
    const [cookie = ''] = signedIn.get('Set-Cookie') ?? [];
    const session = { Cookie: cookie.replace(/;.*/, ''), 'X-CSRF-Token': signedIn.body.csrf_token };
    for (const presented of [{ 'X-Session-API-Key': temporary.key }, session]) {
      const asked = [
        {},
        { expires_at: '2100-01-01T00:00:00Z' },
        { user_id: app.user.id },
        { expires_at: sooner },
      ];
      const issued = await Promise.all(asked.map((members) => issue(presented, members).expect(201)));
      expect(issued.map(({ body }) => body.expires_at)).toEqual([soon, soon, soon, sooner]);
    }
    expect((await issue(headers).expect(201)).body.expires_at).toBeNull();
  });

  it('are at most 50 that work, also with many requests at once', async () => {
    const { headers, id } = await app.createUser();
    const answers = await Promise.all(Array.from({ length: 60 }, () => issue(headers)));

    // The key that they were sent with is one of them.
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(49);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ status, body }) => `${status} ${body.detail}`))).toEqual(
      new Set(['409 A user may have 50 keys; revoke one first.']),
    );
    await app.dataSource.query(
      `UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE name = 'another' AND user_id = $1`,
      [id],
    );
    await issue(headers).expect(201);
  });

  it('are kept for the record when they have ended: the newest hundred', async () => {
    const { headers, id } = await app.createUser();
    await app.dataSource.query(
      `INSERT INTO api_keys (id, user_id, name, secret_hash, created_at, revoked_at)
       SELECT 'old' || lpad(n::text, 5, '0'), $1, 'old', '', now() - n * interval '1 s', now()
       FROM generate_series(1, 300) AS n`,
      [id],
    );
    const { body } = await issue(headers).expect(201);

    const { body: listed } = await request(app.url).get('/api/v1/api-keys').set(headers).expect(200);
    const names: string[] = listed.map((key: { name: string }) => key.name);
    expect(names.filter((name) => name === 'old')).toHaveLength(100);
    expect(listed.map((key: { id: string }) => key.id)).toEqual(
      expect.arrayContaining([body.id, 'old00001', 'old00100']),
    );
  });
});
