import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { SignInBrowser } from '../support/sign-in-browser.js';
import { useIssuer } from '../support/use-issuer.js';
import { untilBlocked } from '../support/until-blocked.js';

const ME = '/api/v1/users/me/identities';
const KEYS = '/api/v1/api-keys';
const USERS = '/api/v1/users';
const ROLES = { OIDC_ROLE_MAP: 'ops=admin,readers=viewer,dev=member', OIDC_DEFAULT_ROLE: 'none' };

describe('whatever the order in which the news of an issuer arrive:', () => {
  const { app, sso } = useIssuer(ROLES);

  const token = async (group: string, iat: number): Promise<request.Test> =>
    request(app.url)
      .get(ME)
      .set(
        'Authorization',
        `Bearer ${await sso.issuer.accessToken({ ...sso.issuer.state.person, groups: [group], iat })}`,
      );
  const now = (): number => Math.floor(Date.now() / 1000);
  const logOut = async (claims: Record<string, unknown>): Promise<void> => {
    const form = { logout_token: await sso.issuer.logoutToken(claims) };
    await request(app.url).post('/auth/backchannel-logout').type('form').send(form).expect(200);
  };

  describe('an access token', () => {
    const roleOf = async (): Promise<{ is_admin: boolean; reads_only: boolean } | undefined> => {
      const rows = await app.dataSource.query<{ is_admin: boolean; reads_only: boolean }[]>(
        'SELECT is_admin, reads_only FROM users WHERE email = $1',
        [`p${sso.people}@example.com`],
      );
      return rows[0];
    };

    it.each([
      ['ops', 'readers', { is_admin: false, reads_only: true }],
      ['readers', 'ops', { is_admin: true, reads_only: false }],
    ])('of %s does not take back what a newer one of %s has said', async (older, newer, role) => {
      const at = now();
      expect((await token(older, at - 60)).status).toBe(200);
      expect((await token(newer, at)).status).toBe(200);
      expect((await token(older, at - 59)).status).toBe(200);

      expect(await roleOf()).toEqual(role);
      expect((await token(older, at + 1)).status).toBe(200);
      expect(await roleOf()).not.toEqual(role);
    });

    it('of a new person is no deadlock with an administrator who adds a user of that address', async () => {
      const { begun } = await app.dataSource.transaction(async (manager) => {
        await manager.query('SELECT FROM users WHERE is_admin ORDER BY id FOR UPDATE');
        const asked = token('ops', now());
        await untilBlocked(app.dataSource);
        const email = `p${sso.people}@example.com`;
        await manager.query('INSERT INTO users (id, email) VALUES (gen_random_uuid(), $1)', [email]);
        return { begun: asked };
      });

      expect((await begun).body.code).toBe('address_taken');
    });

    it('that says the same again counts as news, too', async () => {
      const at = now();
      await token('dev', at - 60);
      await token('dev', at);
      await token('ops', at - 30);

      expect(await roleOf()).toEqual({ is_admin: false, reads_only: false });
    });

    it('of an administrator lets nobody in whom a newer one gives no role, and their keys administer nothing', async () => {
      const at = now();
      const older = await sso.issuer.accessToken({
        ...sso.issuer.state.person,
        groups: ['ops'],
        iat: at - 60,
      });
      const { body } = await request(app.url)
        .post(KEYS)
        .set('Authorization', `Bearer ${older}`)
        .send({ name: 'mine', scopes: ['read', 'admin'] })
        .expect(201);
      const { status, body: refused } = await token('others', at);
      expect([status, refused.code]).toEqual([403, 'no_role']);

      expect((await token('ops', at - 59)).body.code).toBe('no_role');
      await app.as(body.key).get(USERS).expect(403);
      expect((await token('ops', at + 1)).status).toBe(200);
    });
  });

  it('of two administrators whom the map demotes at once, one stays', async () => {
    const person = (name: string): void => {
      sso.issuer.state.person = { sub: `${name}-${sso.people}`, email: `${name}${sso.people}@example.com` };
    };
    const at = now();
    for (const name of ['ada', 'bob']) {
      person(name);
      expect((await token('ops', at - 60)).status).toBe(200);
    }
    await app.dataSource.query("UPDATE users SET is_admin = false WHERE email !~ '^(ada|bob)[0-9]+@'");
    const demoted = await app.dataSource.transaction(async (manager) => {
      await manager.query('SELECT FROM users WHERE is_admin ORDER BY id FOR UPDATE');
      const both = ['ada', 'bob'].map(async (name) => {
        person(name);
        return token('dev', at);
      });
      await untilBlocked(app.dataSource, 2);
      return both;
    });
    expect((await Promise.all(demoted)).map(({ status }) => status)).toEqual([200, 200]);

    const rows = await app.dataSource.query<unknown[]>('SELECT FROM users WHERE is_admin');
    expect(rows).toHaveLength(1);
  });

  describe('a logout of the issuer', () => {
    const named: [string, () => Record<string, unknown>][] = [
      ['a sign-in', () => ({ sub: undefined, sid: `sid-${sso.people}` })],
      ['a person', () => ({ sub: `sub-${sso.people}` })],
      ['a sign-in of a person', () => ({ sub: `sub-${sso.people}`, sid: `sid-${sso.people}` })],
    ];

    it.each(named)(
      'that names %s ends the keys of a browser that had signed out before',
      async (_what, claims) => {
        const who = new SignInBrowser(app.url);
        await who.signIn();
        const made = await request(app.url)
          .post(KEYS)
          .set(await who.headers())
          .send({ name: 'of the session', scopes: ['read', 'settings'] })
          .expect(201);
        const key = { 'X-Session-API-Key': String(made.body.key) };
        const { body: child } = await app.as({ headers: key }).post(KEYS, { name: 'of the key' }).expect(201);
        await request(app.url)
          .post('/auth/logout')
          .set(await who.headers())
          .expect(204);
        await logOut({ sub: `sub-${sso.people}`, sid: 'another' });
        await app.as({ headers: key }).get(KEYS).expect(200);

        await logOut(claims());
        await app.as({ headers: key }).get(KEYS).expect(401);
        await app.as(child.key).get(KEYS).expect(401);
      },
    );

    it.each(named)(
      'that names %s ends a sign-in that was about to become a session',
      async (_what, claims) => {
        await new SignInBrowser(app.url).signIn();
        const who = new SignInBrowser(app.url);
        const page = await app.dataSource.transaction(async (manager) => {
          await manager.query('SELECT FROM users WHERE email = $1 FOR UPDATE', [
            `p${sso.people}@example.com`,
          ]);
          const begun = who.signIn();
          await untilBlocked(app.dataSource);
          await logOut(claims());
          return { begun };
        });

        expect((await page.begun).status).toBe(401);
        expect(await who.user()).toBeNull();
        sso.issuer.state.sid = `later-${sso.people}`;
        sso.issuer.state.person['iat'] = now() + 2;
        await who.signIn();
        expect(await who.user()).not.toBeNull();
      },
    );

    it('leaves no time for a key that its session was about to make', async () => {
      const who = new SignInBrowser(app.url);
      await who.signIn();
      const headers = await who.headers();
      const made = await app.dataSource.transaction(async (manager) => {
        await manager.query('SELECT FROM users WHERE email = $1 FOR UPDATE', [`p${sso.people}@example.com`]);
        const asked = app
          .as({ headers })
          .post(KEYS, { name: 'late' })
          .then((answer) => answer);
        await untilBlocked(app.dataSource);
        await logOut({ sid: `sid-${sso.people}`, sub: `sub-${sso.people}` });
        return { asked };
      });

      expect((await made.asked).status).toBe(401);
    });
  });
});
