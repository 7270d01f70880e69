import { once } from 'node:events';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { WebSocket } from 'ws';
import { PersonsService } from '../../src/auth/oidc/persons.service.js';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { AutomationRepository } from '../../src/automations/definitions/automation.repository.js';
import { SCOPES, type Scope } from '../../src/common/scopes.js';
import { FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import { AuditClient } from '../support/audit-client.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { SignInBrowser } from '../support/sign-in-browser.js';
import { useIssuer } from '../support/use-issuer.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;
const ME = '/api/v1/users/me/identities';
const KEYS = '/api/v1/api-keys';
const ENDPOINTS = '/api/v1/webhook-endpoints';

describe('nobody gets more by the issuer than it says:', () => {
  const { app, sso } = useIssuer({ OIDC_ROLE_MAP: 'ops=admin,readers=viewer,dev=member' });
  const { browser } = sso;
  const signedIn = async (): Promise<SignInBrowser> => {
    const who = browser();
    expect((await who.signIn()).status).toBe(200);
    return who;
  };
  const keyOf = async (userId: string, scopes: Scope[]): Promise<{ key: string; id: string }> => {
    const wanted = { userId, name: 'limited', expiresAt: null, scopes };
    const { key, record } = await app.app.get(ApiKeysService).issue(wanted);
    return { key, id: record.id };
  };

  describe('a link', () => {
    it.each<[string, () => Promise<string>, string]>([
      ['of what reads', async () => (await keyOf(app.user.id, ['read'])).key, 'run'],
      ['of a device', async () => (await keyOf(app.user.id, ['read', 'run'])).key, 'settings'],
      ['of settings', async () => (await keyOf(app.user.id, ['settings'])).key, 'read'],
      [
        'of an administrator, for what is no administration',
        async () => (await keyOf(app.admin.id, ['read', 'run', 'settings'])).key,
        'admin',
      ],
    ])('is not begun by a key %s', async (_what, key, scope) => {
      const who = browser();
      const { status, body } = await who.beginLink(await key());

      expect([status, body.code, body.scope]).toEqual([403, 'insufficient_scope', scope]);
      expect(who.cookies.size).toBe(0);
    });

    it('is not begun by a key for some repositories, whatever it may there', async () => {
      const wanted = { userId: app.user.id, name: 'limited', expiresAt: null, scopes: [...SCOPES] };
      const { key } = await app.app
        .get(ApiKeysService)
        .issue({ ...wanted, repositories: ['github:octo/app'] });
      const { status, body } = await browser().beginLink(key);

      expect([status, body.code]).toEqual([403, 'outside_repositories']);
    });

    it('is not begun by a key of a service, as nobody signs in as one', async () => {
      const { body: service } = await app
        .as(app.admin)
        .post('/api/v1/users', { kind: 'service', email: `robot-${sso.people}@example.com` })
        .expect(201);
      const { key } = await keyOf(service.id, [...SCOPES]);

      expect((await browser().beginLink(key)).status).toBe(403);
    });

    it('is not ended by a key that has ended meanwhile', async () => {
      const user = await app.createUser();
      const who = browser();
      const { body } = await who.beginLink(user.key);
      const spare = await keyOf(user.id, [...SCOPES]);
      await app
        .as(user)
        .delete(`${KEYS}/${user.key.split('_')[1]}`)
        .expect(204);
      const page = await who.goOn(body.url);

      expect(page.status).toBe(401);
      expect(page.text).toContain('The key that was to link this sign-in has ended');
      const { body: links } = await app.as(spare.key).get(ME).expect(200);
      expect(links.items).toEqual([]);
    });

    it('stands in the audit with who made it, by which key, and with whom', async () => {
      const user = await app.createUser();
      const who = browser();
      await who.goOn((await who.beginLink(user.key)).body.url);
      const entries = await new AuditClient(app).find({ owner_user_id: user.id });

      expect(entries.find(({ action }) => action === 'user.link')).toMatchObject({
        actor: { kind: 'user', user_id: user.id, key_id: user.key.split('_')[1] },
        details: { issuer: sso.issuer.issuer, subject: `sub-${sso.people}` },
      });
    });

    describe('by a stolen key', () => {
      type Headers = Record<string, string>;
      let user: TestUser;
      let own: SignInBrowser;
      let thief: SignInBrowser;
      let stolen: string;

      const linked = async (by: string): Promise<SignInBrowser> => {
        Object.assign(sso.issuer.state.person, { sub: `of-${by}`, email: `${by.slice(4, 12)}@example.com` });
        const who = browser();
        await who.goOn((await who.beginLink(by)).body.url);
        return who;
      };
      const made = async (
        headers: Headers,
        path: string,
        body: object,
      ): Promise<{ id: string; key: string }> =>
        (await app.as({ headers }).post(path, body).set('Origin', app.url).expect(201)).body;
      const isRevoked = async (id: string): Promise<boolean> => {
        const { body } = await app.as(user).get(KEYS).expect(200);
        return body.find((each: { id: string }) => each.id === id).revoked_at !== null;
      };
      const isEnabled = async (id: string): Promise<boolean> =>
        (await app.as(user).get(`${ENDPOINTS}/${id}`).expect(200)).body.enabled;
      const revoke = async (): Promise<unknown> =>
        app.as(user).delete(`${KEYS}/${stolen}?made=pause`).expect(204);

      beforeEach(async () => {
        user = await app.createUser();
        own = await linked(user.key);
        const { id, key } = await keyOf(user.id, [...SCOPES]);
        stolen = id;
        const between = await made({ 'X-Session-API-Key': key }, KEYS, { name: 'between' });
        thief = await linked(between.key);
      });

      it('ends with it, and so does what was made by its sessions and its tokens', async () => {
        const key = await made(await thief.headers(), KEYS, { name: 'of the thief' });
        const endpoint = await made(await thief.headers(), ENDPOINTS, {
          url: 'https://ci.example.com/thief',
        });
        const { sub, email } = sso.issuer.state.person;
        const token = await sso.issuer.accessToken({ sub, email, groups: ['dev'] });
        const bearer = { Authorization: `Bearer ${token}` };
        const byToken = await made(bearer, KEYS, { name: 'of the thief' });
        const further = await made(bearer, ENDPOINTS, { url: 'https://ci.example.com/token' });
        // Keys outlast sessions.
        await app.dataSource.query(
          'DELETE FROM sessions WHERE id = (SELECT made_by_key FROM api_keys WHERE id = $1)',
          [key.id],
        );
        const again = browser();
        await again.signIn();
        expect((await again.user())?.id).toBe(user.id);
        await revoke();

        expect([await again.user(), (await own.user())?.id]).toEqual([null, user.id]);
        const { body: links } = await app.as(user).get(ME).expect(200);
        expect(links.items).toHaveLength(1);
        expect([await isRevoked(key.id), await isEnabled(endpoint.id)]).toEqual([true, false]);
        expect([await isRevoked(byToken.id), await isEnabled(further.id)]).toEqual([true, false]);
        const entries = await new AuditClient(app).find({ owner_user_id: user.id });
        expect(entries.filter(({ action }) => action === 'user.unlink')).toHaveLength(1);
      });

      it('may be gone by then, with what its keys have made', async () => {
        const key = await made(await thief.headers(), KEYS, { name: 'of the thief' });
        const endpoint = await made({ 'X-Session-API-Key': key.key }, ENDPOINTS, {
          url: 'https://ci.example.com/thief',
        });
        const { body: links } = await app.as(user).get(ME).expect(200);
        const [link] = links.items.filter(({ subject }: { subject: string }) => !subject.includes(user.key));
        await app.as(user).delete(`${ME}/${link.id}`).expect(204);
        await revoke();

        expect([await isRevoked(key.id), await isEnabled(endpoint.id)]).toEqual([true, false]);
      });
    });
  });

  it('a person with 10,000 groups and odd texts in the token signs in', async () => {
    const groups = Array.from({ length: 10_000 }, (_, index) => `a-group-with-a-long-name-${index}`);
    Object.assign(sso.issuer.state.person, { name: 'Eve\0\n\u202e\ud800', groups: [...groups, 'dev'] });
    const who = await signedIn();

    expect(await who.user()).toMatchObject({
      name: 'Eve\ufffd  \ufffd',
      scopes: [...SCOPES],
      is_admin: false,
    });
  });

  it('who came in by a sign-in does not leave it for a key of their own', async () => {
    const who = await signedIn();
    const headers = await who.headers();
    const { body } = await app.as({ headers }).post(KEYS, { name: 'for ever' }).expect(201);
    const [own] = (await who.get(ME)).body.items;
    await app.as(body.key).delete(`${ME}/${own.id}`).expect(409);

    // Nor by way of a second one.
    sso.issuer.state.person['sub'] = `second-${sso.people}`;
    const other = browser();
    await other.goOn((await other.beginLink(body.key)).body.url);
    expect((await other.get(ME)).body.items).toHaveLength(2);
    await app.as(body.key).delete(`${ME}/${own.id}`).expect(409);
  });

  describe('a renewal', () => {
    const renewal = async (who: SignInBrowser): Promise<void> => {
      const asked = (): number =>
        sso.issuer.server.requests.filter(({ path }) => path.endsWith('/token')).length;
      const before = asked();
      app.clock.advance(HOUR_MS);
      await who.user();
      await until(() => asked() > before);
    };

    it('leaves a viewer one whose groups stand at the userinfo endpoint alone', async () => {
      const { person } = sso.issuer.state;
      Object.assign(sso.issuer.state, {
        person: { sub: person['sub'] },
        userInfo: { email: `p${sso.people}@example.com`, groups: ['readers'] },
        renewed: { sub: person['sub'] },
        refreshTokens: [],
      });
      const who = await signedIn();
      const atUserInfo = (): number =>
        sso.issuer.server.requests.filter(({ path }) => path.endsWith('/userinfo')).length;
      const before = atUserInfo();
      const heard = jest.spyOn(app.app.get(PersonsService), 'signIn');
      await renewal(who);
      // The next one takes the refresh token that this one stores.
      await until(() => heard.mock.results.length > 0);
      await heard.mock.results[0]?.value;
      heard.mockRestore();
      expect(atUserInfo()).toBeGreaterThan(before);
      sso.issuer.state.userInfo['groups'] = ['ops'];
      await renewal(who);

      await until(async () => (await who.user())?.is_admin === true);
      const roles = await app.dataSource.query<{ role: string }[]>(
        "SELECT details ->> 'role' AS role FROM audit_entries WHERE action = 'user.set_role' AND owner_user_id = $1 ORDER BY at",
        [(await who.user())?.id],
      );
      expect(roles.map(({ role }) => role)).toEqual(['viewer', 'admin']);
    });

    it.each([
      [500, { error: 'server_error' }],
      [400, { error: 'temporarily_unavailable' }],
      [429, { error: 'too_many_requests' }],
      [401, { error: 'invalid_client' }],
      [502, 'Bad Gateway'],
    ])('that the issuer answers %i %j to ends neither sessions nor keys', async (status, body) => {
      sso.issuer.state.refreshTokens = [];
      const who = await signedIn();
      const id = (who.cookies.get('slipway_session') ?? '').slice(0, 12);
      const { body: made } = await request(app.url)
        .post(KEYS)
        .set(await who.headers())
        .send({ name: 'of the session' })
        .expect(201);
      sso.issuer.server.injectFault(
        { kind: 'status', status, body },
        { match: ({ path }) => path.endsWith('/token') },
      );
      await renewal(who);
      // It had its turn just now, and is asked again five minutes later, as if the turn had been long ago.
      await until(async () => {
        const rows = await app.dataSource.query<{ renewed_at: Date }[]>(
          'SELECT renewed_at FROM sessions WHERE id = $1',
          [id],
        );
        return rows.every(({ renewed_at: at }) => at.getTime() < app.clock.now() - HOUR_MS / 2);
      });

      expect(await who.user()).not.toBeNull();
      await app.as(made.key).get(KEYS).expect(200);
    });
  });

  it('who only reads from now on: what was theirs does nothing, and its sockets end', async () => {
    const token = async (group: string): Promise<Record<string, string>> => {
      const claims = { ...sso.issuer.state.person, groups: [group] };
      return { Authorization: `Bearer ${await sso.issuer.accessToken(claims)}` };
    };
    const member = await token('dev');
    const automation = {
      name: 'on push',
      prompt: 'Look.',
      trigger: { type: 'event', source: 'github', on: 'push' },
    };
    await app.as({ headers: member }).post('/api/automation/v1/preset/prompt', automation).expect(201);
    const { body } = await app.as(app.admin).get(`/api/v1/users?email__eq=p${sso.people}@example.com`);
    const id: string = body.items[0].id;
    const agent = await RawServer.start(
      (_incoming, response) => void response.end('{}'),
      (socket) => socket.send('open'),
    );
    const sandbox = await new ConversationRows(app).sandbox(id, {
      key: 'sandbox-key',
      address: agent.origin,
    });
    const address = `${app.url.replace('http', 'ws')}/api/v1/sandboxes/${sandbox.id}/agent-server/sockets?session_api_key=sandbox-key`;
    const opened = new WebSocket(address);
    await once(opened, 'message');
    const closed = once(opened, 'close');

    await request(app.url)
      .get(ME)
      .set(await token('readers'))
      .expect(200);
    await closed;
    expect(String(await once(new WebSocket(address), 'error'))).toContain('401');
    const automations = app.app.get(AutomationRepository);
    expect(await automations.ofSource(id, 'github')).toEqual([]);
    await request(app.url)
      .get(ME)
      .set(await token('dev'))
      .expect(200);
    expect(await automations.ofSource(id, 'github')).toHaveLength(1);
    await agent.close();
  });
});

describe('an issuer that is away', () => {
  it('is asked once in ten seconds, however many strangers begin to sign in', async () => {
    const issuer = await FakeOidcIssuer.start();
    issuer.server.injectFault({ kind: 'status', status: 503 });
    const app = await createTestApp(issuer.environment);
    app.clock.stop();
    const asked = (): number => issuer.server.requests.length;
    const begin = async (): Promise<number> => (await app.as().get('/auth/login').redirects(0)).status;
    expect(await begin()).toBe(503);
    const before = asked();
    for (let stranger = 0; stranger < 5; stranger += 1) {
      expect(await begin()).toBe(503);
    }
    expect(asked()).toBe(before);

    issuer.server.clearFaults();
    app.clock.advance(10_000);
    expect(await begin()).toBe(302);
    await app.close();
    await issuer.server.close();
  });
});

describe('people who are told apart by another claim than sub', () => {
  const { app, sso } = useIssuer({ OIDC_USER_CLAIM: 'oid' });

  const logOut = async (claims: Record<string, unknown>): Promise<number> => {
    const token = await sso.issuer.logoutToken(claims);
    const form = { logout_token: token };
    return (await request(app.url).post('/auth/backchannel-logout').type('form').send(form)).status;
  };

  it.each<[string, string, Record<string, unknown>, number, boolean]>([
    ['that sign-in, beside a subject', 'one', { sub: 'pairwise', sid: 'sid-one' }, 200, true],
    ['that claim', 'two', { sub: 'pairwise', oid: 'two' }, 200, true],
    ['a subject alone, which is refused', 'three', { sub: 'pairwise' }, 400, false],
  ])('are logged out by %s', async (_what, oid, claims, status, isOut) => {
    sso.issuer.state.person = { sub: 'pairwise', oid, email: `${oid}@example.com` };
    sso.issuer.state.sid = `sid-${oid}`;
    const who = sso.browser();
    await who.signIn();
    expect(await who.user()).not.toBeNull();

    expect(await logOut(claims)).toBe(status);
    expect((await who.user()) === null).toBe(isOut);
  });
});
