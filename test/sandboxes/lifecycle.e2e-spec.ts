import { beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RemovedUsersWorker } from '../../src/auth/removed-users.worker.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { SandboxEvents, SANDBOXES_CHANNEL } from '../../src/v1/sandboxes/sandbox-events.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import {
  FIRST_ROW,
  SandboxLifecycleRepository,
} from '../../src/v1/sandboxes/sandbox-lifecycle.repository.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { SandboxKeyQueries } from '../../src/v1/sandboxes/sandbox-key.guard.js';
import { SandboxRepository } from '../../src/v1/sandboxes/sandbox.repository.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

describe('the life of a sandbox', () => {
  const backend = new ScriptedSandboxBackend();
  const heard: string[] = [];
  const app = useTestApp({ MAX_RUNNING_SANDBOXES: '20' }, { sandboxBackend: backend });
  let me: SandboxesClient;

  beforeAll(() => {
    const listeners = app.app.get(SandboxEvents);
    listeners.on('running', (id) => void heard.push(`running ${id}`));
    listeners.on('stopped', (id) => void heard.push(`stopped ${id}`));
    listeners.on('stopping', async (id) => {
      const target = await app.app.get(RunningSandboxQueries).lastTarget(id);
      heard.push(`before ${id} ${target === null ? 'unreachable' : 'reachable'}`);
    });
  });

  beforeEach(async () => {
    backend.script = { failure: null, exit: null, unresponsive: false, gate: null, progress: [] };
    backend.broken = null;
    backend.pauseGate = null;
    me = new SandboxesClient(app.url, await app.createUser());
  });

  const heardOf = (id: string): string[] =>
    heard.filter((line) => line.includes(id)).map((line) => line.replace(` ${id}`, ''));
  const reconcile = () => app.app.get(SandboxReconciler).now();
  /** Has workers look at once, as they do by themselves within a second. */
  const wake = () => app.app.get(SandboxLifecycleRepository).leases.wake();
  /** A start that does not finish by itself. */
  const heldStart = async (): Promise<string> => {
    backend.script.gate = new Promise<void>(() => undefined);
    const { id } = await me.create();
    await until(() => backend.callsOf(id).includes('start'));
    return id;
  };
  /** A pause that goes on until the gate opens. */
  const heldPause = async (id: string) => {
    const gate = Promise.withResolvers<void>();
    backend.pauseGate = gate.promise;
    const answer = me.pause(id);
    await until(() => backend.callsOf(id).includes('pause'));
    return { gate, answer };
  };

  describe('start', () => {
    it('is an error with its cause when the backend refuses, and possible again by a resume', async () => {
      backend.script.failure = 'The image mine:1 is not there.';
      const { id } = await me.create();

      expect(await me.reach(id, 'ERROR')).toMatchObject({
        status_detail: 'The image mine:1 is not there.',
        session_api_key: null,
        exposed_urls: null,
      });
      backend.script.failure = null;
      expect(await me.resume(id)).toBe(200);
      expect(await me.reach(id, 'RUNNING')).toMatchObject({ status_detail: null });
    });

    it('is an error at once when the program ends, with exit code and last lines', async () => {
      backend.script.exit = { code: 127, signal: null, outOfMemory: false };
      const { id } = await me.create();
      const { status_detail: detail } = await me.reach(id, 'ERROR');

      expect(detail).toContain('exit code 127');
      expect(detail).toContain('it is broken');
    });

    it('is an error that names the address when the agent server never answers, and stops the program', async () => {
      backend.script.unresponsive = true;
      const { id } = await me.create();
      await until(() => backend.boxes.has(id));
      app.clock.advance(61_000);
      const { status_detail: detail } = await me.reach(id, 'ERROR');

      expect(detail).toMatch(/did not answer at http:\/\/127\.0\.0\.1:\d+\/alive within 60 s/);
      await until(() => backend.box(id).server === null);
    });

    it('shows progress, which extends the deadline', async () => {
      const gate = Promise.withResolvers<void>();
      backend.script.gate = gate.promise;
      backend.script.progress = ['Pulling mine:1: 10 of 40 MB'];
      const { id } = await me.create();
      await until(async () => (await me.get(id))?.status_detail === 'Pulling mine:1: 10 of 40 MB');
      gate.resolve();

      expect(await me.reach(id, 'RUNNING')).toMatchObject({ status_detail: null });
    });

    it('is an error when the backend hangs', async () => {
      const id = await heldStart();
      app.clock.advance(61_000);

      expect((await me.reach(id, 'ERROR')).status_detail).toContain('longer than 60 s');
    });

    it('is MISSING when its files are gone', async () => {
      const { id } = await me.running();
      await me.pause(id);
      await until(() => backend.box(id).server === null);
      await until(async () => (await rowOf(id)).status === 'PAUSED');
      backend.boxes.delete(id);
      await me.resume(id);

      await until(async () => {
        await reconcile();
        return (await rowOf(id)).status === 'MISSING';
      });
      expect((await me.get(id))?.status_detail).toContain('files are gone');
    });
  });

  describe('stop', () => {
    it('of one of another host is told to the workers there', async () => {
      const told: string[] = [];
      const { id } = await new ConversationRows(app).sandbox((await app.createUser()).id);
      app.app
        .get(DatabaseNotifications, { strict: false })
        .listen(SANDBOXES_CHANNEL, (host) => void told.push(host));
      expect(await app.app.get(SandboxRepository).transition(id, 'pause')).toBe(true);

      await until(() => told.includes('a-host-of-nobody'));
    });

    it('is shown, answered and announced once the backend has stopped it, and not before', async () => {
      const { id, exposed_urls: urls, session_api_key: key } = await me.running();
      const { gate, answer } = await heldPause(id);
      expect(backend.box(id).server).not.toBeNull();
      expect(await me.get(id)).toMatchObject({ status: 'RUNNING', exposed_urls: urls, session_api_key: key });
      gate.resolve();
      expect(await answer).toBe(200);

      expect(backend.box(id).server).toBeNull();
      expect(await me.get(id)).toMatchObject({
        status: 'PAUSED',
        exposed_urls: null,
        session_api_key: null,
      });
      await until(() => heardOf(id).includes('stopped'));
      expect(heardOf(id)).toEqual(['running', 'before reachable', 'stopped']);
    });

    it('of a start interrupts it, and is shown as STARTING until then', async () => {
      const id = await heldStart();
      const gate = Promise.withResolvers<void>();
      backend.pauseGate = gate.promise;
      const answer = me.pause(id);
      await until(async () => (await rowOf(id)).status === 'PAUSING');
      expect(await me.get(id)).toMatchObject({
        status: 'STARTING',
        exposed_urls: null,
        session_api_key: null,
      });
      gate.resolve();
      expect(await answer).toBe(200);
      expect(await me.get(id)).toMatchObject({ status: 'PAUSED' });
      expect(backend.boxes.has(id)).toBe(false);
      backend.script.gate = null;
      await me.resume(id);
      await me.reach(id, 'RUNNING');
    });

    it('is superseded by a resume', async () => {
      const { id } = await me.running();
      const { gate, answer } = await heldPause(id);
      await me.resume(id);
      expect(await answer).toBe(200);
      gate.resolve();
      await me.reach(id, 'RUNNING');

      expect(backend.box(id).starts).toBe(2);
      expect((await rowOf(id)).generation).toBe(2);
    });

    it('is retried when it fails, and is an error after its deadline', async () => {
      const { id } = await me.running();
      backend.broken = 'The engine does not answer.';
      const answer = me.pause(id);
      await until(() => backend.callsOf(id).includes('pause'));
      await until(async () => (await rowOf(id)).lease_owner === null);
      expect((await rowOf(id)).status).toBe('PAUSING');
      app.clock.advance(121_000);
      await wake();

      expect((await me.reach(id, 'ERROR')).status_detail).toContain('could not be stopped: The engine');
      expect(await answer).toBe(200);
    });
  });

  describe('removal', () => {
    it('interrupts a start', async () => {
      const id = await heldStart();
      expect(await me.remove(id)).toBe(200);

      await until(async () => (await rows(id)).length === 0);
      expect(backend.callsOf(id)).toEqual(['start', 'remove']);
    });

    it('works while it is being stopped', async () => {
      const { id } = await me.running();
      const { gate, answer } = await heldPause(id);
      await me.remove(id);
      expect(await answer).toBe(200);
      gate.resolve();

      await until(async () => (await rows(id)).length === 0);
      expect(backend.boxes.has(id)).toBe(false);
    });

    it('is retried until it succeeds, and hidden meanwhile', async () => {
      const { id } = await me.running();
      const key = backend.box(id).launch.sessionKey;
      backend.broken = 'The engine does not answer.';
      await me.remove(id);
      const { updated_at: removedAt } = await rowOf(id);
      await until(async () => {
        const { lease_owner: worker, due_at: dueAt } = await rowOf(id);
        return worker === null && dueAt.getTime() > app.clock.now();
      });
      // A lease is no change of the sandbox.
      expect((await rowOf(id)).updated_at).toEqual(removedAt);
      expect(await me.get(id)).toBeNull();
      expect(await app.app.get(SandboxKeyQueries).find(key)).toBeNull();
      backend.broken = null;
      app.clock.advance(6_000);
      await wake();

      await until(async () => (await rows(id)).length === 0);
      expect(heardOf(id)).toContain('before reachable');
    });
  });

  describe('reconciliation with the backend', () => {
    it('finds a program that ended by itself, whose sandbox can be removed', async () => {
      const { id } = await me.running();
      await backend.end(id, { code: 137, signal: null, outOfMemory: true });
      await reconcile();

      expect(await me.get(id)).toMatchObject({
        status: 'ERROR',
        status_detail: expect.stringContaining('out of memory, exit code 137'),
        session_api_key: null,
      });
      expect(heardOf(id)).toEqual(['running', 'stopped']);
      expect(await app.app.get(RunningSandboxQueries).target(id)).toBeNull();
      await me.remove(id);
      await until(async () => (await rows(id)).length === 0);
      expect(backend.boxes.has(id)).toBe(false);
    });

    it('finds a sandbox that is gone', async () => {
      const { id } = await me.running();
      await backend.end(id, null);
      backend.boxes.delete(id);
      await reconcile();
      await reconcile();

      expect(await me.get(id)).toMatchObject({
        status: 'MISSING',
        status_detail:
          'Its files are gone, so it cannot be started again. Delete it; its conversations stay readable. ' +
          'Before that: It vanished while it ran: something else removed it.',
      });
      await me.remove(id);
      await until(async () => (await me.get(id)) === null);
    });

    it('finds a paused sandbox that is gone, and that it is back', async () => {
      const { id } = await me.running();
      await me.pause(id);
      await until(async () => (await rowOf(id)).status === 'PAUSED');
      const box = backend.box(id);
      backend.boxes.delete(id);
      await reconcile();
      expect(await me.get(id)).toMatchObject({ status: 'MISSING' });

      backend.boxes.set(id, box);
      await reconcile();
      expect(await me.get(id)).toMatchObject({
        status: 'PAUSED',
        status_detail: expect.stringContaining('not there for a while'),
      });
      await me.resume(id);
      await me.reach(id, 'RUNNING');
    });

    it('reads the rows of many stopped sandboxes in parts', async () => {
      await app.dataSource.query(
        `INSERT INTO sandboxes (id, user_id, spec_id, status, backend, host_id, session_key, session_key_hash, last_activity_at,
           generation, updated_at)
         SELECT 'stopped' || n, $1, 'slipway', CASE WHEN n % 3 = 0 THEN 'MISSING' ELSE 'PAUSED' END, 'process', 'many-stopped', '',
           decode(md5('stopped' || n), 'hex'), now(), n % 2, now() - n / 10 * interval '1 minute'
         FROM generate_series(1, 4500) AS n`,
        [me.user.id],
      );
      await app.dataSource.query('ANALYZE sandboxes');
      const queries = app.app.get(SandboxLifecycleRepository, { strict: false });
      const spy = jest.spyOn(app.dataSource, 'query');
      const ids = new Set<string>();
      const sizes: number[] = [];
      let after = FIRST_ROW;
      do {
        const { rows, until: next } = await queries.expected('many-stopped', 'process', ['stopped1'], after);
        rows.forEach(({ id }) => ids.add(id));
        sizes.push(rows.length);
        after = next;
      } while (after !== FIRST_ROW && sizes.length < 100);
      const [sql = ''] =
        spy.mock.calls.find(([, values]) => JSON.stringify(values).includes('many-stopped')) ?? [];
      spy.mockRestore();

      expect(ids.size).toBe(4_500);
      expect(sizes).toHaveLength(5);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_001);
      const plan = JSON.stringify(
        await app.dataSource.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, [
          'many-stopped',
          'process',
          ['stopped1'],
          '-infinity',
          '',
        ]),
      );
      expect(plan).toContain('sandboxes_stopped_idx');
      const read = [...plan.matchAll(/"Actual Rows":([\d.]+),"Actual Loops":(\d+)/g)].map(
        ([, rows, loops]) => Number(rows) * Number(loops),
      );
      expect(Math.max(...read)).toBeGreaterThanOrEqual(1_000);
      expect(Math.max(...read)).toBeLessThan(1_100);
      await app.dataSource.query(`DELETE FROM sandboxes WHERE host_id = 'many-stopped'`);
    });

    it('fails a sandbox that says it is at another address than one may have', async () => {
      const { id } = await me.running();
      const target = app.app.get(RunningSandboxQueries);
      const before = await target.target(id);
      backend.reported.set(id, 'http://127.0.0.1:1/path');
      await reconcile();

      expect(await me.get(id)).toMatchObject({
        status: 'ERROR',
        status_detail: expect.stringContaining('reported an invalid address'),
      });
      expect(before?.address).toMatch(/^http:/);
      expect(await target.target(id)).toBeNull();
      backend.reported.delete(id);
      // The worker that noted the error may still hold the lease, so a round may skip the sandbox.
      await until(async () => {
        await reconcile();
        return (await backend.inspect(id)).state === 'stopped';
      });
    });

    // As after a restore of a backup from before its last start.
    it('stops a sandbox whose agent server has another key', async () => {
      const { id } = await me.running();
      backend.box(id).launch = { ...backend.box(id).launch, sessionKey: 'the next key' };
      // Those that are idle for long are asked.
      await app.dataSource.query('UPDATE sandboxes SET last_activity_at = $1 WHERE id = $2', [
        new Date(0),
        id,
      ]);
      // A look may be another one that is under way, and has passed this sandbox.
      await until(async () => {
        await app.app.get(IdleReaper).reap();
        return (await me.get(id))?.status === 'ERROR';
      });

      const { status_detail: detail } = await me.reach(id, 'ERROR');
      expect(detail).toMatch(/does not take its key.* Resuming starts it again/);
      await until(async () => {
        await reconcile();
        return backend.box(id).server === null;
      });
      expect(await me.resume(id)).toBe(200);
      await me.reach(id, 'RUNNING');
    });

    it('ends what takes room in place of a program that has ended', async () => {
      const { id } = await me.running();
      backend.replaced.add(id);
      await backend.end(id, { code: null, signal: null, outOfMemory: false });
      await reconcile();
      await me.reach(id, 'ERROR');
      await until(async () => {
        await reconcile();
        return backend.replaced.size === 0;
      });
      expect(backend.callsOf(id)).toEqual(['start', 'pause']);
    });

    it('finds a program that ended while it stops a left-over one', async () => {
      const { id: stopping } = await me.running();
      const { id: ending } = await me.running();
      await me.pause(stopping);
      await until(async () => {
        const { status, lease_owner: worker } = await rowOf(stopping);
        return status === 'PAUSED' && worker === null;
      });
      const gate = Promise.withResolvers<void>();
      backend.pauseGate = gate.promise;
      await backend.move(stopping);
      const before = backend.calls.length;
      void reconcile();
      await until(() => backend.calls.slice(before).includes(`pause ${stopping}`));
      await backend.end(ending, { code: 1, signal: null, outOfMemory: false });
      void reconcile();

      await me.reach(ending, 'ERROR');
      backend.pauseGate = null;
      gate.resolve();
      await until(() => backend.box(stopping).server === null);
      expect(backend.calls.slice(before).filter((call) => call === `pause ${stopping}`)).toHaveLength(1);
      expect((await rowOf(stopping)).lease_owner).toBeNull();
    });

    it('ends the sandboxes of a removed user once they were kept for a day', async () => {
      const { id } = await me.running();
      backend.box(id).createdAt = app.clock.now() - 61_000;
      const response = await fetch(`${app.url}/api/v1/users/${me.user.id}`, {
        method: 'DELETE',
        headers: app.admin.headers,
      });
      expect(response.status).toBe(204);
      await reconcile();
      expect(backend.boxes.has(id)).toBe(true);
      app.clock.advance(86_401_000);
      await app.app.get(RemovedUsersWorker).work();
      await reconcile();

      expect(backend.boxes.has(id)).toBe(false);
    });
  });

  it('knows a sandbox by its key, and whether it runs, and keeps no key in clear', async () => {
    const { id } = await me.running();
    const keys = app.app.get(SandboxKeyQueries);
    const key = backend.box(id).launch.sessionKey;

    const found = { sandboxId: id, userId: me.user.id, cause: null, hasCredentialsOutside: false };
    expect(await keys.find(key)).toEqual({ ...found, running: true });
    expect(await keys.find(`${key}x`)).toBeNull();
    await me.pause(id);
    expect(await keys.find(key)).toEqual({ ...found, running: false });
    const [row] = await app.dataSource.query('SELECT sandboxes::text AS text FROM sandboxes WHERE id = $1', [
      id,
    ]);
    expect(row.text).toContain(id);
    expect(row.text).not.toContain(key);
  });

  interface Row {
    status: string;
    generation: number;
    lease_owner: string | null;
    due_at: Date;
    updated_at: Date;
  }

  async function rows(id: string): Promise<Row[]> {
    return app.dataSource.query<Row[]>(
      'SELECT status, generation, lease_owner, due_at, updated_at FROM sandboxes WHERE id = $1',
      [id],
    );
  }

  async function rowOf(id: string): Promise<Row> {
    const [row] = await rows(id);
    if (!row) {
      throw new Error(`no row of ${id}`);
    }
    return row;
  }
});
