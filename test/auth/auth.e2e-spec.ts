import { afterEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { ApiKeyVerifier } from '../../src/auth/api-key.verifier.js';
import { FakeBrowser } from '../fakes/fake-push-service.js';
import type { TestUser } from '../support/create-test-app.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const KEYS = '/api/v1/api-keys';
const USERS = '/api/v1/users';

describe('API keys and users', () => {
  const app = useTestApp();

  const issue = async (owner: TestUser, body: object): Promise<request.Response> =>
    app.as(owner).post(KEYS, body);

  describe('life cycle of a key', () => {
    it('shows the key once, then only what it is for, of which a hash is stored', async () => {
      const issued = await issue(app.user, { name: 'ci', expires_at: '2099-01-31T12:00:00Z' });

      expect(issued.status).toBe(201);
      expect(issued.body.key).toMatch(/^slw_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/);
      expect(issued.body).toMatchObject({ name: 'ci', expires_at: '2099-01-31T12:00:00.000Z' });
      await app.as(issued.body.key).get(KEYS).expect(200);

      const listed = await app.as(app.user).get(KEYS).expect(200);
      expect(listed.body.map((key: { id: string }) => key.id)).toContain(issued.body.id);
      const rows = await app.dataSource.query<unknown[]>('SELECT * FROM api_keys');
      expect(JSON.stringify([listed.body, rows])).not.toContain(issued.body.key.slice(13));
    });

    describe('that was stolen', () => {
      const AUTOMATIONS = '/api/automation/v1';
      const ENDPOINTS = '/api/v1/webhook-endpoints';
      const SUBSCRIPTIONS = '/api/v1/push/subscriptions';
      const withKey = (key: string): TestUser => ({ ...app.user, headers: { 'X-Session-API-Key': key } });
      const made = async (headers: Record<string, string>, name: string): Promise<string[]> => {
        const trigger = { type: 'cron', schedule: '0 9 * * *' };
        const bodies: [string, object][] = [
          [`${AUTOMATIONS}/preset/prompt`, { name, prompt: 'say hello', trigger }],
          [`${AUTOMATIONS}/webhooks`, { name, source: `of-${name}` }],
          [ENDPOINTS, { url: `https://ci.example.com/${name}` }],
        ];
        const paths = [AUTOMATIONS, `${AUTOMATIONS}/webhooks`, ENDPOINTS];
        return Promise.all(
          bodies.map(async ([path, body], index) => {
            const { body: answer } = await app.as({ headers }).post(path, body).expect(201);
            return `${paths[index]}/${answer.id}`;
          }),
        );
      };
      const states = async (paths: readonly string[]): Promise<boolean[]> =>
        Promise.all(paths.map(async (path) => (await app.as(app.user).get(path).expect(200)).body.enabled));

      it('stops what it made, also by further keys and in a browser, and notifies none of its browsers, when it is revoked', async () => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        const { body: second } = await issue(withKey(stolen.key), { name: 'second' });
        const tab = await sessionOf(app.url, stolen.key);
        const notify = async (headers: Record<string, string>, name: string): Promise<string> => {
          const address = `https://updates.push.services.mozilla.com/wpush/v2/${name}`;
          const { subscription, endpoint } = new FakeBrowser(address);
          await app.as({ headers }).post(SUBSCRIPTIONS, subscription).expect(201);
          return endpoint;
        };
        await notify({ 'X-Session-API-Key': stolen.key }, 'thief');
        const own = await notify(app.user.headers, 'own');
        const others = await made(app.user.headers, 'others');
        const first = await made({ 'X-Session-API-Key': stolen.key }, 'first');
        const deeper = await made({ 'X-Session-API-Key': second.key }, 'deeper');
        const browser = await made(tab, 'browser');

        await app.as(app.user).delete(`${KEYS}/${stolen.id}`).expect(204);
        expect(await states(first)).toEqual([true, true, true]);
        await app.as(app.user).delete(`${KEYS}/${stolen.id}?made=pause`).expect(204);

        expect(await states([...first, ...deeper, ...browser])).toEqual(Array(9).fill(false));
        expect(await states(others)).toEqual([true, true, true]);
        const { body: notified } = await app.as(app.user).get(SUBSCRIPTIONS).expect(200);
        expect(notified.map(({ endpoint }: { endpoint: string }) => endpoint)).toEqual([own]);
        const { body: listed } = await app.as(app.user).get(KEYS).expect(200);
        const ended = listed.filter((key: { revoked_at: string | null }) => key.revoked_at !== null);
        expect(ended.map((key: { id: string }) => key.id)).toEqual(
          expect.arrayContaining([stolen.id, second.id]),
        );
        const ids = first.map((path) => path.split('/').at(-1));
        const audited = await app.dataSource.query<{ action: string }[]>(
          `SELECT action FROM audit_entries WHERE resource_id = ANY ($1) AND action LIKE '%.update' ORDER BY action`,
          [ids],
        );
        expect(audited.map(({ action }) => action)).toEqual([
          'automation.update',
          'automation_webhook.update',
          'webhook_endpoint.update',
        ]);
      });

      const revoked = async (ids: readonly string[]): Promise<boolean[]> => {
        const { body } = await app.as(app.user).get(KEYS).expect(200);
        const keys: { id: string; revoked_at: string | null }[] = body;
        return ids.map((id) => keys.find((key) => key.id === id)?.revoked_at !== null);
      };
      const revoke = async (id: string): Promise<request.Response> =>
        app.as(app.user).delete(`${KEYS}/${id}?made=pause`);
      /** As many as are kept. */
      const endedKeys = async (): Promise<void> => {
        await app.dataSource.query(
          `INSERT INTO api_keys (id, user_id, name, secret_hash, revoked_at)
           SELECT 'ended' || n, $1, 'ended', '', now() FROM generate_series(100, 199) AS n ON CONFLICT DO NOTHING`,
          [app.user.id],
        );
      };
      const automationOf = async (key: string): Promise<string> => {
        const { body } = await request(app.url)
          .post('/api/automation/v1/preset/prompt')
          .set({ 'X-Session-API-Key': key })
          .send({ name: 'stolen', prompt: 'Go on.', trigger: { type: 'cron', schedule: '0 9 * * *' } })
          .expect(201);
        return body.id;
      };

      it('stops what keys made that were forgotten since', async () => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        const { body: between } = await issue(withKey(stolen.key), { name: 'between' });
        const { body: last } = await issue(withKey(between.key), { name: 'last' });
        const { body: deepest } = await issue(withKey(last.key), { name: 'deepest' });
        const paths = await made({ 'X-Session-API-Key': last.key }, 'forgotten');
        await app.dataSource.query(
          `UPDATE api_keys SET revoked_at = now(), created_at = '2020-01-01' WHERE id = ANY ($1)`,
          [[between.id, last.id]],
        );
        await endedKeys();
        await issue(app.user, { name: 'forgets' });
        const { body: left } = await app.as(app.user).get(KEYS).expect(200);
        expect(left.map(({ id }: { id: string }) => id)).not.toContain(last.id);

        expect((await revoke(stolen.id)).status).toBe(204);

        expect(await states(paths)).toEqual([false, false, false]);
        expect(await revoked([deepest.id])).toEqual([true]);
      });

      it('stops it in the order in which an event starts it', async () => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        const first = await automationOf(stolen.key);
        // The table has it last, and its id is the first.
        const last = '00000000-0000-4000-8000-000000000000';
        await app.dataSource.query('UPDATE automations SET id = $1 WHERE id = $2', [
          last,
          await automationOf(stolen.key),
        ]);
        const revoking = await app.dataSource.transaction(async (manager) => {
          const lock = 'SELECT FROM automations WHERE id = $1 FOR UPDATE';
          await manager.query(lock, [last]);
          const answer = revoke(stolen.id);
          await untilBlocked(app.dataSource);
          await manager.query(lock, [first]);
          return [answer];
        });
        expect((await Promise.all(revoking)).map(({ status }) => status)).toEqual([204]);
      });

      it('is not waited for by a key that forgets ended ones', async () => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        await issue(withKey(stolen.key), { name: 'made' });
        await app.dataSource.query(
          `UPDATE api_keys SET revoked_at = now(), created_at = '2020-01-01' WHERE id = $1`,
          [stolen.id],
        );
        await endedKeys();
        await app.dataSource.transaction(async (manager) => {
          await manager.query('SELECT FROM api_keys WHERE id = $1 FOR UPDATE', [stolen.id]);
          expect((await issue(app.user, { name: 'forgets' })).status).toBe(201);
        });
        expect(await revoked([stolen.id])).toEqual([true]);
      });

      it.each<[string, (key: string) => Promise<request.Response>]>([
        ['a key', async (key) => issue(withKey(key), { name: 'late' })],
        ['an endpoint', async (key) => app.as(key).post(ENDPOINTS, { url: 'https://late.example.com' })],
      ])('makes %s by no request that was let in before', async (_what, make) => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        const { body: second } = await issue(withKey(stolen.key), { name: 'second' });
        const turn = app.dataSource.createQueryRunner();
        await turn.startTransaction();
        await turn.query('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [app.user.id]);
        const late = [stolen, second].map(async ({ key }) => make(key));
        await untilBlocked(app.dataSource, 2);

        expect((await revoke(stolen.id)).status).toBe(204);
        await turn.rollbackTransaction();
        await turn.release();

        expect((await Promise.all(late)).map(({ status }) => status)).toEqual([401, 401]);
      });

      it('is revoked with the key that it is about to make', async () => {
        const { body: stolen } = await issue(app.user, { name: 'stolen' });
        const turn = app.dataSource.createQueryRunner();
        await turn.startTransaction();
        await turn.query('LOCK TABLE audit_entries IN SHARE MODE');
        const late = issue(withKey(stolen.key), { name: 'late' }).then(({ body }) => body);
        await untilBlocked(app.dataSource);
        const revoking = revoke(stolen.id);
        await untilBlocked(app.dataSource, 2);
        await turn.rollbackTransaction();
        await turn.release();

        expect((await revoking).status).toBe(204);
        expect(await revoked([stolen.id, (await late).id])).toEqual([true, true]);
      });
    });

    it('notes its last use', async () => {
      const { body } = await issue(app.user, { name: 'used' });
      await app.as(body.key).get(KEYS).expect(200);
      const lastUse = async (): Promise<unknown> => {
        const [row] = await app.dataSource.query<{ last_used_at: Date | null }[]>(
          'SELECT last_used_at FROM api_keys WHERE id = $1',
          [body.id],
        );
        return row?.last_used_at ?? null;
      };

      await until(async () => (await lastUse()) !== null);
      expect(await lastUse()).toBeInstanceOf(Date);
    });
  });

  describe('users and administrators', () => {
    it('lets an administrator create a user, issue a key for them, and off-board them', async () => {
      const created = await app
        .as(app.admin)
        .post(USERS, { email: 'Ada@Example.com', name: 'Ada' })
        .expect(201);
      expect(created.body).toMatchObject({ email: 'ada@example.com', name: 'Ada', is_admin: false });

      await app.as(app.admin).post(USERS, { email: 'ADA@example.com' }).expect(409);
      const key = await issue(app.admin, { name: 'first', user_id: created.body.id });
      const headers = { 'X-Session-API-Key': key.body.key as string };
      await app.as({ headers }).get(KEYS).expect(200);

      const found = await app.as(app.admin).get(USERS).query({ email__eq: 'ada@EXAMPLE.com' });
      expect(found.body).toEqual({ items: [{ ...created.body, sign_in: null }], next_page_id: null });
      const keys = await app.as(app.admin).get(KEYS).query({ user_id: created.body.id });
      expect(keys.body).toHaveLength(1);

      await app.as(app.admin).delete(`${USERS}/${created.body.id}`).expect(204);
      await app.as({ headers }).get(KEYS).expect(401);
      await app.as(app.admin).delete(`${USERS}/${created.body.id}`).expect(404);
    });

    it('pages through users', async () => {
      const all = await app.as(app.admin).get(USERS).expect(200);
      const seen: string[] = [];
      let pageId: string | null | undefined;
      do {
        const page: request.Response = await app
          .as(app.admin)
          .get(USERS)
          .query({ limit: 1, ...(pageId && { page_id: pageId }) })
          .expect(200);
        seen.push(...page.body.items.map((user: { email: string }) => user.email));
        pageId = page.body.next_page_id;
      } while (pageId);

      expect(seen).toEqual(all.body.items.map((user: { email: string }) => user.email));
    });
  });

  it('trusts a verified key for less than five seconds, so that a revocation reaches other replicas', async () => {
    const { body } = await issue(app.user, { name: 'elsewhere' });
    const headers = { 'X-Session-API-Key': body.key as string };
    app.clock.stop();
    await app.as({ headers }).get(KEYS).expect(200);
    // As another replica does it: behind this one's back.
    await app.dataSource.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [body.id]);
    const verifier = app.app.get(ApiKeyVerifier);

    expect(await verifier.verify(body.key)).not.toBeNull();
    app.clock.advance(5_000);
    expect(await verifier.verify(body.key)).toBeNull();
  });

  it('keeps no revoked key alive when a clock is set back', async () => {
    const { id, headers } = await app.createUser();
    await app.as({ headers }).get(KEYS).expect(200);
    await app.dataSource.query('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [id]);
    app.clock.advance(-3_600_000);
    const { status } = await app.as({ headers }).get(KEYS);
    app.clock.advance(3_600_000);

    expect(status).toBe(401);
  });

  it('gives no further key to a user who was removed while the key is still cached', async () => {
    const { id, headers } = await app.createUser();
    await app.as({ headers }).get(KEYS).expect(200);
    // As another replica does it: behind this one's back.
    await app.dataSource.query('DELETE FROM users WHERE id = $1', [id]);

    const { status, body } = await app.as({ headers }).post(KEYS, { name: 'late' });
    expect({ status, detail: body.detail }).toEqual({ status: 401, detail: 'Unauthorized' });
  });
});

