import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { IdempotencyService } from '../../src/v1/idempotency/idempotency.service.js';
import type { SandboxPageDto, SandboxDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { TEST_CERTIFICATE } from '../support/tls-certificate.js';
import { useTestApp } from '../support/use-test-app.js';

describe('/api/v1/sandboxes', () => {
  const backend = new ScriptedSandboxBackend();
  let folder: string;
  let authorities: string;
  let me: SandboxesClient;
  let other: SandboxesClient;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-specs-'));
    await writeFile(
      path.join(folder, 'specs.yaml'),
      '- id: slipway\n- id: second\n  resources: {cpu: 2}\n- {id: stock, image: stock:1}\n',
    );
    authorities = path.join(folder, 'authorities.pem');
    await writeFile(authorities, TEST_CERTIFICATE);
  });

  const app = useTestApp(
    () => ({
      PUBLIC_URL: 'https://slipway.example.com',
      SANDBOX_SPECS_FILE: path.join(folder, 'specs.yaml'),
      NODE_EXTRA_CA_CERTS: authorities,
    }),
    { sandboxBackend: backend },
  );

  beforeEach(async () => {
    backend.script = { failure: null, exit: null, unresponsive: false, gate: null, progress: [] };
    backend.shortfalls = [];
    me = new SandboxesClient(app.url, await app.createUser());
    other = new SandboxesClient(app.url, await app.createUser());
  });

  afterAll(() => rm(folder, { recursive: true, maxRetries: 10 }));

  describe('POST', () => {
    it('answers STARTING, without a key and without addresses, and becomes RUNNING with both', async () => {
      const gate = Promise.withResolvers<void>();
      backend.script.gate = gate.promise;
      const created = await me.create();

      expect(created).toEqual({
        id: expect.stringMatching(/^[0-9A-Za-z]{22}$/),
        created_by_user_id: me.user.id,
        sandbox_spec_id: 'slipway',
        status: 'STARTING',
        status_detail: null,
        session_api_key: null,
        exposed_urls: null,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      });
      gate.resolve();
      const running = await me.reach(created.id, 'RUNNING');

      const { launch } = backend.box(created.id);
      expect(launch.sessionKey).toMatch(/^[0-9A-Za-z]{43}$/);
      expect(launch.callbackUrl).toBe(`${app.url}/api/v1/webhooks`);
      expect(running).toEqual({
        id: created.id,
        created_by_user_id: me.user.id,
        sandbox_spec_id: 'slipway',
        status_detail: null,
        created_at: created.created_at,
        status: 'RUNNING',
        session_api_key: launch.sessionKey,
        exposed_urls: [
          {
            name: 'AGENT_SERVER',
            url: `https://slipway.example.com/api/v1/sandboxes/${created.id}/agent-server`,
            port: 443,
          },
        ],
      });
    });

    it('takes the specification from the query or the body, and refuses one that is not there', async () => {
      for (const [path, body] of [
        ['?sandbox_spec_id=second', undefined],
        ['', { sandbox_spec_id: 'second' }],
      ] as const) {
        expect(await me.call('POST', path, { body })).toMatchObject({
          status: 200,
          body: { sandbox_spec_id: 'second' },
        });
      }
      expect((await me.call('POST', '?sandbox_spec_id=none')).status).toBe(404);
    });

    it('gives a stock agent server a secret for its files, which a resume does not change', async () => {
      const storageKey = (id: string) => backend.box(id).launch.env['OH_SECRET_KEY'];
      const [{ id }, another, own] = [
        await me.running('stock'),
        await me.running('stock'),
        await me.running(),
      ];
      const key = storageKey(id);
      expect(key).toMatch(/^[\w-]{43}$/);
      expect([storageKey(another.id), storageKey(own.id)]).not.toContain(key);
      expect(storageKey(own.id)).toBeUndefined();

      const { session_api_key: sessionKey } = await me.restart(id);
      expect(backend.box(id).launch.sessionKey).toBe(sessionKey);
      expect(storageKey(id)).toBe(key);
    });

    it("has our agent server trust the operator's authorities, as the file is at each start", async () => {
      const handedOn = (id: string) => backend.box(id).launch.env['SLIPWAY_AUTHORITY_0'];
      const [{ id }, stock] = [await me.running(), await me.running('stock')];
      expect([handedOn(id), handedOn(stock.id)]).toEqual([TEST_CERTIFICATE.trim(), undefined]);

      await me.pause(id);
      await rm(authorities);
      await me.resume(id);
      await me.reach(id, 'RUNNING');
      expect(handedOn(id)).toBeUndefined();

      const renewed = rootCertificates[0]?.replace('MII', 'MIJ') ?? '';
      await writeFile(authorities, renewed);
      expect(handedOn((await me.running()).id)).toBe(renewed);
    });

    it('applies the overrides of the settings, and says which have no effect', async () => {
      await fetch(`${app.url}/api/settings`, {
        method: 'POST',
        headers: { ...me.user.headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({
          remote_runtime_resource_factor: 2,
          sandbox_runtime_container_image: 'mine:1',
        }),
      });
      backend.shortfalls = ['The engine has 1 processor.'];
      const { id, status_detail: detail } = await me.running();

      expect(backend.box(id).launch).toMatchObject({ cpu: 4, memoryMb: 8192 });
      expect(detail).toContain('mine:1');
      expect(detail).toContain('The engine has 1 processor.');
    });
  });

  describe('Idempotency-Key', () => {
    const once = (client: SandboxesClient, key: string, path = '') =>
      client.call<SandboxDto>('POST', path, { headers: { 'Idempotency-Key': key } });

    it('refuses another request under the same key', async () => {
      await once(me, 'other');
      const { status, body } = await once(me, 'other', '?sandbox_spec_id=second');

      expect(status).toBe(422);
      expect(body).toMatchObject({ detail: [{ loc: ['header', 'Idempotency-Key'], type: 'value_error' }] });
    });

    it('is valid for a day, then free for another request', async () => {
      const first = await once(me, 'daily');
      app.clock.advance(24 * 3_600_000 + 1);
      const second = await once(me, 'daily');
      const third = await once(me, 'daily');

      expect(second.body.id).not.toBe(first.body.id);
      expect(third.body.id).toBe(second.body.id);
    });

    it('is purged after that day, and not before', async () => {
      const idempotency = app.app.get(IdempotencyService, { strict: false });
      app.clock.advance(24 * 3_600_000 + 1);
      await idempotency.purge();
      await once(me, 'kept');
      expect(await idempotency.purge()).toBe(0);
      app.clock.advance(24 * 3_600_000 + 1);

      expect(await idempotency.purge()).toBe(1);
    });

    it('is purged in batches until none is left', async () => {
      const idempotency = app.app.get(IdempotencyService, { strict: false });
      await app.dataSource.query(
        `INSERT INTO idempotency_keys (user_id, scope, key, request_hash, resource_id, created_at)
         SELECT $1, 'batches', 'k' || n, '', '', timestamptz '2001-01-01 00:00Z' + n * interval '1 s'
         FROM generate_series(1, 5001) AS n`,
        [me.user.id],
      );

      expect(await idempotency.purge()).toBeGreaterThanOrEqual(5_001);
      expect(
        await app.dataSource.query(`SELECT 1 FROM idempotency_keys WHERE scope = 'batches' LIMIT 1`),
      ).toEqual([]);
    });

    it('keeps the newest thousand of a user, however many requests come', async () => {
      const client = new SandboxesClient(app.url, await app.createUser());
      await app.dataSource.query(
        `INSERT INTO idempotency_keys (user_id, scope, key, request_hash, resource_id, created_at)
         SELECT $1, 'anything', 'k' || n, '', '', now() - n * interval '1 s' FROM generate_series(1, 1200) AS n`,
        [client.user.id],
      );
      const first = await once(client, 'newest');
      const again = await once(client, 'newest');

      expect(again.body.id).toBe(first.body.id);
      expect(
        await app.dataSource.query(
          `SELECT count(*)::int AS count, bool_or(key = 'k999') AS newer, bool_or(key = 'k1000') AS older
           FROM idempotency_keys WHERE user_id = $1`,
          [client.user.id],
        ),
      ).toEqual([{ count: 1000, newer: true, older: false }]);
    });

    it('makes one sandbox of requests to several replicas', async () => {
      const replica = await createTestApp({}, app.databaseUrl, { sandboxBackend: backend });
      try {
        const user = await app.createUser();
        const clients = [app.url, replica.url].map((url) => new SandboxesClient(url, user));
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_none, turn) => once(clients[turn % 2] ?? me, `race-${turn % 2}`)),
        );

        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
        const ids = new Set(answers.map(({ body }) => body.id));
        expect(ids.size).toBe(2);
        expect(ids).toContain((await once(clients[0] ?? me, 'race-0')).body.id);
        expect((await clients[0]?.call<SandboxPageDto>('GET', '/search'))?.body.items).toHaveLength(2);
      } finally {
        await replica.close();
      }
    });

    it('says so when the sandbox was deleted since', async () => {
      const { body } = await once(me, 'gone');
      await me.remove(body.id);
      const again = await once(me, 'gone');

      expect(again.status).toBe(410);
      expect(again.body).toMatchObject({ code: 'not_found' });
    });
  });

  describe('GET', () => {
    it('lists the newest first, in pages', async () => {
      const ids: string[] = [];
      for (let count = 0; count < 3; count += 1) {
        ids.unshift((await me.create()).id);
      }
      const first = await me.call<SandboxPageDto>('GET', '/search?limit=2');
      const second = await me.call<SandboxPageDto>(
        'GET',
        `/search?limit=2&page_id=${first.body.next_page_id}`,
      );

      expect(first.body.items.map(({ id }) => id)).toEqual(ids.slice(0, 2));
      expect(second.body).toEqual({ items: [expect.objectContaining({ id: ids[2] })], next_page_id: null });
    });

    it('looks up in the order of the ids, with null for each that is unknown', async () => {
      const mine = await me.create();
      const theirs = await other.create();
      const { body } = await me.call<(SandboxDto | null)[]>(
        'GET',
        `?id=nothing&id=${mine.id}&id=${theirs.id}&id=${encodeURIComponent("'; --")}`,
      );

      expect(body.map((each) => each?.id ?? null)).toEqual([null, mine.id, null, null]);
    });
  });

  describe('actions', () => {
    it('pause, resume and delete, again and again', async () => {
      const { id } = await me.running();
      const key = backend.box(id).launch.sessionKey;

      expect((await me.call('POST', `/${id}/pause`)).body).toEqual({ success: true });
      expect(await me.pause(id)).toBe(200);
      expect(await me.reach(id, 'PAUSED')).toMatchObject({ session_api_key: null, exposed_urls: null });
      expect((await me.call('POST', `/${id}/resume`)).body).toEqual({ success: true });
      expect(await me.resume(id)).toBe(200);
      // The key of before the pause opens nothing any more.
      const renewed = (await me.reach(id, 'RUNNING')).session_api_key;
      expect(renewed).toBe(backend.box(id).launch.sessionKey);
      expect(renewed).not.toBe(key);
      expect(await me.resume(id)).toBe(200);
      expect((await me.call('DELETE', `/${id}`)).body).toEqual({ success: true });
      expect(await me.remove(id)).toBe(404);
      expect(await me.get(id)).toBeNull();
    });

    it('are 404 for garbage, and delete takes no other id than the one of the path', async () => {
      const { id } = await other.running();

      const garbage = ['nothing', '%27', '..%2f..', 'x'.repeat(300)];
      const statuses = garbage.flatMap((each) => [me.pause(each), me.resume(each)]);
      expect(new Set(await Promise.all([...statuses, me.remove('nothing')]))).toEqual(new Set([404]));
      const { status, body } = await other.call('DELETE', `/${id}?sandbox_id=another`);
      expect(status).toBe(422);
      expect(body).toEqual({
        detail: [{ loc: ['query', 'sandbox_id'], msg: expect.any(String), type: 'value_error' }],
      });
      expect(await other.get(id)).not.toBeNull();
    });
  });
});
