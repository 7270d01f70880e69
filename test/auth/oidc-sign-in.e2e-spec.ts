import { describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import request from 'supertest';
import { AccessChanges } from '../../src/auth/access-changes.js';
import { CLIENT_ID, FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { createTestApp } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { SignInBrowser } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useIssuer } from '../support/use-issuer.js';

const HOUR_MS = 3_600_000;
const LOGIN = '/auth/login';
const LOGOUT = '/auth/backchannel-logout';
const ME = '/api/v1/users/me/identities';

describe('signing in by the issuer', () => {
  const { app, sso } = useIssuer({ OIDC_ROLE_MAP: 'ops=admin,dev=member', OIDC_DEFAULT_ROLE: 'none' });
  const { browser } = sso;

  const audited = async (userId: string): Promise<string[]> => {
    const rows = await app.dataSource.query<{ action: string }[]>(
      "SELECT action FROM audit_entries WHERE owner_user_id = $1 AND action ~ '^(user|session)[.]' ORDER BY at",
      [userId],
    );
    return rows.map(({ action }) => action).filter((action) => action !== 'user.create');
  };

  it('makes a session whose page goes on by itself', async () => {
    const who = browser();
    const page = await who.signIn(`${LOGIN}?return_to=/console/work`);

    expect(page.status).toBe(200);
    expect(page.text).toContain('content="0; url=/console/work"');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.headers['cache-control']).toBe('no-store');
    expect([...who.cookies.keys()]).toEqual(['slipway_session']);
    expect(await who.user()).toMatchObject({ email: `p${sso.people}@example.com`, is_admin: false });
  });

  it('asks with PKCE, state and nonce, and keeps none of them where a script or the address shows it', async () => {
    const who = browser();
    const { headers } = await who.get(LOGIN);
    const asked = new URL(headers['location'] ?? '').searchParams;

    expect(Object.fromEntries(asked)).toMatchObject({
      client_id: CLIENT_ID,
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${app.url}/auth/callback`,
      scope: 'openid profile email',
    });
    expect([headers['set-cookie']].flat().join()).toMatch(/^slipway_login=[^;]+; .*HttpOnly; SameSite=Lax$/);
    expect(who.cookie).not.toContain(asked.get('state'));
  });

  it('tells administrators what the issuer said last', async () => {
    const found = async (): Promise<{ id: string; role: string; sign_in: object }> => {
      const search = app
        .as()
        .get('/api/v1/users')
        .query({ email__eq: `p${sso.people}@example.com` });
      return (await search.set(app.admin.headers).expect(200)).body.items[0];
    };
    Object.assign(sso.issuer.state.person, { groups: ['cooks', 'dev'] });
    await browser().signIn();
    const first = await found();
    Object.assign(sso.issuer.state.person, { groups: undefined, hasgroups: true });
    await browser().signIn();
    const second = await found();
    Object.assign(sso.issuer.state.person, { groups: ['ops'], hasgroups: undefined });
    await browser().signIn();

    const said = {
      issuer: sso.issuer.issuer,
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
  });

  describe('refuses', () => {
    const refused = (page: request.Response, who: SignInBrowser): string => {
      expect(page.headers['content-type']).toContain('text/html');
      expect(page.text).toContain('Try again');
      expect(who.cookies.has('slipway_session')).toBe(false);
      return page.text;
    };

    it('a callback in a browser that began nothing, in words', async () => {
      const who = browser();
      const page = await who.get(await browser().begin());

      expect(page.status).toBe(400);
      expect(refused(page, who)).toContain('not begun in this browser');
    });

    it('what is not of its own sign-in, with the reason', async () => {
      sso.issuer.state.person['nonce'] = 'other';
      const who = browser();
      const page = await who.signIn();

      expect(page.status).toBe(401);
      expect(refused(page, who)).toContain('does not belong to this sign-in');
    });

    it('a person whose groups have no role, in words', async () => {
      sso.issuer.state.person['groups'] = ['others'];
      const who = browser();
      const page = await who.signIn();

      expect(page.status).toBe(403);
      expect(refused(page, who)).toContain('no group of yours has a role');
    });

    it('what the issuer says in an address is text on the page', async () => {
      const who = browser();
      const own = new URL(await who.begin(), app.url);
      own.search = `?${new URLSearchParams({ error: '<img src=x>', state: own.searchParams.get('state') ?? '' }).toString()}`;
      const page = await who.get(own.pathname + own.search);

      expect(page.text).not.toContain('<img');
      refused(page, who);
    });
  });

  it('answers 503 in words while the issuer is away', async () => {
    const who = browser();
    const callback = await who.begin();
    sso.issuer.server.injectFault({ kind: 'reset' });
    const page = await who.get(callback);

    expect(page.status).toBe(503);
    expect(page.text).toContain('cannot be reached');
  });

  describe('a user of before', () => {
    it('is not linked by a page of another origin, a wrong key, or a person of another user', async () => {
      const user = await app.createUser();
      await browser()
        .beginLink(user.key, 'https://evil.example')
        .then(({ status }) => expect(status).toBe(403));
      await browser()
        .beginLink(`slw_AAAAAAAA_${'A'.repeat(43)}`)
        .then(({ status }) => expect(status).toBe(401));
      await browser().signIn();
      const who = browser();
      const { body } = await who.beginLink(user.key);

      expect((await who.goOn(body.url)).status).toBe(409);
    });

    it('is unlinked again, which ends its sessions, but never from the only way in', async () => {
      const user = await app.createUser();
      const who = browser();
      await who.goOn((await who.beginLink(user.key)).body.url);
      const [{ id }] = (await app.as(user).get(ME).expect(200)).body.items;
      await app.as(app.user).delete(`${ME}/${id}`).expect(404);
      await app.as(user).delete(`${ME}/${id}`).expect(204);
      expect(await audited(user.id)).toEqual(['user.link', 'session.create', 'user.unlink']);
      expect(await who.user()).toBeNull();

      await who.signIn();
      const [own] = (await who.get(ME)).body.items;
      await request(app.url)
        .delete(`${ME}/${own.id}`)
        .set(await who.headers())
        .expect(409);
    });
  });

  describe('ends', () => {
    const logOut = async (claims: object): Promise<request.Response> =>
      request(app.url)
        .post(LOGOUT)
        .type('form')
        .send({ logout_token: await sso.issuer.logoutToken(claims as Record<string, unknown>) });

    it('by the issuer: that sign-in, or all of a person, with the keys that were made by them', async () => {
      const [first, second, other] = [browser(), browser(), browser()];
      await first.signIn();
      sso.issuer.state.sid = `other-${sso.people}`;
      await second.signIn();
      sso.issuer.state.person = {
        ...sso.issuer.state.person,
        sub: `x-${sso.people}`,
        email: `x${sso.people}@example.com`,
      };
      await other.signIn();
      const id = (await first.user())?.id ?? '';
      const { body } = await request(app.url)
        .post('/api/v1/api-keys')
        .set(await first.headers())
        .send({ name: 'of the session' })
        .expect(201);
      const withKey = (): request.Test => app.as(body.key).get(ME);
      await withKey().expect(200);

      await logOut({ sid: `sid-${sso.people}` }).then(({ status }) => expect(status).toBe(200));
      expect([await first.user(), (await second.user()) === null]).toEqual([null, false]);
      await withKey().expect(401);

      await logOut({ sub: `sub-${sso.people}` }).then(({ status }) => expect(status).toBe(200));
      expect([await second.user(), (await other.user()) === null]).toEqual([null, false]);
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
      await who.signIn();
      const { status, body } = await logOut({ sub: `sub-${sso.people}`, ...claims });

      expect([status, body.error]).toEqual([400, 'invalid_request']);
      expect(await who.user()).not.toBeNull();
    });

    it('where the issuer does not renew it any more, and goes on where it does', async () => {
      sso.issuer.state.refreshTokens = [];
      const who = browser();
      await who.signIn();
      const stored = async (): Promise<string> => {
        const rows = await app.dataSource.query<{ refresh_token: string }[]>(
          'SELECT refresh_token FROM sessions WHERE id = $1',
          [(who.cookies.get('slipway_session') ?? '').slice(0, 12)],
        );
        return rows[0]?.refresh_token ?? '';
      };
      const first = await stored();
      expect(first).not.toContain(sso.issuer.state.refreshTokens[0]);
      sso.issuer.state.renewed = { ...sso.issuer.state.person, groups: ['ops'] };
      app.clock.advance(HOUR_MS);
      await who.user();
      await until(async () => (await stored()) !== first);
      await until(async () => (await who.user()) !== null);
      await until(async () => (await who.get('/api/v1/users')).status === 200);

      sso.issuer.state.refreshTokens.length = 0;
      app.clock.advance(HOUR_MS);
      await who.user();
      await until(async () => (await who.user()) === null);
    });

    it('where the issuer does not renew it any more, though all that it does is to hold a stream', async () => {
      sso.issuer.state.refreshTokens = [];
      const who = browser();
      await who.signIn();
      const rows = new ConversationRows(app);
      const { hex } = await rows.conversation((await who.user())?.id ?? '', {}, FOLLOWED_ELSEWHERE);
      const address = `${app.url}/api/v1/conversation/${hex}/events/stream`;
      const stream = await EventSource.connect(address, { Cookie: who.cookie });
      sso.issuer.state.refreshTokens.length = 0;
      app.clock.advance(HOUR_MS);
      // As every five seconds.
      app.app.get(AccessChanges).tell(null);

      await stream.untilEnded();
      expect(await who.user()).toBeNull();
    });
  });
});

describe('an issuer whose access tokens are no JWTs', () => {
  it('is told of once where they were to be keys: at the first sign-in, at which people get in', async () => {
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const issuer = await FakeOidcIssuer.start();
    const person = { sub: 'ada', email: 'ada@example.com' };
    Object.assign(issuer.state, { person, accessToken: 'opaque' });
    const app = await createTestApp(issuer.environment);
    const toldOf = (): number =>
      warned.mock.calls.filter(([text]) => String(text).includes('are no JWTs')).length;
    try {
      expect(toldOf()).toBe(0);
      for (const who of [new SignInBrowser(app.url), new SignInBrowser(app.url)]) {
        await who.signIn();
        expect((await who.user())?.email).toBe(person.email);
        expect(toldOf()).toBe(1);
      }
    } finally {
      warned.mockRestore();
      await app.close();
      await issuer.server.close();
    }
  });
});
