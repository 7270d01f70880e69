import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { OpenConnections } from '../../src/auth/open-connections.js';
import { StandIns } from '../../src/git-providers/tokens/stand-ins.js';
import { FakeOidcIssuer } from '../fakes/fake-oidc-issuer.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { EventSource } from '../support/event-source.js';
import { githubApp } from '../support/github-app.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useIssuer } from '../support/use-issuer.js';

const ME = '/api/v1/users/me/identities';
const SETTINGS = '/api/settings';
const HOUR = 3_600;

describe('tokens of the issuer', () => {
  const { app, sso } = useIssuer({
    OIDC_ROLE_MAP: 'ops=admin,readers=viewer,dev=member',
    ...githubApp().environment,
    GITHUB_APP_FOR: 'dev=octo/*,ops=octo/infra',
    OIDC_GITHUB_LOGIN_CLAIM: 'accounts.github',
  });

  const someone = (claims: object = {}): Record<string, unknown> => ({
    sub: `person-${sso.people}`,
    email: `person-${sso.people}@example.com`,
    groups: ['dev'],
    ...claims,
  });
  const ask = (token: string, path = ME): request.Test =>
    request(app.url).get(path).set('Authorization', `Bearer ${token}`);
  const asked = async (claims: object = {}, path = ME): Promise<request.Response> =>
    ask(await sso.issuer.accessToken(someone(claims)), path);
  const now = (): number => Math.floor(app.clock.now() / 1000);

  it('make a user at first sight, once, however many come at a time', async () => {
    const token = await sso.issuer.accessToken(someone());
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(token)));

    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(new Set(answers.map(({ body }) => body.items[0].id)).size).toBe(1);
    const { body } = await app.as(app.admin).get(`/api/v1/users?email__eq=person-${sso.people}@example.com`);
    expect(body.items).toMatchObject([{ is_admin: false }]);
  });

  it('are the same user with another address, and never another user with theirs', async () => {
    const first = await asked();
    const moved = await asked({ email: 'ada@new.example.com' });
    const thief = await ask(await sso.issuer.accessToken(someone({ sub: 'thief' })));

    expect(moved.body.items[0].id).toBe(first.body.items[0].id);
    expect([thief.status, thief.body.code]).toEqual([409, 'address_taken']);
    expect(thief.body.detail).toContain('slipway users link');
  });

  it.each<[string, (now: number) => object, string]>([
    ['has expired', (at) => ({ exp: at - 60 }), 'expired'],
    ['is not valid yet', (at) => ({ nbf: at + HOUR }), 'nbf'],
    ['has no end', () => ({ exp: undefined }), 'exp'],
    ['is for another service', () => ({ aud: 'other' }), 'aud'],
    ['has no subject', () => ({ sub: undefined }), 'sub'],
    ['is an ID token', () => ({ nonce: 'n' }), 'no access token'],
    ['is an ID token of Keycloak', () => ({ typ: 'ID' }), 'no access token'],
    ['ends sessions', () => ({ events: {} }), 'no access token'],
  ])('are refused where one %s', async (_what, claims, reason) => {
    const { status, body } = await asked(claims(now()));

    expect([status, body.code]).toEqual([401, 'unauthorized']);
    expect(body.detail).toContain(reason);
  });

  it('are for this service where it is one of several audiences', async () => {
    expect((await asked({ aud: ['other', 'slipway-api'] })).status).toBe(200);
  });

  it('are nothing at all where they are of another issuer, as proxies add them', async () => {
    const other = await FakeOidcIssuer.start();
    const token = await other.accessToken(someone());
    await other.server.close();

    expect((await ask(token)).body.detail).toContain('X-Session-API-Key');
    await ask(token).set(app.user.headers).expect(200);
  });

  it.each(['ES256', 'EdDSA', 'RS256'])('hold after the issuer has changed to a key of %s', async (alg) => {
    const old = await sso.issuer.accessToken(someone());
    await ask(old).expect(200);
    await sso.issuer.rotate(alg);
    app.clock.advance(10_001);

    await ask(await sso.issuer.accessToken(someone())).expect(200);
    expect((await ask(old)).status).toBe(401);
  });

  it('with unknown keys make the service ask for keys once in ten seconds', async () => {
    await asked();
    app.clock.stop();
    app.clock.advance(10_001);
    const before = sso.issuer.keyRequests;
    const unknown = async (): Promise<string> =>
      sso.issuer.accessToken(someone(), { kid: `made-up-${Math.random()}` });
    for (const token of [await unknown(), await unknown(), await unknown()]) {
      await ask(token).expect(401);
    }

    app.clock.resume();

    expect(sso.issuer.keyRequests - before).toBe(1);
  });

  it('go on while the issuer is away, also those of newcomers', async () => {
    await asked();
    app.clock.advance(600_000);
    sso.issuer.server.injectFault({ kind: 'reset' });
    const newcomer = someone({ sub: `newcomer-${sso.people}`, email: `newcomer-${sso.people}@example.com` });

    await ask(await sso.issuer.accessToken(newcomer)).expect(200);
    await ask(await sso.issuer.accessToken(someone(), { kid: 'unknown' })).expect(503);
    sso.issuer.server.clearFaults();
    app.clock.advance(600_000);
    await ask(await sso.issuer.accessToken(newcomer)).expect(200);
  });

  describe('give the role', () => {
    const may = async (claims: object): Promise<number[]> => {
      const token = await sso.issuer.accessToken(someone(claims));
      const [read, change, administer] = [
        await ask(token),
        await request(app.url)
          .post(SETTINGS)
          .set('Authorization', `Bearer ${token}`)
          .send({ language: 'en' }),
        await ask(token, '/api/v1/users'),
      ];
      return [read.status, change.status, administer.status];
    };

    it('of the groups, anew with each token', async () => {
      expect(await may({ groups: ['dev'] })).toEqual([200, 200, 403]);
      expect(await may({ groups: ['readers'] })).toEqual([200, 403, 403]);
      expect(await may({ groups: ['dev', 'ops'] })).toEqual([200, 200, 200]);
      expect(await may({ groups: [] })).toEqual([200, 200, 403]);
    });

    it('but not that of an owner once more, which it has taken', async () => {
      await asked({ groups: ['ops'] });
      const address = `person-${sso.people}@example.com`;
      await app.dataSource.query('UPDATE users SET is_owner = true WHERE email = $1', [address]);
      expect(await may({ groups: [] })).toEqual([200, 200, 403]);
      expect(await may({ groups: ['ops'] })).toEqual([200, 200, 200]);

      const found = await app.dataSource.query('SELECT is_admin, is_owner FROM users WHERE email = $1', [
        address,
      ]);
      expect(found).toEqual([{ is_admin: true, is_owner: false }]);
    });

    it('alone: an administrator does not change it, but that of other users', async () => {
      await asked();
      const found = await app.as(app.admin).get(`/api/v1/users?email__eq=person-${sso.people}@example.com`);
      const patch = (id: string): request.Test =>
        app.as(app.admin).patch(`/api/v1/users/${id}`, { is_admin: true });
      const { body } = await patch(found.body.items[0].id).expect(409);
      expect(body.detail).toContain('OIDC_ROLE_MAP');

      await patch(app.user.id).expect(200);
      await app.as(app.admin).patch(`/api/v1/users/${app.user.id}`, { is_admin: false }).expect(200);
    });

    it('to nobody at first sight whose groups were left out', async () => {
      const { status, body } = await asked({ groups: undefined, hasgroups: true });

      expect([status, body.code]).toEqual([403, 'groups_overage']);
    });
  });

  describe('of programs', () => {
    const program = (name: string, claims: object = {}): object => ({
      sub: name,
      client_id: name,
      email: undefined,
      groups: undefined,
      ...claims,
    });

    it('get no role by default, but one of the map', async () => {
      const refused = await asked(program(`ci-${sso.people}`));
      expect([refused.status, refused.body.code]).toEqual([403, 'no_role']);
      expect((await asked(program(`ci-${sso.people}`))).status).toBe(403);

      expect((await asked(program(`ci-${sso.people}`, { groups: ['dev'] }))).status).toBe(200);
    });

    it('are the service user of that name that an administrator made', async () => {
      await app
        .as(app.admin)
        .post('/api/v1/users', { kind: 'service', name: `ci-${sso.people}` })
        .expect(201);

      expect((await asked(program(`ci-${sso.people}`))).status).toBe(200);
    });
  });

  describe('of leavers', () => {
    const idOf = async (): Promise<string> => {
      const { body } = await app
        .as(app.admin)
        .get(`/api/v1/users?email__eq=person-${sso.people}@example.com`);
      return body.items[0].id;
    };

    it('are refused after a removal, until an administrator lets the person in again', async () => {
      await asked();
      const id = await idOf();
      await app.as(app.admin).delete(`/api/v1/users/${id}`).expect(204);
      const removed = await asked();
      expect([removed.status, removed.body.code]).toEqual([403, 'forbidden']);
      expect(removed.body.detail).toContain('removed');

      await app.as(app.user).post(`/api/v1/users/${id}/restore`).expect(403);
      await app.as(app.admin).post(`/api/v1/users/${id}/restore`).expect(204);
      await app.as(app.admin).post(`/api/v1/users/${id}/restore`).expect(404);
      expect((await asked()).status).toBe(200);
      expect(await idOf()).not.toBe(id);
      const entries = await app.dataSource.query<object[]>(
        "SELECT actor_user_id FROM audit_entries WHERE action = 'user.restore' AND resource_id = $1",
        [id],
      );
      expect(entries).toEqual([{ actor_user_id: app.admin.id }]);
    });

    it('are refused while the user is disabled', async () => {
      await asked();
      const id = await idOf();
      await app.as(app.admin).post(`/api/v1/users/${id}/disable`).expect(200);
      expect((await asked()).status).toBe(403);

      await app.as(app.admin).post(`/api/v1/users/${id}/enable`).expect(200);
      expect((await asked()).status).toBe(200);
    });
  });

  describe('say of a GitHub App what', () => {
    const seen = async (sub: string, claims: Record<string, unknown>): Promise<string> => {
      const token = await sso.issuer.accessToken({ sub, email: `${sub}@example.com`, ...claims });
      const { body } = await ask(token, '/api/v1/users/me').expect(200);
      return body.id as string;
    };
    const standIn = async (userId: string): Promise<unknown> =>
      await app.app.get(StandIns, { strict: false }).of(userId);

    it('counts as long as no newer one says otherwise, and is all that is kept of its groups', async () => {
      const at = now();
      const github = { accounts: { github: 'octocat' } };
      const id = await seen('ada', { groups: ['dev', 'payroll'], iat: at - 60, ...github });
      expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/*'] });
      const [row] = await app.dataSource.query<{ git: unknown }[]>(
        'SELECT git FROM user_identities WHERE user_id = $1',
        [id],
      );
      const issued = new Date((at - 60) * 1000).toISOString();
      expect(row?.git).toEqual({ login: 'octocat', groups: ['dev'], issued_at: issued });

      await seen('ada', { groups: ['ops'], iat: at, ...github });
      expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/infra'] });
      await seen('ada', { groups: ['dev'], iat: at - 30, ...github });
      expect(await standIn(id)).toEqual({ login: 'octocat', repositories: ['octo/infra'] });
      await seen('ada', { groups: [], iat: at + 1 });
      expect(await standIn(id)).toEqual({ login: null, repositories: [] });
    });

    it('is what it was where a token leaves the groups out for their number, and no login that cannot be one', async () => {
      const at = now();
      const id = await seen('bob', { groups: ['dev'], iat: at - 60, accounts: { github: 'a b' } });
      expect(await standIn(id)).toEqual({ login: null, repositories: ['octo/*'] });
      await seen('bob', { groups: undefined, hasgroups: true, iat: at });
      expect(await standIn(id)).toEqual({ login: null, repositories: ['octo/*'] });
    });

    it('is nothing any more of a user who was removed', async () => {
      const id = await seen('eve', { groups: ['dev'], iat: now(), accounts: { github: 'eve-cat' } });
      await app.as(app.admin).delete(`/api/v1/users/${id}`).expect(204);
      const rows = await app.dataSource.query('SELECT * FROM user_identities WHERE user_id = $1', [id]);
      expect(rows).toMatchObject([{ groups: null, git: null }]);
      expect(JSON.stringify(rows)).not.toMatch(/eve-cat|dev/);
    });
  });

  it.each<[string, (userId: string, exp: number) => Promise<unknown>]>([
    [
      'when it ends',
      async (_userId, exp) => {
        app.clock.advance(exp * 1000 - app.clock.now());
        await app.app.get(OpenConnections).now();
      },
    ],
    [
      'when its user is disabled',
      async (userId) => app.as(app.admin).post(`/api/v1/users/${userId}/disable`).expect(200),
    ],
  ])('close a stream that was opened with one %s', async (_when, end) => {
    const exp = now() + HOUR;
    const token = await sso.issuer.accessToken(someone({ exp }));
    const [identity] = (await ask(token).expect(200)).body.items;
    const [{ userId }] = await app.dataSource.query<[{ userId: string }]>(
      'SELECT user_id AS "userId" FROM user_identities WHERE id = $1',
      [identity.id],
    );
    const { hex } = await new ConversationRows(app).conversation(userId, {}, FOLLOWED_ELSEWHERE);
    const stream = await EventSource.connect(`${app.url}/api/v1/conversation/${hex}/events/stream`, {
      Authorization: `Bearer ${token}`,
    });
    expect(stream.response.statusCode).toBe(200);
    await app.app.get(OpenConnections).now();
    expect((await ask(token)).status).toBe(200);
    expect(stream.ended).toBe(false);
    await end(userId, exp);

    await until(() => stream.ended);
  });

  // The last one, since it moves the clock beyond the end of the other tokens.
  it('keep the keys of a person alive, which stop, with their browsers, when the person is not seen for a month', async () => {
    const token = await sso.issuer.accessToken(someone({ exp: now() + 1_000 * HOUR }));
    const { body } = await request(app.url)
      .post('/api/v1/api-keys')
      .set('Authorization', `Bearer ${token}`)
      .send({ name: 'mine' })
      .expect(201);
    const withKey = (): request.Test => app.as(body.key).get('/api/v1/api-keys');
    const [shown] = (await withKey().expect(200)).body;
    expect(Date.parse(shown.expires_at) - app.clock.now()).toBeGreaterThan(29 * 24 * HOUR * 1000);

    app.clock.advance((30 * 24 - 1) * HOUR * 1000);
    const session = await sessionOf(app.url, body.key);
    const inBrowser = (): request.Test => app.as({ headers: session }).get('/api/v1/api-keys');
    await inBrowser().expect(200);
    app.clock.advance(HOUR * 1000);
    await withKey().expect(401);
    await inBrowser().expect(401);
    await ask(token).expect(200);
    await withKey().expect(200);
  });
});
