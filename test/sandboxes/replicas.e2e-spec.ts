import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { HostRegistry } from '../../src/v1/sandboxes/host-identity.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SANDBOXES_CHANNEL } from '../../src/v1/sandboxes/sandbox-events.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { SandboxLifecycleRepository } from '../../src/v1/sandboxes/sandbox-lifecycle.repository.js';
import { SandboxWorker } from '../../src/v1/sandboxes/lifecycle/sandbox.worker.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

describe('sandboxes of several processes', () => {
  const backend = new ScriptedSandboxBackend();
  const more: TestApp[] = [];
  const first = useTestApp({}, { sandboxBackend: backend });
  let me: SandboxesClient;

  beforeEach(async () => {
    backend.script.gate = null;
    me = new SandboxesClient(first.url, await first.createUser());
  });

  afterEach(async () => {
    first.clock.resume();
    await Promise.all(more.splice(0).map((app) => app.close()));
  });

  async function join(environment: Record<string, string> = {}): Promise<TestApp> {
    const app = await createTestApp(environment, first.databaseUrl, { sandboxBackend: backend });
    agree(app);
    more.push(app);
    return app;
  }

  /** As on one machine: a process whose clock is a minute ahead takes every lease for one that has ended. */
  function agree({ clock }: TestApp): void {
    clock.resume();
    clock.advance(first.clock.now() - clock.now());
  }

  /**
   * As if a process had been killed in the middle of its work: the owner of the lease does not come back.
   *
   * @param generation how many starts of it have succeeded
   */
  async function leaveBehind(id: string, status: string, generation: number): Promise<void> {
    await first.dataSource.query(
      `UPDATE sandboxes SET status = $2, generation = $3, address = NULL, lease_owner = 'dead',
         lease_until = $4
       WHERE id = $1`,
      [id, status, generation, new Date(first.clock.now() + 15_000)],
    );
  }

  async function rowOf(id: string): Promise<{ status: string; lease_owner: string | null }> {
    const [row] = await first.dataSource.query<[{ status: string; lease_owner: string | null }]>(
      'SELECT status, lease_owner FROM sandboxes WHERE id = $1',
      [id],
    );
    return row;
  }

  /** Both replicas compare the sandboxes with their rows. */
  async function reconcile(second: TestApp): Promise<void> {
    await Promise.all([first, second].map((app) => app.app.get(SandboxReconciler).now()));
  }

  it('another host is refused without an address, in one line', async () => {
    const failing = createTestApp({ HOST_ID: 'second-host' }, first.databaseUrl);

    await expect(failing).rejects.toThrow(ConfigError);
    await expect(failing).rejects.toThrow(/^HOST_ID: another host \(test-host, .*SANDBOX_ADDRESS[^\n]*$/);
  });

  it('a new process adopts a running sandbox at its current address, and knows before its first request of one that died', async () => {
    const [{ id }, dead] = [await me.running(), await me.running()];
    const address = await backend.move(id);
    await backend.end(dead.id, { code: 1, signal: null, outOfMemory: false });
    const second = await join();
    expect(await new SandboxesClient(second.url, me.user).get(dead.id)).toMatchObject({ status: 'ERROR' });

    expect(await second.app.get(RunningSandboxQueries).target(id)).toMatchObject({ address, generation: 1 });
    expect(backend.box(id).starts).toBe(1);
  });

  it('a process takes one step at a time with a sandbox, even if its lease expired meanwhile', async () => {
    const { id } = await me.running();
    const gate = Promise.withResolvers<void>();
    backend.pauseGate = gate.promise;
    const answer = me.pause(id);
    await until(() => backend.callsOf(id).includes('pause'));
    await first.dataSource.query(
      'UPDATE sandboxes SET lease_owner = NULL, lease_until = NULL WHERE id = $1',
      [id],
    );
    await me.remove(id);
    expect(await answer).toBe(200);
    // The same worker has swept since.
    await me.running();
    expect(backend.callsOf(id)).toEqual(['start', 'pause']);

    gate.resolve();
    await until(() => !backend.boxes.has(id));
    expect(backend.callsOf(id)).toEqual(['start', 'pause', 'remove']);
  });

  it('a removal waits for no start, however many there are', async () => {
    const { id } = await me.running();
    const gate = Promise.withResolvers<void>();
    backend.script.gate = gate.promise;
    for (let user = 0; user < 4; user += 1) {
      const client = new SandboxesClient(first.url, await first.createUser());
      await Promise.all([client.create(), client.create(), client.create(), client.create()]);
    }
    await until(() => backend.calls.filter((call) => call.startsWith('start')).length > 12);
    await me.remove(id);
    await until(() => !backend.boxes.has(id));

    expect(backend.callsOf(id)).toEqual(['start', 'remove']);
    gate.resolve();
  });

  it('a stopping process leaves sandboxes running, and hands over what can go on elsewhere', async () => {
    const second = await join();
    const client = new SandboxesClient(second.url, me.user);
    const running = await client.running();
    const gate = Promise.withResolvers<void>();
    backend.script.gate = gate.promise;
    const starting = await client.create();
    await until(() => backend.callsOf(starting.id).includes('start'));
    more.splice(more.indexOf(second), 1);
    await second.close();
    gate.resolve();

    expect(await me.reach(starting.id, 'RUNNING')).toMatchObject({ status: 'RUNNING' });
    expect(await me.get(running.id)).toMatchObject({ status: 'RUNNING' });
    expect(backend.box(running.id).starts).toBe(1);
  });

  it('the others of its host are told of what requests begin where a process has no place left, and where it stops', async () => {
    const machine = new ScriptedSandboxBackend();
    machine.script.gate = new Promise<void>(() => undefined);
    const alone = await createTestApp({}, undefined, { sandboxBackend: machine });
    more.push(alone);
    const told: string[] = [];
    const listening = Promise.withResolvers<void>();
    alone.app
      .get(DatabaseNotifications, { strict: false })
      .listen(SANDBOXES_CHANNEL, (host) => void told.push(host), listening.resolve);
    await listening.promise;
    for (let user = 0; user < 4; user += 1) {
      const client = new SandboxesClient(alone.url, await alone.createUser());
      await Promise.all([client.create(), client.create(), client.create(), client.create()]);
    }
    await until(() => told.includes('test-host'));
    const leased = 'SELECT FROM sandboxes WHERE lease_owner IS NOT NULL';
    expect(await alone.dataSource.query<unknown[]>(leased)).toHaveLength(12);

    alone.clock.stop();
    await alone.app.get(SandboxWorker).onModuleDestroy();
    // What it has given back is told before this.
    await alone.dataSource.query('SELECT pg_notify($1, $2)', [SANDBOXES_CHANNEL, 'stopped']);
    await until(() => told.includes('stopped'));
    await new SandboxesClient(alone.url, alone.user).create();
    await until(() => told.lastIndexOf('test-host') > told.indexOf('stopped'));
  });

  it('another host is welcome with one, and leaves the sandboxes of this one alone', async () => {
    const { id } = await me.running();
    const calls = backend.calls.length;
    const second = await join({ HOST_ID: 'second-host', SANDBOX_ADDRESS: '10.0.0.2' });

    expect(await second.app.get(RunningSandboxQueries).target(id)).toMatchObject({ sandboxId: id });
    await new SandboxesClient(second.url, me.user).pause(id);
    await until(() => backend.calls.length > calls);
    expect(backend.callsOf(id)).toEqual(['start', 'pause']);
  });

  it('are forgotten when their host was lost for a day before it removed them', async () => {
    const { id: forgotten } = await me.running();
    const { id: early } = await me.running();
    const { id: watched } = await me.running();
    await first.dataSource.query(
      `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('there', NULL, now() - interval '23 hours')`,
    );
    await first.dataSource.query(
      `UPDATE sandboxes SET status = 'DELETING', lease_owner = NULL, lease_until = NULL,
         host_id = CASE WHEN id = $1 THEN 'there' ELSE 'lost' END,
         updated_at = now() - CASE WHEN id = $2 THEN interval '23 hours' ELSE interval '25 hours' END
       WHERE id IN ($1, $2, $3)`,
      [watched, early, forgotten],
    );
    const rows = async (): Promise<string[]> =>
      (
        await first.dataSource.query<{ id: string }[]>(
          'SELECT id FROM sandboxes WHERE user_id = $1 ORDER BY created_at',
          [me.user.id],
        )
      ).map(({ id }) => id);
    const reaper = first.app.get(IdleReaper);
    await reaper.reap();
    expect(await rows()).toEqual([early, watched]);
    await first.dataSource.query(
      `UPDATE sandbox_hosts SET seen_at = now() - interval '25 hours' WHERE id = 'there'`,
    );
    await reaper.reap();

    expect(await rows()).toEqual([early]);
    expect(backend.callsOf(forgotten)).toEqual(['start']);
  });

  it.each([
    ['STARTING', 0, 'RUNNING', 1],
    // After a resume it is unknown whether the program still runs with the key from before it.
    ['STARTING', 1, 'RUNNING', 2],
    ['PAUSING', 1, 'PAUSED', 1],
    ['DELETING', 1, 'MISSING', 1],
  ])(
    '%s of a dead process goes on when its lease expires (start %i)',
    async (left, generation, reached, starts) => {
      const { id } = await me.running();
      await leaveBehind(id, left, generation);
      first.clock.advance(15_001);
      await first.app.get(SandboxLifecycleRepository).leases.wake();

      await me.reach(id, reached);
      await until(() => (backend.boxes.get(id)?.server ?? null) === null || reached === 'RUNNING');
      expect(backend.boxes.get(id)?.starts ?? 1).toBe(starts);
    },
  );

  it('fail when their host is lost before it started them', async () => {
    const { id } = await me.running();
    const { id: well } = await me.running();
    first.clock.stop();
    await first.dataSource.query(
      `UPDATE sandboxes SET status = 'STARTING', host_id = 'lost', deadline_at = $2,
         lease_owner = NULL, lease_until = NULL WHERE id = $1`,
      [id, new Date(first.clock.now() + 60_000)],
    );
    const reaper = first.app.get(IdleReaper);
    first.clock.advance(110_000);
    await reaper.reap();
    expect(await me.get(id)).toMatchObject({ status: 'STARTING' });
    first.clock.advance(11_000);
    await reaper.reap();

    expect(await me.get(id)).toMatchObject({
      status: 'ERROR',
      status_detail: expect.stringMatching(/^Its host lost is gone: .*Resume it when the host is back/),
    });
    expect(await me.get(well)).toMatchObject({ status: 'RUNNING' });
  });

  it('fail when their host is lost and they do not answer', async () => {
    const { id: lost } = await me.running();
    const { id: answering } = await me.running();
    await first.dataSource.query(`UPDATE sandboxes SET host_id = 'lost' WHERE id IN ($1, $2)`, [
      lost,
      answering,
    ]);
    await first.dataSource.query(`UPDATE sandboxes SET address = 'http://127.0.0.1:1' WHERE id = $1`, [lost]);
    const { id: watched } = await me.running();
    await first.dataSource.query(
      `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('watched', NULL, now())`,
    );
    await first.dataSource.query(
      `UPDATE sandboxes SET host_id = 'watched', address = 'http://127.0.0.1:1' WHERE id = $1`,
      [watched],
    );
    const reaper = first.app.get(IdleReaper);
    await reaper.reap();
    expect(await me.get(lost)).toMatchObject({ status: 'RUNNING' });
    first.clock.advance(61_000);
    await reaper.reap();

    expect(await me.get(lost)).toMatchObject({
      status: 'ERROR',
      status_detail: expect.stringMatching(/^It does not answer, and its host lost is gone: .*Resume it/),
    });
    expect(await me.get(answering)).toMatchObject({ status: 'RUNNING' });
    expect(await me.get(watched)).toMatchObject({ status: 'RUNNING' });
    await first.dataSource.query(`DELETE FROM sandbox_hosts WHERE id = 'watched'`);
  });

  describe('of which another one runs', () => {
    let second: TestApp;

    beforeAll(async () => {
      second = await createTestApp({}, first.databaseUrl, { sandboxBackend: backend });
    });
    beforeEach(() => agree(second));
    afterAll(() => second.close());

    it('a removal through another process ends a start', async () => {
      backend.script.gate = new Promise<void>(() => undefined);
      const { id } = await me.create();
      await until(() => backend.callsOf(id).includes('start'));
      expect(await new SandboxesClient(second.url, me.user).remove(id)).toBe(200);

      await until(() => backend.callsOf(id).includes('remove'));
      expect(await me.get(id)).toBeNull();
    });

    it('are removed once when they have no row, and stopped once when their rows say that they do not run', async () => {
      const { id } = await me.running();
      await me.pause(id);
      await me.reach(id, 'PAUSED');
      await until(() => backend.box(id).server === null);
      const { launch } = backend.box(id);
      await backend.startUnknown({ ...launch, id: 'Orphan' }, Date.now() - 3_600_000);
      await backend.startUnknown(launch, Date.now());
      const before = backend.callsOf(id).length;
      await reconcile(second);
      await until(() => !backend.boxes.has('Orphan') && backend.box(id).server === null);
      await reconcile(second);

      expect(backend.callsOf('Orphan')).toEqual(['remove']);
      expect(backend.callsOf(id).slice(before)).toEqual(['pause']);
    });

    it('are paused once when nobody uses them', async () => {
      const { id } = await me.running();
      backend.box(id).idleSeconds = 4_000;
      [first, second].forEach(({ clock }) => clock.advance(3_600_000));
      await Promise.all([first, second].map((app) => app.app.get(IdleReaper).reap()));
      await me.reach(id, 'PAUSED');
      await Promise.all([first, second].map((app) => app.app.get(IdleReaper).reap()));

      expect(backend.callsOf(id)).toEqual(['start', 'pause']);
    });
  });

  // Last: from here on it does no work, and then it writes no more heartbeats.
  it('a request to a stopping process is left to the others', async () => {
    const { id } = await me.running();
    await first.app.get(SandboxWorker).onModuleDestroy();
    const answer = me.pause(id);
    await until(async () => (await rowOf(id)).status === 'PAUSING');
    // An expired lease still has its owner.
    await until(async () => (await rowOf(id)).lease_owner === null);

    const second = await join();
    expect(await new SandboxesClient(second.url, me.user).reach(id, 'PAUSED')).toMatchObject({ id });
    expect(await answer).toBe(200);
  });

  it('another host is welcome when this one is gone', async () => {
    await first.app.get(HostRegistry).beforeApplicationShutdown();
    await first.dataSource.query(
      `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('test-host', NULL, now() - interval '1 minute')`,
    );

    await expect(join({ HOST_ID: 'second-host' })).resolves.toBeDefined();
  });
});
