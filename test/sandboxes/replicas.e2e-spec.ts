import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConfigError } from '../../src/config/config.error.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { HostRegistry } from '../../src/v1/sandboxes/host-identity.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { SandboxWorker } from '../../src/v1/sandboxes/lifecycle/sandbox.worker.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';

describe('sandboxes of several processes', () => {
  let backend: ScriptedSandboxBackend;
  let first: TestApp;
  let me: SandboxesClient;
  const more: TestApp[] = [];

  beforeEach(async () => {
    backend = new ScriptedSandboxBackend();
    first = await createTestApp({}, undefined, { sandboxBackend: backend });
    me = new SandboxesClient(first.url, await first.createUser());
  });

  afterEach(async () => {
    for (const app of more.splice(0)) {
      await app.close();
    }
    await first.close();
    await backend.close();
  });

  async function join(environment: Record<string, string> = {}): Promise<TestApp> {
    const app = await createTestApp(environment, first.databaseUrl, { sandboxBackend: backend });
    more.push(app);
    return app;
  }

  /** As if a process had been killed in the middle of its work: the owner of the lease does not come back. */
  /** @param generation how many starts of it have succeeded */
  async function leaveBehind(id: string, status: string, generation = 1): Promise<void> {
    await first.dataSource.query(
      `UPDATE sandboxes SET status = $2, generation = $3, address = NULL, lease_owner = 'dead',
         lease_until = now() + interval '15 s'
       WHERE id = $1`,
      [id, status, generation],
    );
  }

  async function rowOf(id: string): Promise<{ status: string; lease_owner: string | null }> {
    const [row] = await first.dataSource.query<[{ status: string; lease_owner: string | null }]>(
      'SELECT status, lease_owner FROM sandboxes WHERE id = $1',
      [id],
    );
    return row;
  }

  it('a new process adopts a running sandbox at its current address', async () => {
    const { id } = await me.running();
    const address = await backend.move(id);
    const heard: string[] = [];
    const second = await join();
    second.app.get(SandboxEvents).on('running', (each) => void heard.push(each));

    expect(await second.app.get(RunningSandboxQueries).target(id)).toMatchObject({ address, generation: 1 });
    expect(backend.box(id).starts).toBe(1);
  });

  it('one that died while no process ran is an error before the first request', async () => {
    const { id } = await me.running();
    await backend.end(id, { code: 1, signal: null, outOfMemory: false });
    const second = await join();

    expect(await new SandboxesClient(second.url, me.user).get(id)).toMatchObject({ status: 'ERROR' });
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

      await me.reach(id, reached);
      await until(() => (backend.boxes.get(id)?.server ?? null) === null || reached === 'RUNNING');
      expect(backend.boxes.get(id)?.starts ?? 1).toBe(starts);
    },
  );

  it('no process takes what another one works on', async () => {
    const { id } = await me.running();
    const second = await join();
    const before = backend.calls.length;
    second.clock.stop();
    await leaveBehind(id, 'PAUSING');
    second.clock.advance(10_000);
    await new SandboxesClient(second.url, me.user).running();

    expect(backend.calls.slice(before).filter((call) => call.endsWith(id))).toEqual([]);
  });

  it('one process works on a sandbox, however many there are', async () => {
    await join();
    await join();
    const ids = (await Promise.all(Array.from({ length: 5 }, () => me.create()))).map(({ id }) => id);
    await Promise.all(ids.map((id) => me.reach(id, 'RUNNING')));

    expect(ids.map((id) => backend.callsOf(id))).toEqual(ids.map(() => ['start']));
    expect(ids.map((id) => backend.box(id).starts)).toEqual([1, 1, 1, 1, 1]);
  });

  it('a request to a stopping process is left to the others', async () => {
    const { id } = await me.running();
    await first.app.get(SandboxWorker).beforeApplicationShutdown();
    const answer = me.pause(id);
    await until(async () => (await rowOf(id)).status === 'PAUSING');
    // An expired lease still has its owner.
    await until(async () => (await rowOf(id)).lease_owner === null);

    const second = await join();
    expect(await new SandboxesClient(second.url, me.user).reach(id, 'PAUSED')).toMatchObject({ id });
    expect(await answer).toBe(200);
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

  it('a removal through another process ends a start', async () => {
    const second = await join();
    backend.script.gate = new Promise<void>(() => undefined);
    const { id } = await me.create();
    await until(() => backend.callsOf(id).includes('start'));
    expect(await new SandboxesClient(second.url, me.user).remove(id)).toBe(200);

    await until(() => backend.callsOf(id).includes('remove'));
    expect(await me.get(id)).toBeNull();
  });

  it('a removal waits for no start, however many there are', async () => {
    const { id } = await me.running();
    backend.script.gate = new Promise<void>(() => undefined);
    for (let user = 0; user < 4; user += 1) {
      const client = new SandboxesClient(first.url, await first.createUser());
      await Promise.all([client.create(), client.create(), client.create(), client.create()]);
    }
    await until(() => backend.calls.filter((call) => call.startsWith('start')).length > 12);
    await me.remove(id);
    await until(() => !backend.boxes.has(id));

    expect(backend.callsOf(id)).toEqual(['start', 'remove']);
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

  describe('of another host', () => {
    it('are refused without an address, in one line', async () => {
      const failing = createTestApp({ HOST_ID: 'second-host' }, first.databaseUrl);

      await expect(failing).rejects.toThrow(ConfigError);
      await expect(failing).rejects.toThrow(/^HOST_ID: another host \(test-host, .*SANDBOX_ADDRESS[^\n]*$/);
    });

    it('are welcome with one, and leave the sandboxes of this one alone', async () => {
      const { id } = await me.running();
      const calls = backend.calls.length;
      const second = await join({ HOST_ID: 'second-host', SANDBOX_ADDRESS: '10.0.0.2' });

      expect(await second.app.get(RunningSandboxQueries).target(id)).toMatchObject({ sandboxId: id });
      await new SandboxesClient(second.url, me.user).pause(id);
      await until(() => backend.calls.length > calls);
      expect(backend.callsOf(id)).toEqual(['start', 'pause']);
    });

    it('fail when it is lost before it started them', async () => {
      const { id } = await me.running();
      const { id: well } = await me.running();
      await first.dataSource.query(
        `UPDATE sandboxes SET status = 'STARTING', host_id = 'lost', deadline_at = now() + interval '60 s',
           lease_owner = NULL, lease_until = NULL WHERE id = $1`,
        [id],
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

    it('fail when it is lost and they do not answer', async () => {
      const { id: lost } = await me.running();
      const { id: answering } = await me.running();
      await first.dataSource.query(`UPDATE sandboxes SET host_id = 'lost'`);
      await first.dataSource.query(`UPDATE sandboxes SET address = 'http://127.0.0.1:1' WHERE id = $1`, [
        lost,
      ]);
      const { id: watched } = await me.running();
      await first.dataSource.query(
        `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('there', NULL, now())`,
      );
      await first.dataSource.query(
        `UPDATE sandboxes SET host_id = 'there', address = 'http://127.0.0.1:1' WHERE id = $1`,
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
    });

    it('are forgotten when it was lost for a day before it removed them', async () => {
      const { id: forgotten } = await me.running();
      const { id: early } = await me.running();
      const { id: watched } = await me.running();
      await first.dataSource.query(
        `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('there', NULL, now() - interval '23 hours')`,
      );
      await first.dataSource.query(
        `UPDATE sandboxes SET status = 'DELETING', lease_owner = NULL, lease_until = NULL,
           host_id = CASE WHEN id = $1 THEN 'there' ELSE 'lost' END,
           updated_at = now() - CASE WHEN id = $2 THEN interval '23 hours' ELSE interval '25 hours' END`,
        [watched, early],
      );
      const rows = async (): Promise<string[]> =>
        (await first.dataSource.query<{ id: string }[]>('SELECT id FROM sandboxes ORDER BY created_at')).map(
          ({ id }) => id,
        );
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

    it('are welcome when this one is gone', async () => {
      // It writes no more heartbeats.
      await first.app.get(HostRegistry).beforeApplicationShutdown();
      await first.dataSource.query(
        `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ('test-host', NULL, now() - interval '1 minute')`,
      );

      await expect(join({ HOST_ID: 'second-host' })).resolves.toBeDefined();
    });
  });
});