describe('the rate limit', () => {
  const app = useTestApp({ RATE_LIMIT_PER_MINUTE: '4' });
  const { now } = Date;
  afterEach(() => {
    Date.now = now;
  });

  it('counts per user over all routes, keys and sandboxes, answers 429 with Retry-After, and leaves other users alone', async () => {
    const user = await app.createUser();
    const { headers: sandbox } = await insertSandboxRow(app.dataSource, user.id);
    const issued = await app.as(user).post(KEYS, { name: 'another' });
    const another = { 'X-Session-API-Key': issued.body.key };
    await app.as({ headers: another }).get(KEYS).expect(200);
    await app.as({ headers: another }).get(KEYS).expect(200);
    await app.as({ headers: sandbox }).post('/api/v1/webhooks/conversations').expect(422);

    for (const headers of [user.headers, another, sandbox]) {
      const limited = await app.as({ headers }).get(KEYS);
      expect([limited.status, limited.body.code]).toEqual([429, 'rate_limited']);
      expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    }
    await app.as(app.admin).get(KEYS).expect(200);
    // A clock that is set back prolongs no refusal.
    Date.now = () => now() - 3_600_000;
    const later = await app.as(user).get(KEYS).expect(429);
    expect(Number(later.headers['retry-after'])).toBeLessThanOrEqual(60);
  });

  it('counts strangers by address on everything but probes, and refuses no valid key for them', async () => {
    const wrong = { 'X-Session-API-Key': 'a-key-of-nobody-at-all' };
    const signIn = (): request.Test => app.as().post('/auth/key', { key: 'wrong-key-wrong-key' });
    await app.as().get('/server_info').expect(200);
    await signIn().expect(401);
    await app.as().get('/no/such/address').expect(404);
    await app.as({ headers: wrong }).get(KEYS).expect(401);

    for (const path of ['/server_info', '/openapi.json', '/docs', '/no/such/address', KEYS]) {
      await app.as({ headers: wrong }).get(path).expect(429);
    }
    await signIn().expect(429);
    await app.as().get('/health/live').expect(200);
    for (const path of ['/server_info', KEYS]) {
      await app.as(app.user).get(path).expect(200);
    }
  });
});
