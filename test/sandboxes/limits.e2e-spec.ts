import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { SandboxQuota } from '../../src/v1/sandboxes/sandbox-quota.js';
import { SandboxRepository } from '../../src/v1/sandboxes/sandbox.repository.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

describe('sandbox limits', () => {
  let backend: ScriptedSandboxBackend;
  let app: TestApp;
  let me: SandboxesClient;

  /** For each test of a `describe`: a user without sandboxes, and a backend without a script. */
  function begin(environment: Record<string, string>, machine = new ScriptedSandboxBackend()): TestApp {
    const started = useTestApp(environment, { sandboxBackend: machine });
    beforeEach(async () => {
      [app, backend] = [started, machine];
      backend.script = { failure: null, exit: null, unresponsive: false, gate: null, progress: [] };
      me = new SandboxesClient(app.url, await app.createUser());
    });
    afterEach(() => app.clock.resume());
    return started;
  }

  const statusOf = async (id: string) => (await me.get(id))?.status;
  const countOf = async (userId: string, statuses: string[]): Promise<number> => {
    const [row] = await app.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM sandboxes WHERE user_id = $1 AND status = ANY($2)',
      [userId, statuses],
    );
    return row?.count ?? 0;
  };
  /** Starts do not finish during the test. */
  const holdStarts = () => {
    backend.script.gate = new Promise<void>(() => undefined);
  };

  describe('on running sandboxes', () => {
    const shared = begin({ MAX_RUNNING_SANDBOXES: '2' });

    const counted = () => countOf(me.user.id, ['STARTING', 'RUNNING']);

    it('spares one with a running conversation, a keep-alive or a user at work', async () => {
      const [first, second] = [await me.running(), await me.running()];
      backend.box(first.id).conversationRuns = true;
      const third = await me.running();
      await me.reach(second.id, 'PAUSED');
      expect(await statusOf(first.id)).toBe('RUNNING');

      await app.app.get(SandboxRepository).keepAlive(third.id, 60);
      const refused = await me.call('POST', '');
      expect(refused.status).toBe(429);
      expect(refused.headers.get('retry-after')).toBe('30');
      expect(refused.body).toMatchObject({ code: 'sandbox_limit', detail: expect.stringContaining('All 2') });
      expect(await me.resume(second.id)).toBe(429);

      app.clock.stop();
      app.clock.advance(61_000);
      app.app.get(SandboxRepository).touch(third.id);
      await until(async () => {
        const [row] = await app.dataSource.query<{ seen: boolean }[]>(
          'SELECT traffic_at IS NOT NULL AS seen FROM sandboxes WHERE id = $1',
          [third.id],
        );
        return row?.seen === true;
      });
      expect((await me.call('POST', '')).status).toBe(429);
      app.clock.advance(10_001);
      expect((await me.call('POST', '')).status).toBe(200);
      await me.reach(third.id, 'PAUSED');
    });

    it('pauses one that has only just started, and has done nothing yet', async () => {
      const [first, second] = [await me.running(), await me.running()];
      for (const { id } of [first, second]) {
        Object.assign(backend.box(id), { idleSeconds: 0.001, uptimeSeconds: 0.002 });
      }
      expect((await me.call('POST', '')).status).toBe(200);
      await me.reach(first.id, 'PAUSED');
    });

    it('refuses while agent servers do not report their activity', async () => {
      backend.script.unresponsive = false;
      const [first] = [await me.running(), await me.running()];
      for (const box of backend.boxes.values()) {
        box.conversationRuns = null;
      }

      expect((await me.call('POST', '')).status).toBe(429);
      expect(await statusOf(first.id)).toBe('RUNNING');
    });

    it('applies to concurrent requests', async () => {
      holdStarts();
      const responses = await Promise.all(Array.from({ length: 8 }, () => me.call('POST', '')));

      expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
        200, 200, 429, 429, 429, 429, 429, 429,
      ]);
      expect(await counted()).toBe(2);
    });

    it('applies to concurrent resumes', async () => {
      const ids: string[] = [];
      for (let count = 0; count < 4; count += 1) {
        const { id } = await me.running();
        await me.pause(id);
        ids.push(id);
      }
      holdStarts();
      const statuses = await Promise.all(ids.map((id) => me.resume(id)));

      expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 429, 429]);
      expect(await counted()).toBe(2);
    });

    it('makes room for a caller, and returns what was paused', async () => {
      const quota = app.app.get(SandboxQuota);
      const claim = async (exceptId: string | null = null) => {
        const evictable = await quota.findEvictable(me.user.id, exceptId);
        return await app.dataSource.transaction((manager) =>
          quota.claim(manager, me.user.id, evictable, exceptId),
        );
      };
      expect(await claim()).toEqual([]);
      const [first, second] = [await me.running(), await me.running()];
      expect(await claim(first.id)).toEqual([]);
      expect(await claim()).toEqual([first.id]);
      const third = await me.running();
      backend.box(second.id).conversationRuns = true;
      backend.box(third.id).conversationRuns = true;

      await expect(claim()).rejects.toMatchObject({ code: 'sandbox_limit' });
    });

    it('pauses the longest idle one, and says so of it, in the response, and no longer once it runs', async () => {
      const first = await me.running();
      const release = Promise.withResolvers<void>();
      backend.script.gate = release.promise;
      const second = await me.create();
      expect(second).toMatchObject({ status: 'STARTING', status_detail: null });
      release.resolve();
      await me.reach(second.id, 'RUNNING');
      const later = Promise.withResolvers<void>();
      backend.script.gate = later.promise;
      const third = await me.create();
      later.resolve();

      expect(third).toMatchObject({
        status: 'STARTING',
        status_detail: `Sandbox ${first.id} was idle for longest, and was paused to make room.`,
      });
      expect(await me.reach(third.id, 'RUNNING')).toMatchObject({ status_detail: null });
      expect(await me.reach(first.id, 'PAUSED')).toMatchObject({
        status_detail: 'Paused to make room: at most 2 may run at a time.',
      });
      await until(() => backend.box(first.id).server === null);
      expect(await statusOf(second.id)).toBe('RUNNING');
    });

    it('says which one was paused for a resume', async () => {
      const [first, second] = [await me.running(), await me.running()];
      await me.pause(first.id);
      await me.running();
      await until(() => backend.box(first.id).server === null);
      holdStarts();

      expect(await me.resume(first.id)).toBe(200);
      expect(await me.get(first.id)).toMatchObject({
        status: 'STARTING',
        status_detail: `Sandbox ${second.id} was idle for longest, and was paused to make room.`,
      });
    });

    it('pauses one that has just begun to run, and none with a command that runs', async () => {
      const [first, second] = [await me.running(), await me.running()];
      backend.box(first.id).idleSeconds = 0.001;
      const reports = [0.02, 0.13];
      Object.defineProperty(backend.box(second.id), 'idleSeconds', { get: () => reports.shift() ?? 1 });
      holdStarts();

      expect(await me.create()).toMatchObject({
        status_detail: `Sandbox ${second.id} was idle for longest, and was paused to make room.`,
      });
    });

    describe('with a quota lower than what runs', () => {
      let lower: TestApp;

      beforeAll(async () => {
        lower = await createTestApp({ MAX_RUNNING_SANDBOXES: '1' }, shared.databaseUrl, {
          sandboxBackend: backend,
        });
      });
      afterAll(() => lower.close());

      it('names all that were paused', async () => {
        const [first, second] = [await me.running(), await me.running()];
        holdStarts();
        const third = await new SandboxesClient(lower.url, me.user).create();

        expect(third.status_detail).toBe(
          `Sandboxes ${first.id}, ${second.id} were idle for longest, and were paused to make room.`,
        );
      });

      it('pauses none when that would not make enough room', async () => {
        const [first, second] = [await me.running(), await me.running()];
        const quota = lower.app.get(SandboxQuota);
        const evictable = await quota.findEvictable(me.user.id);
        expect(evictable?.map(({ id }) => id)).toEqual([first.id, second.id]);
        // Something begins in it after the probe.
        await app.dataSource.query('UPDATE sandboxes SET last_activity_at = now() WHERE id = $1', [
          second.id,
        ]);
        const claim = await lower.dataSource.transaction((manager) =>
          // The transaction goes on, and is committed.
          quota.claim(manager, me.user.id, evictable).catch((error: unknown) => error),
        );

        expect(claim).toMatchObject({ code: 'sandbox_limit' });
        expect([await statusOf(first.id), await statusOf(second.id)]).toEqual(['RUNNING', 'RUNNING']);
      });
    });
  });

  describe('on running sandboxes, with reject, and on how many are kept for how long', () => {
    begin({
      MAX_RUNNING_SANDBOXES: '2',
      MAX_SANDBOXES_PER_USER: '3',
      SANDBOX_LIMIT_POLICY: 'reject',
      SANDBOX_RETENTION_SECONDS: '3600',
      SANDBOX_IDLE_TIMEOUT_SECONDS: '0',
    });

    it('is refused, with no idle one paused for it, and the first response is repeated to a repeated request', async () => {
      const headers = { 'Idempotency-Key': 'once' };
      const { body } = await me.call<{ id: string }>('POST', '', { headers });
      await me.reach(body.id, 'RUNNING');
      const { id } = await me.running();
      const refused = await me.call('POST', '');
      expect(refused).toMatchObject({
        status: 429,
        body: {
          code: 'sandbox_limit',
          detail: 'As many of your sandboxes run as may at a time (2). Pause or delete one, then try again.',
        },
      });
      expect(refused.headers.get('retry-after')).toBe('30');
      expect([await statusOf(body.id), await statusOf(id)]).toEqual(['RUNNING', 'RUNNING']);

      expect(await me.call('POST', '', { headers })).toMatchObject({ status: 200, body: { id: body.id } });
    });

    it('refuses one more, by whatever request, until one is deleted', async () => {
      const paused = await me.running();
      await me.pause(paused.id);
      await me.pause((await me.running()).id);
      await me.running();
      const refused = {
        status: 409,
        code: 'stored_sandbox_limit',
        detail:
          'You have 3 sandboxes, the most that are kept, paused ones included. Delete some of them (DELETE /api/v1/sandboxes/{id}), then try again.',
      };
      const post = (path: string, body = {}): request.Test =>
        request(app.url).post(path).set(me.user.headers).send(body);
      await post('/api/settings', { llm_model: 'openai/gpt-4o', llm_api_key: 'sk-4217' }).expect(200);

      expect((await post('/api/v1/sandboxes')).body).toMatchObject(refused);
      expect((await post('/api/v1/app-conversations')).body).toMatchObject(refused);

      await new SandboxesClient(app.url, await app.createUser()).running();
      await request(app.url).delete(`/api/v1/sandboxes/${paused.id}`).set(me.user.headers).expect(200);
      await me.running();
    });

    it('removes what has not run for longer than it is kept, and nothing else', async () => {
      const [paused, running] = [await me.running(), await me.running()];
      await me.pause(paused.id);
      await me.reach(paused.id, 'PAUSED');
      app.clock.advance(3_600_001);
      const fresh = await me.running();
      await me.pause(fresh.id);
      await until(async () => {
        await app.app.get(IdleReaper).reap();
        return !backend.boxes.has(paused.id);
      });

      expect(await me.get(paused.id)).toBeNull();
      expect(await me.get(running.id)).toMatchObject({ status: 'RUNNING' });
      await me.reach(fresh.id, 'PAUSED');
    });
  });

  describe('on idle sandboxes', () => {
    const TIMEOUT_S = 1800;
    begin({ SANDBOX_IDLE_TIMEOUT_SECONDS: String(TIMEOUT_S), MAX_RUNNING_SANDBOXES: '60' });

    const reap = () => app.app.get(IdleReaper).reap();
    const later = (id: string) => {
      app.clock.advance(TIMEOUT_S * 1000 + 1);
      backend.box(id).idleSeconds = TIMEOUT_S + 1;
    };

    it('pauses them whoever looks at their status, and says why', async () => {
      const { id } = await me.running();
      await reap();
      expect(await statusOf(id)).toBe('RUNNING');
      later(id);
      expect(await me.get(id)).toMatchObject({ status: 'RUNNING' });
      await me.call('GET', '/search');
      await reap();

      expect(await me.reach(id, 'PAUSED')).toMatchObject({
        status_detail: 'Paused after 30 minutes without activity.',
      });
      await until(() => backend.box(id).server === null);
      expect(await me.resume(id)).toBe(200);
      expect(await me.reach(id, 'RUNNING')).toMatchObject({ status_detail: null });
    });

    it.each([
      ['a conversation runs', async (id: string) => void (backend.box(id).conversationRuns = true)],
      ['its agent server had something to do', async (id: string) => void (backend.box(id).idleSeconds = 5)],
      ['it is kept alive', (id: string) => app.app.get(SandboxRepository).keepAlive(id, 60)],
      [
        'its user is at work',
        async (id: string) => {
          app.app.get(SandboxRepository).touch(id);
          await until(async () => {
            const [row] = await app.dataSource.query<{ seen: boolean }[]>(
              'SELECT traffic_at IS NOT NULL AS seen FROM sandboxes WHERE id = $1',
              [id],
            );
            return row?.seen === true;
          });
        },
      ],
      [
        'its agent server reports nothing, but is alive',
        async (id: string) => void (backend.box(id).conversationRuns = null),
      ],
    ])('leaves one alone when %s', async (_name, happen) => {
      const { id } = await me.running();
      later(id);
      await happen(id);
      await reap();

      expect(await me.get(id)).toMatchObject({ status: 'RUNNING' });
    });

    it('pauses one behind as many as it looks at together, which report nothing', async () => {
      const silent = await Promise.all(Array.from({ length: 50 }, () => me.create()));
      await until(async () => (await countOf(me.user.id, ['RUNNING'])) === silent.length);
      silent.forEach(({ id }) => (backend.box(id).conversationRuns = null));
      app.clock.advance(1);
      const { id } = await me.running();
      later(id);
      // A look gives up after three seconds, which fifty answers may take on a busy machine.
      await until(async () => {
        await reap();
        return (await statusOf(id)) === 'PAUSED';
      });
      expect(await statusOf(silent[0]?.id ?? '')).toBe('RUNNING');
    });

    it('fails one whose agent server has been unresponsive for long', async () => {
      const { id } = await me.running();
      later(id);
      backend
        .box(id)
        .server?.removeAllListeners('request')
        .on('request', ({ socket }) => socket.destroy());
      app.clock.stop();
      await reap();
      app.clock.advance(590_000);
      await reap();
      expect(await me.get(id)).toMatchObject({ status: 'RUNNING' });
      app.clock.advance(11_000);
      await reap();

      expect(await me.get(id)).toMatchObject({
        status: 'ERROR',
        status_detail: expect.stringContaining('has not answered for 10 minutes'),
      });
      await until(async () => {
        await app.app.get(SandboxReconciler).now();
        return backend.box(id).server === null;
      });
    });
  });

  describe('without isolation', () => {
    begin({}, new ScriptedSandboxBackend('process', 'none'));
    // The sandboxes of one test would refuse those of the next one.
    afterEach(() => app.dataSource.query('DELETE FROM sandboxes'));

    it('accepts one of two concurrent users, and no other one after it, and names the setting', async () => {
      const other = new SandboxesClient(app.url, await app.createUser());
      const responses = await Promise.all([me.call('POST', ''), other.call('POST', '')]);

      expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 403]);
      expect(responses.find(({ status }) => status === 403)?.body).toMatchObject({
        code: 'forbidden',
        detail: expect.stringContaining('ALLOW_UNSANDBOXED'),
      });
      const again = await Promise.all([me.call('POST', ''), other.call('POST', '')]);
      expect(again.map(({ status }) => status)).toEqual(responses.map(({ status }) => status));
    });

    it('does not deadlock on a request with an idempotency key and one without', async () => {
      const headers = { 'Idempotency-Key': 'once' };
      const responses = await app.dataSource.transaction(async (manager) => {
        await manager.query('SELECT 1 FROM users WHERE id = $1 FOR UPDATE', [me.user.id]);
        const idempotent = me.call('POST', '', { headers });
        await untilBlocked(app.dataSource);
        const plain = me.call('POST', '');
        await untilBlocked(app.dataSource, 2);
        return [idempotent, plain];
      });

      expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([200, 200]);
    });
  });

  describe('without isolation, where the operator allows it', () => {
    begin({ ALLOW_UNSANDBOXED: 'true' }, new ScriptedSandboxBackend('process', 'none'));

    it('accepts a second user', async () => {
      const other = new SandboxesClient(app.url, await app.createUser());
      await me.running();

      await expect(other.running()).resolves.toMatchObject({ status: 'RUNNING' });
    });
  });
});
