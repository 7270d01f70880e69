import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { OneTimeCodes } from '../../src/auth/one-time-codes.js';
import { useTestApp } from '../support/use-test-app.js';

const TEN_MINUTES_MS = 600_000;

describe('one-time codes of the web application', () => {
  const app = useTestApp();
  let codes: OneTimeCodes;

  beforeAll(async () => {
    codes = app.app.get(OneTimeCodes);
  });

  const exchange = (code: unknown, headers: Record<string, string> = {}): request.Test =>
    request(app.url).post('/auth/code/key').set(headers).send({ code });
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
  });

  it('are worth nothing once the key is revoked', async () => {
    const { body: issued } = await request(app.url)
      .post('/api/v1/api-keys')
      .set(app.user.headers)
      .send({ name: 'short' })
      .expect(201);
    const code = codes.issue(issued.key, 'key');
    await request(app.url).delete(`/api/v1/api-keys/${issued.id}`).set(app.user.headers).expect(204);

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

    const refused = await request(app.url).post('/auth/code').send({ code: ofApplication }).expect(401);
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
    await request(app.url).get(`/auth/code/key?code=${code}`).expect(405);
  });
});
