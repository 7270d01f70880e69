import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { OpenConnections } from '../../src/auth/open-connections.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import type { SignInBrowser } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useIssuer } from '../support/use-issuer.js';

type Headers = Record<string, string>;

const ME = '/api/v1/users/me';
const HOUR_MS = 3_600_000;

describe('who leaves is out on every replica, streams included,', () => {
  const { app, sso } = useIssuer({ OIDC_ROLE_MAP: 'dev=member' });
  const rows = new ConversationRows(app);
  let replica: TestApp;
  let apps: TestApp[];
  let who: SignInBrowser;
  let userId: string;
  /** The session, a key that it made, and one of a device that it let in. */
  let ways: Headers[];

  beforeAll(async () => {
    replica = await createTestApp(sso.issuer.environment, app.databaseUrl);
    apps = [app, replica];
    for (const { clock, app: nest } of apps) {
      // Else what replicas remember, and a look every five seconds, would hide that they are told of nothing.
      clock.stop();
      await nest.get(OpenConnections).beforeApplicationShutdown();
    }
  });
  afterAll(() => replica.close());

  beforeEach(async () => {
    sso.issuer.state.refreshTokens = [];
    who = sso.browser();
    await who.signIn();
    userId = (await who.user())?.id ?? '';
    const session = await who.headers();
    const { body: made } = await post('/api/v1/api-keys', { name: 'made' }, session).expect(201);
    const { body: device } = await post('/oauth/device/authorize', {}).expect(200);
    await post('/oauth/device/verify-authenticated', { user_code: device.user_code }, session).expect(200);
    const { body: given } = await post('/oauth/device/token', { device_code: device.device_code }).expect(
      200,
    );
    ways = [session, { 'X-Session-API-Key': made.key }, { 'X-Session-API-Key': given.access_token }];
  });

  const post = (path: string, body: object, headers: Headers = {}): request.Test =>
    app.as({ headers }).post(path, body);
  const statuses = async (at: TestApp, of: readonly Headers[]): Promise<number[]> =>
    Promise.all(of.map(async (headers) => (await request(at.url).get(ME).set(headers)).status));
  const logOut = async (claims: object): Promise<unknown> => {
    const token = await sso.issuer.logoutToken(claims as Record<string, unknown>);
    return request(app.url)
      .post('/auth/backchannel-logout')
      .type('form')
      .send({ logout_token: token })
      .expect(200);
  };

  it.each<[string, () => Promise<unknown>, isKeyBack: boolean]>([
    [
      'disabled by an administrator',
      async () => app.as(app.admin).post(`/api/v1/users/${userId}/disable`, {}).expect(200),
      true,
    ],
    ['logged out by the issuer: that sign-in', async () => logOut({ sid: `sid-${sso.people}` }), false],
    ['logged out by the issuer: the person', async () => logOut({ sub: `sub-${sso.people}` }), false],
    [
      'not renewed by the issuer',
      async () => {
        sso.issuer.state.refreshTokens = [];
        apps.forEach(({ clock }) => clock.advance(HOUR_MS));
        await who.user();
      },
      false,
    ],
  ])('%s', async (_how, leave, isKeyBack) => {
    const { hex } = await rows.conversation(userId, {}, FOLLOWED_ELSEWHERE);
    const stranger = await rows.conversation(app.user.id, {}, FOLLOWED_ELSEWHERE);
    const streamAt = async (at: TestApp, id: string, headers: Headers): Promise<EventSource> =>
      EventSource.connect(`${at.url}/api/v1/conversation/${id}/events/stream`, headers);
    const held = await Promise.all(apps.flatMap((at) => ways.map((way) => streamAt(at, hex, way))));
    const others = await Promise.all(apps.map((at) => streamAt(at, stranger.hex, app.user.headers)));
    expect([await statuses(app, ways), await statuses(replica, ways)]).toEqual(
      [ways, ways].map((all) => all.map(() => 200)),
    );

    await leave();
    await Promise.all(held.map((each) => each.untilEnded()));
    await until(async () => (await statuses(app, ways)).every((status) => status === 401));
    await until(async () => (await statuses(replica, ways)).every((status) => status === 401));
    expect(others.map(({ ended }) => ended)).toEqual([false, false]);
    others.forEach((each) => each.close());

    // The key, which was refused only for as long as its user is disabled.
    await app.as(app.admin).post(`/api/v1/users/${userId}/enable`, {}).expect(200);
    const expected = [401, isKeyBack ? 200 : 401, 401];
    await until(async () => (await statuses(app, ways)).join() === expected.join());
  });
});
