import { once } from 'node:events';
import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { WebSocket } from 'ws';
import { SCOPES } from '../../src/common/scopes.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';
import { OneTimeCodes } from '../../src/auth/one-time-codes.js';

const KEYS = '/api/v1/api-keys';
const ORDINARY = ['read', 'run', 'settings'];

const app = useTestApp();

describe('scopes', () => {
  type Headers = Record<string, string>;
  const issue = (headers: Headers, members: object = {}): request.Test =>
    app.as({ headers }).post(KEYS, { name: 'limited', ...members });
  const keyOf = async (headers: Headers, members: object = {}): Promise<Headers> => ({
    'X-Session-API-Key': (await issue(headers, members).expect(201)).body.key,
  });
  const get = (headers: Headers, path: string): request.Test => app.as({ headers }).get(path);
  const missing = (scope: string): object => ({ status: 403, code: 'insufficient_scope', scope });
  const signIn = async (headers: Headers): Promise<{ session: Headers; user: unknown }> => {
    const session = await sessionOf(app.url, headers['X-Session-API-Key'] ?? '');
    return { session, user: (await get(session, '/auth/session')).body.user };
  };

  it('are all that the asking key has, but for admin', async () => {
    const { body } = await issue(app.admin.headers).expect(201);
    expect(body.scopes).toEqual(ORDINARY);
    const { body: less } = await issue({ 'X-Session-API-Key': body.key }, { scopes: ['settings', 'read'] });
    const { body: least } = await issue({ 'X-Session-API-Key': less.key }).expect(201);

    expect(least.scopes).toEqual(['settings', 'read']);
    const { body: listed } = await get(app.admin.headers, KEYS).expect(200);
    expect(listed).toContainEqual(expect.objectContaining({ id: least.id, scopes: ['settings', 'read'] }));
  });

  it('are never more than the asking key has', async () => {
    const settings = await keyOf(app.admin.headers, { scopes: ['settings'] });
    for (const scope of ['read', 'run', 'admin']) {
      const { body } = await issue(settings, { scopes: ['settings', scope] }).expect(403);
      expect(body).toMatchObject(missing(scope));
    }
    const { session } = await signIn(settings);
    expect((await issue(session, { scopes: ['run'] }).expect(403)).body).toMatchObject(missing('run'));
    expect((await issue(session).expect(201)).body.scopes).toEqual(['settings']);
    const { body } = await issue(settings, { user_id: app.user.id }).expect(403);
    expect(body).toMatchObject(missing('admin'));
  });

  it('keep a key of an administrator without admin from what administrators do', async () => {
    const ordinary = await keyOf(app.admin.headers);
    const { body: all } = await get(ordinary, '/api/v1/sandboxes/search?all=true').expect(403);
    expect(all).toMatchObject(missing('admin'));
    const { body: others } = await get(ordinary, `${KEYS}?user_id=${app.user.id}`).expect(403);
    expect(others).toMatchObject(missing('admin'));
    expect((await signIn(ordinary)).user).toMatchObject({ is_admin: false, scopes: ORDINARY });

    const admin = await keyOf(app.admin.headers, { scopes: SCOPES });
    await get(admin, '/api/v1/sandboxes/search?all=true').expect(200);
    expect((await signIn(admin)).user).toMatchObject({ is_admin: true, scopes: SCOPES });
  });

  it('begin when not_before says so', async () => {
    const soon = new Date(app.clock.now() + 3_600_000).toISOString();
    const key = await keyOf(app.user.headers, { not_before: soon });
    await get(key, KEYS).expect(401);
    await app.as().post('/auth/key', { key: key['X-Session-API-Key'] }).expect(401);
    app.clock.advance(3_600_001);

    await get(key, KEYS).expect(200);
    const never = { not_before: '2099-01-02T00:00:00Z', expires_at: '2099-01-01T00:00:00Z' };
    const { body } = await issue(app.user.headers, never).expect(422);
    expect(body.detail).toMatchObject([{ loc: ['body', 'expires_at'] }]);
  });

  it('of keys that are older than scopes are all', async () => {
    const { body } = await get(app.user.headers, '/api/keys/current').expect(200);

    expect(body.scopes).toEqual(SCOPES);
    const [row] = await app.dataSource.query<unknown[]>('SELECT scopes FROM api_keys WHERE id = $1', [
      body.id,
    ]);
    expect(row).toEqual({ scopes: null });
  });

  describe('show what opens a sandbox', () => {
    const rows = new ConversationRows(app);
    let user: TestUser;
    let sandboxId: string;
    let hex: string;

    beforeAll(async () => {
      user = await app.createUser();
      sandboxId = (await rows.sandbox(user.id, { address: 'http://127.0.0.1:9' })).id;
      ({ hex } = await rows.conversation(user.id, { sandboxId }));
    });

    it('with run alone', async () => {
      const shown = async (headers: Headers): Promise<unknown[]> => {
        const answers = await Promise.all([
          get(headers, `/api/v1/sandboxes?id=${sandboxId}`),
          get(headers, '/api/v1/sandboxes/search'),
          get(headers, `/api/v1/app-conversations?ids=${hex}`),
          get(headers, '/api/v1/app-conversations/search'),
          get(headers, `/api/conversations/${hex}`),
        ]);
        return answers.map(({ status, text }) => [
          status,
          /"session_api_key":"/.test(text) || /"exposed_urls":\[/.test(text),
        ]);
      };
      const without = await keyOf(user.headers, { scopes: ['read', 'settings'] });
      const all = (isShown: boolean): unknown[] => Array.from({ length: 5 }, () => [200, isShown]);

      expect(await shown(user.headers)).toEqual(all(true));
      expect(await shown(without)).toEqual(all(false));
      expect(await shown((await signIn(without)).session)).toEqual(all(false));
    });

    it('and start what is paused, as a read may', async () => {
      const paused = await rows.sandbox(user.id, { status: 'PAUSED' });
      const rested = await rows.conversation(user.id, { sandboxId: paused.id });
      const without = await keyOf(user.headers, { scopes: ['read'] });
      for (const what of ['git/changes?path=.', 'git/diff?path=a']) {
        const path = `/api/v1/app-conversations/${rested.hex}/${what}`;
        expect((await get(without, path).expect(409)).body).toMatchObject({ code: 'sandbox_not_running' });
        expect((await get(without, `${path}&resume=true`).expect(403)).body).toMatchObject(missing('run'));
      }
      const [row] = await app.dataSource.query<unknown[]>('SELECT status FROM sandboxes WHERE id = $1', [
        paused.id,
      ]);

      expect(row).toEqual({ status: 'PAUSED' });
    });

    it('and the settings in clear', async () => {
      const without = await keyOf(user.headers, { scopes: ['read', 'settings'] });
      const path = '/api/v1/users/me?expose_secrets=true';

      expect((await get(without, path).expect(403)).body).toMatchObject(missing('run'));
    });

    it('and no proxy of a sandbox takes the key of a user', async () => {
      const reading = await keyOf(user.headers, { scopes: ['read'] });
      await get(reading, `/api/v1/sandboxes/${sandboxId}/agent-server/api/conversations`).expect(401);
      const { body } = await app.as({ headers: reading }).post('/api/cloud-proxy', {}).expect(403);

      expect(body).toMatchObject(missing('run'));
    });
  });

  describe('at each door that is no list of operations', () => {
    const rows = new ConversationRows(app);
    const automation = { name: 'nightly', prompt: 'Look.', trigger: { type: 'cron', schedule: '0 9 * * *' } };
    let service: { id: string };
    let sandboxId: string;

    beforeAll(async () => {
      const made = { kind: 'service', name: 'ci' };
      service = (await app.as(app.admin).post('/api/v1/users', made).expect(201)).body;
      sandboxId = (await rows.sandbox(service.id, { address: 'http://127.0.0.1:9' })).id;
    });

    /** No socket takes a key of a user, whatever it may do. */
    const upgrade = async (headers: Headers): Promise<number> => {
      const path = `${app.url.replace('http', 'ws')}/api/v1/sandboxes/${sandboxId}/agent-server/sockets/events/x`;
      const socket = new WebSocket(`${path}?session_api_key=${headers['X-Session-API-Key'] ?? ''}`, {
        headers,
      });
      socket.on('error', () => undefined);
      const [, response] = await once(socket, 'unexpected-response');
      return response.statusCode;
    };
    const answers = async (headers: Headers): Promise<unknown[]> => {
      const asked = app.as({ headers });
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
      const found = [
        await asked.post('/mcp', list),
        await asked.post('/api/automation/v1/preset/prompt', automation),
        await asked.post(`/api/automation/v1/${service.id}/dispatch`, {}),
        await asked.post('/api/cloud-proxy', {}),
      ];
      return [
        ...found.map(({ status, body }) => `${status} ${body.scope ?? ''}`.trim()),
        await upgrade(headers),
      ];
    };

    it.each<[what: string, members: object, expected: unknown[]]>([
      ['all but admin', {}, ['200', '201', '404', '422', 401]],
      ['reading', { scopes: ['read'] }, ['403 run', '403 settings', '403 run', '403 run', 401]],
      ['settings', { scopes: ['settings'] }, ['403 run', '201', '403 run', '403 run', 401]],
      ['work', { scopes: ['run'] }, ['200', '403 settings', '404', '422', 401]],
      ['some repositories', { repositories: ['github:octo/app'] }, ['403', '403', '403', '403', 401]],
      ['later', { not_before: '2098-01-01T00:00:00Z' }, ['401', '401', '401', '401', 401]],
    ])('a key of a service for %s is let in as the table says', async (_what, members, expected) => {
      const key = await keyOf(app.admin.headers, { user_id: service.id, ...members });

      expect(await answers(key)).toEqual(expected);
    });

    it('a key that was let in is refused once its service is disabled', async () => {
      const key = await keyOf(app.admin.headers, { user_id: service.id });
      expect(await answers(key)).toEqual(['200', '201', '404', '422', 401]);
      await app.as(app.admin).post(`/api/v1/users/${service.id}/disable?sandboxes=keep`, {}).expect(200);

      await until(async () => (await answers(key)).every((each) => String(each) === '401'));
    });
  });

  describe('and the keys of one user', () => {
    it('outlive none that they were issued with, nor the key of a session', async () => {
      const { headers } = app.admin;
      const [soon, sooner] = ['2099-01-31T12:00:00.000Z', '2099-01-30T12:00:00.000Z'];
      const { body: temporary } = await issue(headers, { expires_at: soon, scopes: SCOPES }).expect(201);
      const session = await sessionOf(app.url, temporary.key);
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
        `UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE name = 'limited' AND user_id = $1`,
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

      const { body: listed } = await app.as({ headers }).get('/api/v1/api-keys').expect(200);
      const names: string[] = listed.map((key: { name: string }) => key.name);
      expect(names.filter((name) => name === 'old')).toHaveLength(100);
      expect(listed.map((key: { id: string }) => key.id)).toEqual(
        expect.arrayContaining([body.id, 'old00001', 'old00100']),
      );
    });
  });
});

