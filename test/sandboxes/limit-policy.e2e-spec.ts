import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { SandboxQuota } from '../../src/v1/sandboxes/sandbox-quota.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';

describe('one sandbox more than the quota allows', () => {
  let backend: ScriptedSandboxBackend;
  let app: TestApp;
  let me: SandboxesClient;

  async function start(environment: Record<string, string>) {
    backend = new ScriptedSandboxBackend();
    app = await createTestApp(environment, undefined, { sandboxBackend: backend });
  }

  async function stop() {
    await app.close();
    await backend.close();
  }

  beforeEach(async () => {
    backend.script.gate = null;
    me = new SandboxesClient(app.url, await app.createUser());
  });

  const statusOf = async (id: string) => (await me.get(id))?.status;
  /** Starts do not finish during the test. */
  const holdStarts = () => {
    backend.script.gate = new Promise<void>(() => undefined);
  };

  describe('with pause_oldest_idle', () => {
    beforeAll(() => start({ MAX_RUNNING_SANDBOXES: '2' }));
    afterAll(stop);

    it('says in the response which one was paused, and no longer once it runs', async () => {
      const [first] = [await me.running(), await me.running()];
      const release = Promise.withResolvers<void>();
      backend.script.gate = release.promise;
      const third = await me.create();
      release.resolve();

      expect(third).toMatchObject({
        status: 'STARTING',
        status_detail: `Sandbox ${first.id} was idle for longest, and was paused to make room.`,
      });
      expect(await me.reach(third.id, 'RUNNING')).toMatchObject({ status_detail: null });
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
      const reports = [0.02, 0.13];
      Object.defineProperty(backend.box(first.id), 'idleSeconds', { get: () => reports.shift() ?? 1 });
      backend.box(second.id).idleSeconds = 0;
      holdStarts();

      expect(await me.create()).toMatchObject({
        status_detail: `Sandbox ${first.id} was idle for longest, and was paused to make room.`,
      });
    });

    it('says nothing while the quota has room', async () => {
      holdStarts();

      expect(await me.create()).toMatchObject({ status: 'STARTING', status_detail: null });
    });

    describe('with a quota lower than what runs', () => {
      let lower: TestApp;

      beforeAll(async () => {
        lower = await createTestApp({ MAX_RUNNING_SANDBOXES: '1' }, app.databaseUrl, {
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

  describe('with reject', () => {
    beforeAll(() => start({ MAX_RUNNING_SANDBOXES: '2', SANDBOX_LIMIT_POLICY: 'reject' }));
    afterAll(stop);

    it('is refused, and no idle one is paused for it', async () => {
      const [first, second] = [await me.running(), await me.running()];
      const refused = await me.call('POST', '');

      expect(refused.status).toBe(429);
      expect(refused.headers.get('retry-after')).toBe('30');
      expect(refused.body).toMatchObject({
        code: 'sandbox_limit',
        detail: 'As many of your sandboxes run as may at a time (2). Pause or delete one, then try again.',
      });
      expect([await statusOf(first.id), await statusOf(second.id)]).toEqual(['RUNNING', 'RUNNING']);
    });

    it.each([
      ['paused', (id: string) => me.pause(id)],
      ['deleted', (id: string) => me.remove(id)],
    ])('may come once one is %s, as it says', async (_name, makeRoom) => {
      const [first] = [await me.running(), await me.running()];
      expect((await me.call('POST', '')).status).toBe(429);
      await makeRoom(first.id);

      expect((await me.call('POST', '')).status).toBe(200);
    });

    it('is not resumed either, until there is room', async () => {
      const [first, second] = [await me.running(), await me.running()];
      await me.pause(first.id);
      await me.running();

      expect(await me.resume(first.id)).toBe(429);
      expect(await statusOf(second.id)).toBe('RUNNING');
      await me.pause(second.id);
      expect(await me.resume(first.id)).toBe(200);
    });

    it('repeats the first response to a repeated request', async () => {
      const headers = { 'Idempotency-Key': 'once' };
      const { body } = await me.call('POST', '', { headers });
      await me.running();
      expect((await me.call('POST', '')).status).toBe(429);

      expect(await me.call('POST', '', { headers })).toMatchObject({ status: 200, body: { id: body['id'] } });
    });

    it('is refused among concurrent requests', async () => {
      holdStarts();
      const responses = await Promise.all(Array.from({ length: 6 }, () => me.call('POST', '')));

      expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
        200, 200, 429, 429, 429, 429,
      ]);
    });
  });
});
