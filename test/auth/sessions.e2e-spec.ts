import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { OneTimeCodes } from '../../src/auth/one-time-codes.js';
import { AuditClient } from '../support/audit-client.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const HOUR_MS = 3_600_000;
/** After which no replica takes a session from its memory. */
const CACHE_MS = 5_000;
const SETTINGS = '/api/settings';

interface Browser {
  value: string;
  csrf: string;
  headers: { Cookie: string };
}

describe('sessions', () => {
  const app = useTestApp();
  let codes: OneTimeCodes;

  beforeAll(async () => {
    codes = app.app.get(OneTimeCodes);
  });

  const origin = (): string => app.url;
  const signIn = (key: string, headers: Record<string, string> = {}): request.Test =>
    app.as({ headers }).post('/auth/key', { key });
  const withCode = (code: string, headers: Record<string, string> = {}): request.Test =>
    app.as({ headers }).post('/auth/code', { code });
  const ask = (headers: Record<string, string>, path = SETTINGS): request.Test =>
    app.as({ headers }).get(path);
  const show = async (
    headers: Record<string, string> = {},
  ): Promise<{ user: unknown; csrf_token: unknown }> =>
    (await ask(headers, '/auth/session').expect(200)).body;

  const browserOf = ({ headers, body }: request.Response): Browser => {
    const [cookie = ''] = [headers['set-cookie'] ?? []].flat();
    const value = /^slipway_session=([^;]*)/.exec(cookie)?.[1] ?? '';
    return { value, csrf: body.csrf_token, headers: { Cookie: `slipway_session=${value}` } };
  };
  const open = async ({ key }: TestUser): Promise<Browser> => browserOf(await signIn(key).expect(200));

  /** The last use is written beside the response. */
  const use = async ({ value, headers }: Browser): Promise<void> => {
    expect(await show(headers)).toMatchObject({ user: { id: app.user.id } });
    await until(async () => {
      const [row] = await app.dataSource.query<{ last_used_at: Date }[]>(
        'SELECT last_used_at FROM sessions WHERE id = $1',
        [value.slice(0, 12)],
      );
      return (row?.last_used_at.getTime() ?? 0) > app.clock.now() - 60_000;
    });
  };

  describe('signing in', () => {
    it('exchanges a key for a cookie that no script and no other site gets, whatever strangers forward', async () => {
      const sent = { Origin: origin(), 'X-Forwarded-Proto': 'https' };
      const { headers, body, text } = await signIn(app.user.key, sent).expect(200);

      expect(headers['set-cookie']).toEqual([
        expect.stringMatching(
          /^slipway_session=ses_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
        ),
      ]);
      expect(headers['cache-control']).toBe('no-store');
      expect(body).toEqual({
        user: {
          id: app.user.id,
          email: expect.stringContaining('@example.com'),
          name: null,
          is_admin: false,
          scopes: ['read', 'run', 'settings', 'admin'],
          repositories: null,
        },
        csrf_token: expect.stringMatching(/^[\w-]{43}$/),
        sign_in_url: null,
      });
      expect(text).not.toContain(app.user.key.slice(13));
      const stored = JSON.stringify(await app.dataSource.query('SELECT * FROM sessions'));
      expect(stored).not.toContain(/ses_\w{8}_(\w+)/.exec(String(headers['set-cookie']))?.[1]);
    });

    it('exchanges the code of a link, once', async () => {
      const code = codes.issue(app.admin.key, 'session');
      const { headers } = browserOf(await withCode(code, { Origin: origin() }).expect(200));

      expect(await show(headers)).toMatchObject({ user: { id: app.admin.id, is_admin: true } });
      const again = await withCode(code).expect(401);
      expect(again.headers['set-cookie']).toBeUndefined();
      expect(again.body.detail).toContain('has been used');
    });

    it.each(['', 'wrong-key-wrong-key', `slw_AAAAAAAA_${'A'.repeat(43)}`])(
      'refuses the wrong key "%s" in words, without a session',
      async (key) => {
        const { headers, body } = await signIn(key).expect(401);

        expect(body.detail).toContain('This is not a valid API key');
        expect(headers['set-cookie']).toBeUndefined();
      },
    );

    it('by a code is for pages of the service only, which leaves the code to them', async () => {
      const code = codes.issue(app.user.key, 'session');
      const { status, headers } = await withCode(code, { Origin: 'https://evil.example' });

      expect([status, headers['set-cookie']]).toEqual([403, undefined]);
      await withCode(code).expect(200);
    });

    it('takes no form, by which pages of others could send one', async () => {
      await request(app.url).post('/auth/key').type('form').send({ key: app.user.key }).expect(415);
    });

    it('keeps the twenty sessions of a user that were used last', async () => {
      const user = await app.createUser();
      const opened: Browser[] = [];
      for (let count = 0; count < 21; count += 1) {
        app.clock.advance(1_000);
        opened.push(await open(user));
      }
      app.clock.advance(CACHE_MS);

      expect(await show(opened[0]?.headers)).toEqual({ user: null, csrf_token: null, sign_in_url: null });
      expect(await show(opened[1]?.headers)).toMatchObject({ user: { id: user.id } });
    });
  });

  describe('GET /auth/session', () => {
    it.each<[string, Record<string, string>]>([
      ['nothing', {}],
      ['a key', { 'X-Session-API-Key': 'test-administrator-key' }],
      ['an unknown cookie', { Cookie: `slipway_session=ses_AAAAAAAA_${'A'.repeat(43)}` }],
      ['a malformed cookie', { Cookie: 'slipway_session=ses_' }],
      ['an empty cookie', { Cookie: 'slipway_session=' }],
    ])('answers 200 to a stranger with %s', async (_name, headers) => {
      expect(await show(headers)).toEqual({ user: null, csrf_token: null, sign_in_url: null });
    });

    it('names the user, and the token of this session', async () => {
      const [one, other] = [await open(app.user), await open(app.user)];

      expect(await show(one.headers)).toMatchObject({ user: { id: app.user.id }, csrf_token: one.csrf });
      expect(one.csrf).not.toBe(other.csrf);
      expect(one.value).not.toContain(one.csrf);
    });
  });

  describe('the API', () => {
    let browser: Browser;

    beforeEach(async () => {
      browser = await open(app.user);
    });

    it.each(['http://localhost:1', 'https://evil.example', 'null'])(
      'refuses a page of %s, with the token too',
      async (foreign) => {
        const headers = { ...browser.headers, 'X-CSRF-Token': browser.csrf, Origin: foreign };

        await ask(headers, '/api/v1/api-keys').expect(403);
        await app.as({ headers }).post('/api/v1/api-keys', { name: 'x' }).expect(403);
      },
    );

    it.each(['same-site', 'cross-site'])(
      'refuses what a page that is %s embeds or links to',
      async (site) => {
        const headers = { ...browser.headers, 'Sec-Fetch-Site': site };
        const asked = await ask(headers, '/api/v1/api-keys').expect(403);

        expect(asked.body.detail).toBe('Only pages of the service itself, at PUBLIC_URL, may use a session.');
        const own = await ask({ ...browser.headers, 'Sec-Fetch-Site': 'same-origin' }, '/api/v1/api-keys');
        expect(own.status).toBe(200);
        await ask({ ...app.user.headers, 'Sec-Fetch-Site': site }, '/api/v1/api-keys').expect(200);
      },
    );

    it('lets no page of another origin read an answer', async () => {
      const preflight = await request(app.url)
        .options('/api/v1/api-keys')
        .set({ Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' });

      expect(preflight.headers['access-control-allow-origin']).toBeUndefined();
      expect(preflight.headers['access-control-allow-credentials']).toBeUndefined();
    });

    it('lets a key that comes along decide alone', async () => {
      const other = await app.createUser();
      const { body } = await ask({ ...browser.headers, ...other.headers }, '/api/organizations').expect(200);

      expect(body.items[1].id).toBe(other.id);
      await ask({ ...browser.headers, 'X-Session-API-Key': 'wrong-key-wrong-key' }).expect(401);
      await ask({ ...browser.headers, Authorization: 'Bearer wrong-key-wrong-key' }).expect(401);
      await request(app.url)
        .post('/api/v1/api-keys')
        .set({ ...browser.headers, ...other.headers })
        .send({ name: 'by key' })
        .expect(201);
    });

    it.each(['Basic bW9uYUBleGFtcGxlLmNvbTo=', 'Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln'])(
      'is open to a session behind a proxy that adds its own credentials (%s)',
      async (added) => {
        const headers = { ...browser.headers, Authorization: added };
        expect((await ask(headers, '/api/organizations').expect(200)).body.items[1].id).toBe(app.user.id);
        await request(app.url)
          .post('/api/v1/api-keys')
          .set({ ...headers, 'X-CSRF-Token': browser.csrf, Origin: origin() })
          .send({ name: 'behind a proxy' })
          .expect(201);
        await app.as({ headers }).post('/api/v1/api-keys', { name: 'forged' }).expect(403);
      },
    );

    it('takes the same cookie twice for one', async () => {
      const Cookie = `${browser.headers.Cookie}; ${browser.headers.Cookie}`;

      await ask({ Cookie }, '/api/v1/api-keys').expect(200);
    });

    it('says to a browser whose session has ended that it has', async () => {
      const { body } = await ask({ Cookie: `slipway_session=ses_AAAAAAAA_${'A'.repeat(43)}` }).expect(401);

      expect(body.detail).toContain('the session has ended');
    });
  });

  describe('the end', () => {
    beforeEach(() => app.clock.stop());
    afterEach(() => app.clock.resume());

    it('comes with signing out, which needs the token', async () => {
      const browser = await open(app.user);
      await app.as(browser).post('/auth/logout').expect(403);
      await ask(browser.headers, '/api/v1/api-keys').expect(200);
      const { headers } = await request(app.url)
        .post('/auth/logout')
        .set({ ...browser.headers, 'X-CSRF-Token': browser.csrf, Origin: origin() })
        .expect(204);

      expect(headers['set-cookie']).toEqual([
        'slipway_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
      ]);
      await ask(browser.headers, '/api/v1/api-keys').expect(401);
      await app.as(browser).post('/auth/logout').expect(204);
    });

    it('comes after twelve hours without use, and use puts it off', async () => {
      const browser = await open(app.user);
      app.clock.advance(12 * HOUR_MS - 10_000);
      await use(browser);
      app.clock.advance(12 * HOUR_MS - 10_000);
      await use(browser);
      app.clock.advance(12 * HOUR_MS);

      expect(await show(browser.headers)).toEqual({ user: null, csrf_token: null, sign_in_url: null });
    });

    it('comes after seven days, however much it is used', async () => {
      const browser = await open(app.user);
      for (let passed = 0; passed < 160; passed += 10) {
        app.clock.advance(10 * HOUR_MS);
        await use(browser);
      }
      app.clock.advance(8 * HOUR_MS);

      expect(await show(browser.headers)).toEqual({ user: null, csrf_token: null, sign_in_url: null });
    });

    it('comes with the revocation or the end of its key', async () => {
      const keys = app.app.get(ApiKeysService);
      const ends = new Date(app.clock.now() + HOUR_MS);
      const [revoked, expiring] = [
        await keys.issue({ userId: app.user.id, name: 'revoked', expiresAt: null }),
        await keys.issue({ userId: app.user.id, name: 'expiring', expiresAt: ends }),
      ];
      const [one, other] = [
        browserOf(await signIn(revoked.key).expect(200)),
        browserOf(await signIn(expiring.key).expect(200)),
      ];
      await keys.revoke(revoked.record.id);
      app.clock.advance(CACHE_MS);
      await ask(one.headers, '/api/v1/api-keys').expect(401);
      await ask(other.headers, '/api/v1/api-keys').expect(200);
      app.clock.advance(HOUR_MS - CACHE_MS);

      await ask(other.headers, '/api/v1/api-keys').expect(401);
    });
  });

  it('are in the audit, from signing in to signing out', async () => {
    const audit = new AuditClient(app);
    const user = await app.createUser();
    const browser = await open(user);
    await request(app.url)
      .post('/auth/logout')
      .set({ ...browser.headers, 'X-CSRF-Token': browser.csrf })
      .expect(204);
    const id = browser.value.slice(0, 12);

    expect(await audit.find({ owner_user_id: user.id, resource_type: 'session' })).toMatchObject([
      {
        action: 'session.end',
        resource: { type: 'session', id },
        actor: { kind: 'user', user_id: user.id, key_id: id },
      },
      {
        action: 'session.create',
        resource: { type: 'session', id },
        actor: { kind: 'user', user_id: user.id, key_id: user.key.slice(4, 12) },
      },
    ]);
  });
});

describe('the cookie behind https', () => {
  it("is this host's alone when a trusted proxy says so", async () => {
    const app = await createTestApp({ TRUSTED_PROXIES: '127.0.0.0/8' });
    const headers = { 'X-Forwarded-Proto': 'https' };
    const response = await app.as({ headers }).post('/auth/key', { key: app.user.key });
    const foreign = await request(app.url)
      .post('/auth/key')
      .set({ ...headers, Origin: 'http://slipway.example.com' })
      .send({ key: app.user.key });
    const [cookie = ''] = String(response.headers['set-cookie']).split(';', 1);
    const statusWith = async (sent: string): Promise<number> =>
      (
        await request(app.url)
          .get('/api/v1/api-keys')
          .set({ ...headers, Cookie: sent })
      ).status;
    // As a page at a sibling name sets it for the parent domain of both.
    const planted = cookie.replace('__Host-', '');
    const statuses = [
      await statusWith(cookie),
      await statusWith(planted),
      await statusWith(`${planted.replace(/ses_./, 'ses_-')}; ${cookie}`),
    ];
    await app.close();

    expect(response.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^__Host-slipway_session=ses_\w+; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure$/,
      ),
    ]);
    expect(statuses).toEqual([200, 401, 200]);
    expect(foreign.status).toBe(403);
  });
});
