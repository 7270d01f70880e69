import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { CLIENT_ID, FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;
const LOGIN = '/auth/login';
const LOGOUT = '/auth/backchannel-logout';
const ME = '/api/v1/users/me/identities';

interface Browser {
  cookies: Map<string, string>;
}

describe('signing in by the issuer', () => {
  let issuer: FakeOidcIssuer;
  let app: TestApp;
  let people = 0;

  beforeAll(async () => {
    issuer = await FakeOidcIssuer.start();
    app = await createTestApp({
      ...issuer.environment,
      OIDC_ROLE_MAP: 'ops=admin,dev=member',
      OIDC_DEFAULT_ROLE: 'none',
    });
  });
  afterAll(async () => {
    await app.close();
    await issuer.server.close();
  });
  beforeEach(() => {
    people += 1;
    issuer.server.clearFaults();
    Object.assign(issuer.state, {
      person: { sub: `sub-${people}`, email: `p${people}@example.com`, name: 'Ada', groups: ['dev'] },
      userInfo: {},
      sid: `sid-${people}`,
      refreshTokens: null,
      renewed: null,
      tamper: null,
    });
  });

  const browser = (): Browser => ({ cookies: new Map() });
  const cookieOf = ({ cookies }: Browser): string => [...cookies].map((pair) => pair.join('=')).join('; ');
  const keep = ({ cookies }: Browser, { headers }: request.Response): void => {
    for (const line of [headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') {
        cookies.delete(name);
      } else {
        cookies.set(name, value);
      }
    }
  };
  const get = async (who: Browser, path: string): Promise<request.Response> => {
    const answer = await request(app.url).get(path).set('Cookie', cookieOf(who)).redirects(0);
    keep(who, answer);
    return answer;
  };
  /** As far as the issuer; answers the path of the callback. */
  const begin = async (who: Browser, path = LOGIN): Promise<string> => follow(await get(who, path));
  const follow = async ({ headers }: request.Response): Promise<string> =>
    atIssuer(headers['location'] ?? '');
  const atIssuer = async (address: string): Promise<string> => {
    const { headers } = await fetch(address, { redirect: 'manual' });
    const { pathname, search } = new URL(headers.get('location') ?? '');
    return pathname + search;
  };
  const signIn = async (who: Browser, path = LOGIN): Promise<request.Response> =>
    get(who, await begin(who, path));
  const shown = async (who: Browser): Promise<{ user: { id: string } | null; csrf_token: string }> =>
    (await get(who, '/auth/session')).body;

  const audited = async (userId: string): Promise<string[]> => {
    const rows = await app.dataSource.query<{ action: string }[]>(
      "SELECT action FROM audit_entries WHERE owner_user_id = $1 AND action ~ '^(user|session)[.]' ORDER BY at",
      [userId],
    );
    return rows.map(({ action }) => action).filter((action) => action !== 'user.create');
  };

  it('makes a session whose page goes on by itself', async () => {
    const who = browser();
    const page = await signIn(who, `${LOGIN}?return_to=/console/work`);

    expect(page.status).toBe(200);
    expect(page.text).toContain('content="0; url=/console/work"');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.headers['cache-control']).toBe('no-store');
    expect([...who.cookies.keys()]).toEqual(['slipway_session']);
    expect(await shown(who)).toMatchObject({ user: { email: `p${people}@example.com`, is_admin: false } });
  });

  it('asks with PKCE, state and nonce, and keeps none of them where a script or the address shows it', async () => {
    const who = browser();
    const { headers } = await get(who, LOGIN);
    const asked = new URL(headers['location'] ?? '').searchParams;

    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: CLIENT_ID,
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${app.url}/auth/callback`,
      scope: 'openid profile email',
    });
    expect([headers['set-cookie']].flat().join()).toMatch(/^slipway_login=[^;]+; .*HttpOnly; SameSite=Lax$/);
    expect(cookieOf(who)).not.toContain(asked.get('state'));
  });

  it('reads what the issuer says at its userinfo endpoint alone', async () => {
    const { person } = issuer.state;
    Object.assign(issuer.state, {
      person: { sub: person['sub'] },
      userInfo: { email: 'ui@example.com', groups: ['ops'] },
    });
    const who = browser();
    await signIn(who);

    expect(await shown(who)).toMatchObject({ user: { email: 'ui@example.com', is_admin: true } });
  });

  it('tells administrators what the issuer said last, and nothing of who was removed', async () => {
    const found = async (): Promise<{ id: string; role: string; sign_in: object }> => {
      const search = request(app.url)
        .get('/api/v1/users')
        .query({ email__eq: `p${people}@example.com` });
      return (await search.set(app.admin.headers).expect(200)).body.items[0];
    };
    Object.assign(issuer.state.person, { groups: ['cooks', 'dev'] });
    await signIn(browser());
    const first = await found();
    Object.assign(issuer.state.person, { groups: undefined, hasgroups: true });
    await signIn(browser());
    const second = await found();
    Object.assign(issuer.state.person, { groups: ['ops'], hasgroups: undefined });
    await signIn(browser());

    const said = {
      issuer: issuer.issuer,
      groups: ['dev', 'cooks'],
      role: 'member',
      decides_role: true,
      last_seen_at: expect.any(String),
    };
    expect(first).toMatchObject({ role: 'member', sign_in: said });
    expect(second).toMatchObject({ role: 'member', sign_in: { ...said, groups: null, role: null } });
    expect(await found()).toMatchObject({
      role: 'admin',
      sign_in: { ...said, groups: ['ops'], role: 'admin' },
    });
    await request(app.url).delete(`/api/v1/users/${first.id}`).set(app.admin.headers).expect(204);
    const kept = 'SELECT groups FROM user_identities WHERE user_id = $1';
    expect(await app.dataSource.query(kept, [first.id])).toEqual([{ groups: null }]);
  });

  it.each([
    ['https://evil.example/', '/console/'],
    ['//evil.example/', '/console/'],
    ['/\\evil.example', '/console/'],
  ])('goes on at no other origin: %s', async (asked, path) => {
    const page = await signIn(browser(), `${LOGIN}?return_to=${encodeURIComponent(asked)}`);

    expect(page.text).toContain(`content="0; url=${path}"`);
  });

  describe('refuses', () => {
    const refused = async (page: request.Response, who: Browser): Promise<string> => {
      expect(page.headers['content-type']).toContain('text/html');
      expect(page.text).toContain('Try again');
      expect(who.cookies.has('slipway_session')).toBe(false);
      return page.text;
    };

    it('a callback in a browser that began nothing (login CSRF)', async () => {
      const victim = browser();
      const page = await get(victim, await begin(browser()));

      expect(page.status).toBe(400);
      expect(await refused(page, victim)).toContain('not begun in this browser');
    });

    it('the code of another sign-in of the same browser', async () => {
      const who = browser();
      const stolen = new URL(await begin(browser()), app.url).searchParams.get('code');
      const own = new URL(await begin(who), app.url);
      own.searchParams.set('code', stolen ?? '');
      const page = await get(who, own.pathname + own.search);

      expect(page.status).toBe(401);
      expect(await refused(page, who)).toContain('invalid_grant');
    });

    it('a state that is not its own', async () => {
      const who = browser();
      const own = new URL(await begin(who), app.url);
      own.searchParams.set('state', 'x'.repeat(43));
      const page = await get(who, own.pathname + own.search);

      expect(page.status).toBe(401);
      await refused(page, who);
    });

    it('the same callback twice', async () => {
      const who = browser();
      const callback = await begin(who);
      const login = who.cookies.get('slipway_login') ?? '';
      await get(who, callback);
      const thief = { cookies: new Map([['slipway_login', login]]) };

      expect((await get(thief, callback)).status).toBe(401);
      await get(who, callback);
      expect((await shown(who)).user).not.toBeNull();
    });

    it('an answer of another issuer (mix-up, RFC 9207)', async () => {
      const who = browser();
      const own = new URL(await begin(who), app.url);
      own.searchParams.set('iss', 'https://other.example.com');
      const page = await get(who, own.pathname + own.search);

      expect(page.status).toBe(401);
      await refused(page, who);
    });

    it.each<[string, object]>([
      ['another nonce', { nonce: 'other' }],
      ['another audience', { aud: 'other' }],
      ['several audiences, and another authorized party', { aud: [CLIENT_ID, 'other'], azp: 'other' }],
      ['another issuer', { iss: 'https://other.example.com' }],
      ['an end that has passed', { exp: 1 }],
    ])('an ID token with %s', async (_what, claims) => {
      Object.assign(issuer.state.person, claims);
      const who = browser();
      const page = await signIn(who);

      expect(page.status).toBe(401);
      await refused(page, who);
    });

    it('an ID token that another key has signed', async () => {
      const other = await FakeOidcIssuer.start();
      issuer.state.tamper = async (token) => {
        const [, payload = ''] = token.split('.');
        return other.sign(JSON.parse(Buffer.from(payload, 'base64url').toString()), {
          kid: issuer.currentKey.kid,
        });
      };
      const who = browser();
      const page = await signIn(who);
      await other.server.close();

      expect(page.status).toBe(401);
      await refused(page, who);
    });

    it('a person whose groups have no role, in words', async () => {
      issuer.state.person['groups'] = ['others'];
      const who = browser();
      const page = await signIn(who);

      expect(page.status).toBe(403);
      expect(await refused(page, who)).toContain('no group of yours has a role');
    });

    it('what the issuer says in an address is text on the page', async () => {
      const who = browser();
      const own = new URL(await begin(who), app.url);
      own.search = `?${new URLSearchParams({ error: '<img src=x>', state: own.searchParams.get('state') ?? '' }).toString()}`;
      const page = await get(who, own.pathname + own.search);

      expect(page.text).not.toContain('<img');
      await refused(page, who);
    });
  });

  it('answers 503 in words while the issuer is away', async () => {
    const who = browser();
    const callback = await begin(who);
    issuer.server.injectFault({ kind: 'reset' });
    const page = await get(who, callback);

    expect(page.status).toBe(503);
    expect(page.text).toContain('cannot be reached');
  });

  it('begins a session of its own beside one that the browser has brought along', async () => {
    const who = browser();
    who.cookies.set('slipway_session', `ses_AAAAAAAA_${'A'.repeat(43)}`);
    await signIn(who);

    expect(who.cookies.get('slipway_session')).not.toContain('AAAAAAAA');
  });

  describe('a user of before', () => {
    const link = async (who: Browser, key: string, origin = app.url): Promise<request.Response> => {
      const answer = await request(app.url).post('/auth/link').set('Origin', origin).send({ key });
      keep(who, answer);
      return answer;
    };

    it('is linked by a key, and signs in as before from then on', async () => {
      const user = await app.createUser();
      const who = browser();
      const { body } = await link(who, user.key);
      await get(who, await atIssuer(body.url));

      expect(await shown(who)).toMatchObject({ user: { id: user.id } });
      const again = browser();
      await signIn(again);
      expect(await shown(again)).toMatchObject({ user: { id: user.id } });
    });

    it('is not linked by a page of another origin, a wrong key, or a person of another user', async () => {
      const user = await app.createUser();
      await link(browser(), user.key, 'https://evil.example').then(({ status }) => expect(status).toBe(403));
      await link(browser(), `slw_AAAAAAAA_${'A'.repeat(43)}`).then(({ status }) => expect(status).toBe(401));
      await signIn(browser());
      const who = browser();
      const { body } = await link(who, user.key);

      expect((await get(who, await atIssuer(body.url))).status).toBe(409);
    });

    it('is unlinked again, which ends its sessions, but never from the only way in', async () => {
      const user = await app.createUser();
      const who = browser();
      await get(who, await atIssuer((await link(who, user.key)).body.url));
      const [{ id }] = (await request(app.url).get(ME).set(user.headers).expect(200)).body.items;
      await request(app.url).delete(`${ME}/${id}`).set(app.user.headers).expect(404);
      await request(app.url).delete(`${ME}/${id}`).set(user.headers).expect(204);
      expect(await audited(user.id)).toEqual(['user.link', 'session.create', 'user.unlink']);
      expect((await shown(who)).user).toBeNull();

      await signIn(who);
      const { csrf_token: csrf } = await shown(who);
      const [own] = (await get(who, ME)).body.items;
      await request(app.url)
        .delete(`${ME}/${own.id}`)
        .set({ Cookie: cookieOf(who), 'X-CSRF-Token': csrf })
        .expect(409);
    });
  });

  describe('ends', () => {
    const logOut = async (claims: object): Promise<request.Response> =>
      request(app.url)
        .post(LOGOUT)
        .type('form')
        .send({ logout_token: await issuer.logoutToken(claims as Record<string, unknown>) });

    it('by the issuer: that sign-in, or all of a person, with the keys that were made by them', async () => {
      const [first, second, other] = [browser(), browser(), browser()];
      await signIn(first);
      issuer.state.sid = `other-${people}`;
      await signIn(second);
      issuer.state.person = { ...issuer.state.person, sub: `x-${people}`, email: `x${people}@example.com` };
      await signIn(other);
      const { csrf_token: csrf, user } = await shown(first);
      const id = user?.id ?? '';
      const { body } = await request(app.url)
        .post('/api/v1/api-keys')
        .set({ Cookie: cookieOf(first), 'X-CSRF-Token': csrf })
        .send({ name: 'of the session' })
        .expect(201);
      const withKey = (): request.Test => request(app.url).get(ME).set('X-Session-API-Key', body.key);
      await withKey().expect(200);

      await logOut({ sid: `sid-${people}` }).then(({ status }) => expect(status).toBe(200));
      expect([(await shown(first)).user, (await shown(second)).user === null]).toEqual([null, false]);
      await withKey().expect(401);

      await logOut({ sub: `sub-${people}` }).then(({ status }) => expect(status).toBe(200));
      expect([(await shown(second)).user, (await shown(other)).user === null]).toEqual([null, false]);
      expect(await audited(id)).toEqual(['session.create', 'session.create', 'session.end', 'session.end']);
    });

    it.each<[string, object]>([
      ['a nonce', { nonce: 'n' }],
      ['neither subject nor sign-in', { sub: undefined }],
      ['no event', { events: undefined }],
      ['another event', { events: { other: {} } }],
      ['another audience', { aud: 'other' }],
      ['an hour of age', { iat: Math.floor(Date.now() / 1000) - 3_600 }],
    ])('nothing by a logout token with %s', async (_what, claims) => {
      const who = browser();
      await signIn(who);
      const { status, body } = await logOut({ sub: `sub-${people}`, ...claims });

      expect([status, body.error]).toEqual([400, 'invalid_request']);
      expect((await shown(who)).user).not.toBeNull();
    });

    it('where the issuer does not renew it any more, and goes on where it does', async () => {
      issuer.state.refreshTokens = [];
      const who = browser();
      await signIn(who);
      const stored = async (): Promise<string> => {
        const rows = await app.dataSource.query<{ refresh_token: string }[]>(
          'SELECT refresh_token FROM sessions WHERE id = $1',
          [(who.cookies.get('slipway_session') ?? '').slice(0, 12)],
        );
        return rows[0]?.refresh_token ?? '';
      };
      const first = await stored();
      expect(first).not.toContain(issuer.state.refreshTokens[0]);
      issuer.state.renewed = { ...issuer.state.person, groups: ['ops'] };
      app.clock.advance(HOUR_MS);
      await shown(who);
      await until(async () => (await stored()) !== first);
      await until(async () => (await shown(who)).user !== null);
      await until(async () => (await get(who, '/api/v1/users')).status === 200);

      issuer.state.refreshTokens.length = 0;
      app.clock.advance(HOUR_MS);
      await shown(who);
      await until(async () => (await shown(who)).user === null);
    });
  });
});

describe('without an issuer', () => {
  it('says so', async () => {
    const app = await createTestApp();
    const { body } = await request(app.url).get(LOGIN).expect(404);
    await app.close();

    expect(body.detail).toContain('OIDC');
  });
});
