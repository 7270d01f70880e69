import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { AuditClient } from '../support/audit-client.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { useTestApp } from '../support/use-test-app.js';

const MINUTE_MS = 60_000;
const FORM = 'application/x-www-form-urlencoded';

interface Codes {
  device_code: string;
  user_code: string;
}

describe('the login of a device', () => {
  let app: TestApp;
  let replica: TestApp;
  let user: TestUser;

  beforeAll(async () => {
    app = await createTestApp({ RATE_LIMIT_PER_MINUTE: '0' });
    replica = await createTestApp({ RATE_LIMIT_PER_MINUTE: '0', DEVICE_KEY_DAYS: '0' }, app.databaseUrl);
  });

  afterAll(async () => {
    await replica.close();
    await app.close();
  });

  beforeEach(async () => {
    // What waits counts against the one address that tests have, and lookups against a user.
    await app.dataSource.query('DELETE FROM device_logins');
    user = await app.createUser();
  });

  /** As the command line of OpenHands 1.16.0 sends it. */
  const ask = (at = app): request.Test =>
    request(at.url).post('/oauth/device/authorize').set('User-Agent', 'python-httpx/0.28.1').send({});
  const begin = async (): Promise<Codes> => (await ask().expect(200)).body as Codes;
  const poll = (code: string, at = app): request.Test =>
    request(at.url).post('/oauth/device/token').type(FORM).send(`device_code=${code}`);
  const show = (code: string, { headers }: TestUser = user): request.Test =>
    app.as({ headers }).get('/oauth/device/login').query({ user_code: code });
  const decide = (
    code: string,
    headers: Record<string, string> = user.headers,
    more: object = {},
    at = app,
  ): request.Test =>
    request(at.url)
      .post('/oauth/device/verify-authenticated')
      .set(headers)
      .type(FORM)
      .send({ user_code: code, ...more });
  const keysOf = async ({
    headers,
  }: TestUser): Promise<{ id: string; name: string; revoked_at: unknown }[]> =>
    (await app.as({ headers }).get('/api/v1/api-keys').expect(200)).body;
  const advance = (ms: number): void => [app, replica].forEach(({ clock }) => clock.advance(ms));
  const refusedWith = (error: string): object =>
    expect.objectContaining({ error, code: error, error_description: expect.any(String) });

  it('gives a key of the person who approved it, once, also across replicas, and keeps neither code in clear', async () => {
    const began = await ask().expect(200);
    const { device_code: device, user_code: code } = began.body as Codes;
    const page = `http://127.0.0.1:${new URL(app.url).port}/oauth/device/verify`;
    expect(began.body).toEqual({
      device_code: expect.stringMatching(/^[0-9A-Za-z]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${code}`,
      expires_in: 600,
      interval: 5,
    });
    expect(began.headers['cache-control']).toBe('no-store');
    const [{ row }] = await app.dataSource.query<[{ row: string }]>(
      "SELECT encode(device_code_hash, 'escape') || d::text AS row FROM device_logins d",
    );
    expect([row.includes(device), row.includes(code)]).toEqual([false, false]);
    expect((await poll(device, replica).expect(400)).body).toEqual(refusedWith('authorization_pending'));
    expect((await show(` ${code.toLowerCase().replace('-', ' ')}`).expect(200)).body).toEqual({
      user_code: code,
      client: 'python-httpx/0.28.1',
      address: '127.0.0.1',
      created_at: expect.stringMatching(/Z$/),
    });

    await decide(code).expect(200, { success: true });
    const { body } = await poll(device, replica).expect(200);

    expect(body).toEqual({
      access_token: expect.stringMatching(/^slw_/),
      token_type: 'Bearer',
      expires_in: expect.any(Number),
    });
    expect(Math.round(body.expires_in / 86_400)).toBe(90);
    const me = await app.as().get('/api/v1/users/me').auth(body.access_token, { type: 'bearer' });
    expect(me.body.id).toBe(user.id);
    const [key] = await keysOf(user);
    expect(key).toMatchObject({ name: 'python-httpx/0.28.1 at 127.0.0.1' });
    expect(body.access_token).toContain(`slw_${key?.id}_`);
    expect(await new AuditClient(app).find({ action: 'api_key.create', resource_id: key?.id ?? '' })).toEqual(
      [
        expect.objectContaining({
          owner_user_id: user.id,
          details: { name: key?.name, scopes: ['read', 'run'] },
        }),
      ],
    );
    expect((await poll(device).expect(400)).body).toEqual(refusedWith('invalid_grant'));
  });

  it.each([
    ['no device code', {}, 'invalid_request'],
    ['an unknown device code', { device_code: 'x'.repeat(43) }, 'invalid_grant'],
    ['another grant', { device_code: 'x', grant_type: 'authorization_code' }, 'unsupported_grant_type'],
  ])('refuses %s, in a form and in JSON', async (_what, body, error) => {
    for (const type of [FORM, 'application/json']) {
      const refused = await request(app.url).post('/oauth/device/token').type(type).send(body).expect(400);
      expect(refused.body).toEqual(refusedWith(error));
    }
  });

  it('tells a device that asks too often to slow down, by up to half a minute', async () => {
    app.clock.stop();
    const { device_code: device } = await begin();
    const intervals: unknown[] = [];
    for (let polls = 0; polls < 8; polls += 1) {
      intervals.push((await poll(device).expect(400)).body.interval);
    }
    expect(intervals).toEqual([5, 10, 15, 20, 25, 30, 30, 30]);
    advance(30_000);
    expect((await poll(device)).body).toEqual(refusedWith('authorization_pending'));
    app.clock.resume();
  });

  it('ends after ten minutes, for the device and for the person', async () => {
    const { device_code: device, user_code: code } = await begin();
    advance(10 * MINUTE_MS);

    expect((await poll(device).expect(400)).body).toEqual(refusedWith('expired_token'));
    await show(code).expect(404);
    await decide(code).expect(404);
    expect(await keysOf(user)).toHaveLength(1);
  });

  it('refuses the device when the person does', async () => {
    const { device_code: device, user_code: code } = await begin();
    await decide(code, user.headers, { approve: 'false' }).expect(200);

    expect((await poll(device).expect(400)).body).toEqual(refusedWith('access_denied'));
    await decide(code).expect(404);
  });

  it('makes one key when many approve at once, and when many fetch it', async () => {
    const { device_code: device, user_code: code } = await begin();
    const other = await app.createUser();
    const approved = await Promise.all(
      [user, other, user, other].map(async ({ headers }, index) =>
        decide(code, headers, {}, index < 2 ? app : replica),
      ),
    );
    expect(approved.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404, 404, 404]);
    expect((await keysOf(user)).length + (await keysOf(other)).length).toBe(3);

    const fetched = await Promise.all([app, replica, app, replica].map(async (at) => poll(device, at)));
    expect(fetched.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400, 400, 400]);
  });

  it('gives no key that was revoked before it was fetched', async () => {
    const { device_code: device, user_code: code } = await begin();
    await decide(code).expect(200);
    const [key] = await keysOf(user);
    await app.as(user).delete(`/api/v1/api-keys/${key?.id}`).expect(204);

    expect((await poll(device).expect(400)).body).toEqual(refusedWith('access_denied'));
  });

  it('revokes a key that nobody fetched', async () => {
    await decide((await begin()).user_code).expect(200);
    advance(20 * MINUTE_MS);
    await begin();

    expect((await keysOf(user))[0]).toMatchObject({ revoked_at: expect.any(String) });
  });

  it('ends keys with that by which they were approved, and not at all where it is so configured', async () => {
    const end = new Date(app.clock.now() + 86_400_000).toISOString();
    const { body: temporary } = await app.as(user).post('/api/v1/api-keys', { name: 'a', expires_at: end });
    const [soon, never] = [await begin(), await begin()];
    await decide(soon.user_code, { 'X-Session-API-Key': temporary.key }).expect(200);
    await decide(never.user_code, user.headers, {}, replica).expect(200);

    const { body: fetched } = await poll(soon.device_code).expect(200);
    expect(Math.round(fetched.expires_in / 3_600)).toBe(24);
    expect((await poll(never.device_code).expect(200)).body).not.toHaveProperty('expires_in');
  });

  it('takes an approval by a session only from a page of the service', async () => {
    const { user_code: code } = await begin();
    const session = await sessionOf(app.url, user.key);

    await decide(code, { ...session, Origin: 'https://evil.example.com' }).expect(403);
    await app.as().get('/oauth/device/verify-authenticated').query({ user_code: code }).expect(405);
    await decide(code, { ...session, Origin: app.url }).expect(200);
  });

  it('bounds the codes that a user may try, and what one address may begin', async () => {
    const { user_code: code } = await begin();
    for (let tries = 0; tries < 10; tries += 1) {
      await show('BBBB-BBBB').expect(404);
    }
    const refused = await decide(code).expect(429);
    expect(refused.headers['retry-after']).toBeDefined();
    await show(code, app.admin).expect(200);

    const begun = await Promise.all(
      Array.from({ length: 60 }, async (_, index) =>
        ask(index % 2 ? app : replica).set('X-Forwarded-For', `192.0.2.${index}`),
      ),
    );
    expect(begun.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(begun.filter(({ status }) => status === 429)).toHaveLength(11);
    await app.dataSource.query("UPDATE device_logins SET address = '192.0.2.7'");
    await begin();
  });

  it('names a device by what it calls itself', async () => {
    const named = await request(app.url)
      .post('/oauth/device/authorize')
      .type(FORM)
      .send('client_id=my-laptop');
    expect((await show(named.body.user_code)).body.client).toBe('my-laptop');
    const bare = await app.as().post('/oauth/device/authorize').unset('User-Agent');
    expect((await show(bare.body.user_code)).body.client).toBe('a device');
  });

  it('names the address by which the device reaches the service, unless PUBLIC_URL does', async () => {
    const { body } = await ask().set({ Host: 'localhost:8080', 'X-Forwarded-Proto': 'https' });
    // Anybody could say so: this service trusts no proxy.
    expect(body.verification_uri).toBe('http://localhost:8080/oauth/device/verify');
  });
});

describe('behind a trusted proxy', () => {
  const app = useTestApp({ TRUSTED_PROXIES: '1' });
  const begin = (forwarded: string): request.Test =>
    request(app.url).post('/oauth/device/authorize').set('X-Forwarded-For', forwarded);

  it('the logins of one stranger are not those of all', async () => {
    // What stands before the proxy's own entry is what the client says.
    const statuses = await Promise.all(
      Array.from(
        { length: 51 },
        async (_none, index) => (await begin(`192.0.2.${index}, 203.0.113.1`)).status,
      ),
    );
    const { body } = await begin('203.0.113.2').expect(200);
    const shown = await app.as(app.user).get('/oauth/device/login').query({ user_code: body.user_code });

    expect(statuses.toSorted((one, other) => one - other)).toEqual([...Array(50).fill(200), 429]);
    expect(shown.body.address).toBe('203.0.113.2');
  });

  it('an entry that is no address is not one', async () => {
    const { body } = await begin('203.0.113.3:4711').expect(200);
    const shown = await app.as(app.user).get('/oauth/device/login').query({ user_code: body.user_code });

    expect(shown.body.address).toBe('127.0.0.1');
  });
});