const TEN_MINUTES_MS = 600_000;

describe('one-time codes of the web application', () => {
  let codes: OneTimeCodes;

  beforeAll(async () => {
    codes = app.app.get(OneTimeCodes);
  });

  const exchange = (code: unknown, headers: Record<string, string> = {}): request.Test =>
    app.as({ headers }).post('/auth/code/key', { code });
  const port = (): string => new URL(app.url).port;

  it('stand for a key once, and name its account', async () => {
    const code = codes.issue(app.user.key, 'key');
    const { body, headers } = await exchange(code, { Origin: `http://localhost:${port()}` }).expect(200);

    expect(body).toEqual({
      api_key: app.user.key,
      user: { id: app.user.id, email: expect.stringContaining('@example.com') },
    });
    expect(headers['cache-control']).toBe('no-store');
    const again = await exchange(code).expect(401);
    expect(again.body).toMatchObject({
      code: 'unauthorized',
      detail: expect.stringContaining('has been used'),
    });
    expect(again.text).not.toContain(app.user.key);
  });

  it('are given to one of two requests at the same time', async () => {
    const code = codes.issue(app.user.key, 'key');
    const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await exchange(code)).status));

    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
  });

  it('expire after ten minutes', async () => {
    app.clock.stop();
    const [early, late] = [codes.issue(app.user.key, 'key'), codes.issue(app.user.key, 'key')];
    app.clock.advance(TEN_MINUTES_MS - 1);
    await exchange(early).expect(200);
    app.clock.advance(1);

    await exchange(late).expect(401);
    app.clock.resume();
  });

  it('are worth nothing once the key is revoked', async () => {
    const { body: issued } = await app.as(app.user).post('/api/v1/api-keys', { name: 'short' }).expect(201);
    const code = codes.issue(issued.key, 'key');
    await app.as(app.user).delete(`/api/v1/api-keys/${issued.id}`).expect(204);

    await exchange(code).expect(401);
  });

  it.each(['http://localhost:1', 'https://evil.example', 'null', 'http://worker-1-x.localhost:3000'])(
    'are not exchanged for a page of %s, and not used up by it',
    async (origin) => {
      const code = codes.issue(app.user.key, 'key');

      expect((await exchange(code, { Origin: origin }).expect(403)).text).not.toContain(app.user.key);
      await exchange(code).expect(200);
    },
  );

  it('are no sign-in to the console, and codes for that give no key', async () => {
    const [ofApplication, ofConsole] = [
      codes.issue(app.user.key, 'key'),
      codes.issue(app.user.key, 'session'),
    ];

    const refused = await app.as().post('/auth/code', { code: ofApplication }).expect(401);
    expect(refused.headers['set-cookie']).toBeUndefined();
    expect((await exchange(ofConsole).expect(401)).text).not.toContain(app.user.key);
  });

  it('are bounded in number: the oldest goes first', async () => {
    const issued = Array.from({ length: 17 }, () => codes.issue(app.user.key, 'key'));

    await exchange(issued[0]).expect(401);
    await exchange(issued[1]).expect(200);
  });

  it('are read from a body of JSON only, so that no form of another page sends one', async () => {
    const code = codes.issue(app.user.key, 'key');
    await request(app.url)
      .post('/auth/code/key')
      .type('text/plain')
      .send(JSON.stringify({ code }))
      .expect(415);
    await app.as().get(`/auth/code/key?code=${code}`).expect(405);
  });
});
