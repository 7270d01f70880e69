import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SandboxBackendUnavailableError } from '@slipway/sandboxes/sandbox-backend.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { SandboxWorker } from '../../src/v1/sandboxes/lifecycle/sandbox.worker.js';
import { WarmSandbox, WarmSandboxRepository } from '../../src/v1/sandboxes/warm/warm-sandbox.repository.js';
import { WarmSandboxKeeper } from '../../src/v1/sandboxes/warm/warm-sandbox.keeper.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { egressPolicy } from '../support/egress-policy.js';
import { sandboxLaunch } from '../support/sandbox-launch.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { createTestDatabase, execute, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const HOUR_MS = 3_600_000;
/** The same for every service of a test, whatever port it listens on. */
const CALLBACK = { SANDBOX_CALLBACK_URL: 'http://127.0.0.1:9' };

let backend: ScriptedSandboxBackend;
let database: TestDatabase;
let app: TestApp;
let me: SandboxesClient;

/** @returns the warm sandboxes that are ready then */
async function start(environment: Record<string, string> = {}): Promise<string[]> {
  app = await open({ SANDBOX_WARM: '2', ...environment });
  me = new SandboxesClient(app.url, await app.createUser());
  return await kept();
}

async function open(environment: Record<string, string>): Promise<TestApp> {
  return await createTestApp({ ...CALLBACK, ...environment }, database.url, { sandboxBackend: backend });
}

/** The next service, after this one has ended. */
async function restart(environment: Record<string, string> = {}): Promise<string[]> {
  await app.close();
  return await start(environment);
}

async function kept(of = app): Promise<string[]> {
  await of.app.get(WarmSandboxKeeper).now();
  return await ready(of);
}

async function ready(of = app): Promise<string[]> {
  const rows = await of.dataSource.getRepository(WarmSandbox).findBy({ status: 'READY' });
  return rows.map(({ id }) => id).toSorted();
}

describe('warm sandboxes', () => {
  const machine = new ScriptedSandboxBackend();
  const ENVIRONMENT = { ...CALLBACK, SANDBOX_WARM: '2', MAX_RUNNING_SANDBOXES: '2' };
  const shared = useTestApp(ENVIRONMENT, { sandboxBackend: machine });

  beforeEach(async () => {
    [app, backend] = [shared, machine];
    me = new SandboxesClient(app.url, await app.createUser());
  });

  /** Both, once they are ready. */
  async function two(): Promise<string[]> {
    await until(async () => (await kept()).length === 2);
    return await ready();
  }

  it('are started before anybody asks, belong to nobody, and are what the next request gets, with a key then', async () => {
    const warm = await two();
    expect(await app.app.get(WarmSandboxRepository).countByStatus()).toEqual(new Map([['ready', 2]]));
    expect(warm.map((id) => backend.callsOf(id))).toEqual([['warm'], ['warm']]);
    expect((await me.call('GET', '/search')).body).toMatchObject({ items: [] });
    expect((await me.call('GET', `?id=${warm[0]}`)).body).toEqual([null]);
    expect(await me.remove(warm[0] ?? '')).toBe(404);
    expect(warm.map((each) => backend.box(each).launch.sessionKey)).toEqual(['', '']);

    const { id, session_api_key: key } = await me.running();
    expect(warm).toContain(id);
    expect(key).toMatch(/^[0-9A-Za-z]{43}$/);
    expect(backend.box(id).launch.sessionKey).toBe(key);
    const stranger = new SandboxesClient(app.url, await app.createUser());
    expect([await stranger.get(id), await stranger.remove(id)]).toEqual([null, 404]);
    expect(backend.callsOf(id)).toEqual(['warm', 'start']);
    expect(backend.box(id)).toMatchObject({ starts: 1, assigned: true });
    // It counts towards the quota now; the others do not.
    expect((await me.call('GET', '/search')).body).toMatchObject({ items: [{ id, status: 'RUNNING' }] });
    expect(await ready()).toEqual(expect.arrayContaining(warm.filter((each) => each !== id)));
    expect(await two()).not.toContain(id);
  });

  it('are not for starts that their settings do not allow, however many', async () => {
    const warm = await two();
    const client = new StartsClient(app, me.user);
    for (let count = 0; count < 4; count += 1) {
      await client.reached(await client.start(), 'ERROR');
    }
    expect(await ready()).toEqual(warm);
    await client.settings({ llm_model: 'openai/scripted', llm_api_key: 'sk-warm' });
    expect(warm).toContain((await client.start()).sandboxId);
  });

  it('go back when the request that claimed one fails', async () => {
    const warm = await two();
    const repository = app.app.get(WarmSandboxRepository);
    const [row] = await app.dataSource.getRepository(WarmSandbox).find();
    const claim = app.dataSource.transaction(async (manager) => {
      const claimed = await repository.claim(manager, row?.fingerprint ?? '');
      expect(warm).toContain(claimed?.id);
      throw new Error('the request failed');
    });
    await expect(claim).rejects.toThrow('the request failed');
    expect(await ready()).toEqual(warm);
  });

  it('are left alone by starts whose settings ask for something else', async () => {
    const warm = await two();
    const store = async (settings: object) => {
      const headers = { ...me.user.headers, 'Content-Type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(settings) };
      expect((await fetch(`${app.url}/api/settings`, init)).status).toBe(200);
    };
    await store({ remote_runtime_resource_factor: 2 });
    const { id } = await me.running();
    expect(backend.callsOf(id)).toEqual(['start']);
    expect(await ready()).toEqual(warm);
    // An image has no effect on process sandboxes, so what is warm is what would be started.
    await store({ remote_runtime_resource_factor: 1, sandbox_runtime_container_image: 'an-image' });
    const claimed = await me.running();
    expect(warm).toContain(claimed.id);
    expect(claimed.status_detail).toMatch(/an-image .* has no effect/);
  });

  it('that ended just before they were claimed are started anew within the same start', async () => {
    for (const id of await two()) {
      await backend.end(id, { code: 1, signal: null, outOfMemory: false });
    }
    const { id } = await me.running();
    expect(backend.callsOf(id)).toEqual(['warm', 'pause', 'resume']);
    expect(backend.box(id).launch.sessionKey).toBe((await me.get(id))?.session_api_key);
    // The other one, which nobody has claimed, is replaced when its pause is over.
    await kept();
    app.clock.advance(2_000);
    await two();
  });

  it('of a host that is gone are forgotten', async () => {
    await two();
    await app.dataSource.query(
      `INSERT INTO warm_sandboxes (id, spec_id, fingerprint, status, backend, host_id, created_at)
       VALUES ('lost', 'slipway', 'f', 'READY', 'process', 'host-of-nobody', now())`,
    );
    await kept();
    expect(await app.app.get(WarmSandboxRepository).exists('lost')).toBe(false);
  });

  it('are never more than they should be, and are handed out once, however many replicas keep them', async () => {
    const replica = await createTestApp(ENVIRONMENT, app.databaseUrl, { sandboxBackend: machine });
    try {
      await me.running();
      await me.running();
      await Promise.all([app, replica].map(async (each) => await kept(each)));
      const warm = await two();
      expect([...backend.boxes.values()].filter(({ assigned, server }) => server && !assigned)).toHaveLength(
        2,
      );
      const created = Array.from({ length: 6 }, async (_none, index) => {
        const client = new SandboxesClient([app, replica][index % 2]?.url ?? '', await app.createUser());
        const { id } = await client.create();
        await client.reach(id, 'RUNNING');
        return id;
      });
      const ids = await Promise.all(created);
      expect(new Set(ids).size).toBe(6);
      expect(ids).toEqual(expect.arrayContaining(warm));
      expect(ids.map((id) => backend.box(id).starts)).toEqual(ids.map(() => 1));
    } finally {
      await replica.close();
    }
  });

  it('are tried again later and later when they end or cannot be started, and hold up nobody', async () => {
    const warm = await two();
    app.clock.stop();
    for (const id of warm) {
      await backend.end(id, { code: 1, signal: null, outOfMemory: false });
    }
    const starts = (): number => backend.calls.filter((call) => call.startsWith('warm')).length;
    const before = starts();
    backend.script.failure = 'There is no room.';
    expect([await kept(), starts()]).toEqual([[], before]);
    app.clock.advance(4_000);
    await until(async () => (await kept()).length === 0 && starts() > before);
    const failed = starts();
    app.clock.advance(4_000);
    expect([await kept(), starts()]).toEqual([[], failed]);
    backend.script.failure = null;
    expect(backend.callsOf((await me.running()).id)).toEqual(['start']);
    await two();
    app.clock.resume();
  });

  it('are neither idle nor orphans, however long they wait', async () => {
    const warm = await two();
    for (const id of warm) {
      backend.box(id).createdAt = 0;
      backend.box(id).idleSeconds = 1_000_000;
    }
    app.clock.advance(48 * HOUR_MS);
    await app.app.get(IdleReaper).reap();
    await app.app.get(SandboxReconciler).now();
    expect(await kept()).toEqual(warm);
    expect(warm.map((id) => backend.callsOf(id))).toEqual([['warm'], ['warm']]);
  });
});

describe('warm sandboxes with a way out of their own', () => {
  const machine = new ScriptedSandboxBackend();
  const shared = useTestApp(
    { ...CALLBACK, SANDBOX_WARM: '1', SANDBOX_CREDENTIALS: 'outside' },
    { sandboxBackend: machine },
  );

  beforeEach(async () => {
    [app, backend] = [shared, machine];
    me = new SandboxesClient(app.url, await app.createUser());
  });

  async function one(): Promise<string> {
    await until(async () => (await kept()).length === 1);
    return (await ready())[0] ?? '';
  }

  it('deny everything, and no proxy keeps that: from their claim on they have the rules of their owner', async () => {
    const warm = await one();
    const { egress } = backend.box(warm).launch;
    expect(egress).toMatchObject({ isOnlyWay: false, authority: expect.stringContaining('CERTIFICATE') });
    const { authority, ...before } = await egressPolicy(app, backend, warm);
    expect(before).toEqual({
      sandbox: warm,
      phase: 'setup',
      layers: [{ default: 'deny', allow: [], deny: [] }],
      injections: [],
      networks: [],
      once: [],
      maxAgeSeconds: 0,
    });

    expect((await me.running()).id).toBe(warm);
    expect(backend.callsOf(warm)).toEqual(['warm', 'start']);
    expect(backend.box(warm).launch.egress).toEqual(egress);
    expect(await egressPolicy(app, backend, warm)).toMatchObject({ layers: [], phase: 'agent', authority });
    await me.restart(warm);
    expect(backend.box(warm).launch.egress).toEqual(egress);
  });

  it('have each their own, and nothing that is known before they are started', async () => {
    const first = await one();
    const { egress } = backend.box(first).launch;
    await me.running();
    const second = await one();
    const other = backend.box(second).launch.egress;
    expect(other?.credential).not.toBe(egress?.credential);
    expect(other?.authority).not.toBe(egress?.authority);
    const rows = await app.dataSource.getRepository(WarmSandbox).find();
    expect(JSON.stringify(rows)).not.toMatch(/PRIVATE KEY/);
  });

  it('are left to others by who has rules, where their network is open', async () => {
    const warm = await one();
    const client = new StartsClient(app, me.user);
    await client.settings({ llm_model: 'openai/scripted', llm_api_key: 'sk-warm' });
    const ruled = await client.start({ egress: { allow: ['npm'] } });
    expect(ruled.sandboxId).not.toBe(warm);
    expect(await ready()).toEqual([warm]);
    expect((await client.start()).sandboxId).toBe(warm);
  });
});

describe('warm sandboxes of one service after another', () => {
  beforeEach(async () => {
    backend = new ScriptedSandboxBackend();
    database = await createTestDatabase();
  });

  afterEach(async () => {
    await app.close();
    await backend.close();
    await database.drop();
  });

  it('are finished by the next process when theirs dies while it starts them', async () => {
    const gate = Promise.withResolvers<void>();
    backend.script.gate = gate.promise;
    app = await open({ SANDBOX_WARM: '1' });
    void app.app.get(WarmSandboxKeeper).now();
    await until(() => backend.calls.some((call) => call.startsWith('warm')));
    const [{ id } = { id: '' }] = await app.dataSource
      .getRepository(WarmSandbox)
      .findBy({ status: 'STARTING' });
    await app.close();
    gate.resolve();
    backend.script.gate = null;
    const { sessionKey: _key, ...warm } = sandboxLaunch({ id });
    await backend.warm.start(warm, new AbortController().signal);
    expect(await start({ SANDBOX_WARM: '1' })).toEqual([id]);
  });

  it('are kept over a restart, replaced where something else would be started now, and removed when their number shrinks', async () => {
    const warm = await start({ SANDBOX_WARM: '3' });
    const two = await restart();
    expect(two).toHaveLength(2);
    expect(warm).toEqual(expect.arrayContaining(two));
    expect([...backend.boxes.keys()].toSorted()).toEqual(two);

    // At first beside the new ones: another replica may still hand them out.
    const callback = { SANDBOX_CALLBACK_URL: 'http://127.0.0.1:10' };
    expect(await restart(callback)).toHaveLength(4);
    app.clock.advance(60_000);
    const now = await kept();
    expect(now).toHaveLength(2);
    expect(now.filter((id) => two.includes(id))).toEqual([]);
    expect([...backend.boxes.keys()].toSorted()).toEqual(now);
    const claimed = [(await me.running()).id];
    expect(backend.box(claimed[0] ?? '').launch.callbackUrl).toContain(':10/');

    const outside = { ...callback, SANDBOX_CREDENTIALS: 'outside' };
    const ruled = {
      ...outside,
      SANDBOX_EGRESS_PORT: '3181',
      SANDBOX_EGRESS: '{"allow":[{"host":"a.example","methods":["GET"]}]}',
    };
    for (const changed of [outside, { ...outside, SANDBOX_EGRESS_PORT: '3181' }, ruled]) {
      // The one that takes the place of the claimed one is made aside.
      await kept();
      const known = new Set(backend.boxes.keys());
      await restart(changed);
      const { id } = await me.running();
      expect(known).not.toContain(id);
      expect(backend.callsOf(id)).toEqual(['warm', 'start']);
      claimed.push(id);
    }

    // A user with rules gets one too, where the operator has some.
    const ways = (await kept()).map((id) => backend.box(id).launch.egress);
    expect(ways).toContainEqual(expect.objectContaining({ isOnlyWay: true }));
    const client = new StartsClient(app, me.user);
    await client.settings({ llm_model: 'openai/scripted', llm_api_key: 'sk-warm' });
    const { sandboxId } = await client.start({ egress: { allow: ['b.example'] } });
    expect(backend.callsOf(sandboxId)[0]).toBe('warm');
    const { layers } = await egressPolicy(app, backend, sandboxId);
    expect(layers.map(({ allow }) => allow[0]?.host)).toEqual(['a.example', 'b.example']);
    claimed.push(sandboxId);

    expect(await restart({ SANDBOX_WARM: '0' })).toEqual([]);
    expect([...backend.boxes.keys()].toSorted()).toEqual(claimed.toSorted());
  });

  it('that were claimed end, if their way out would be another one by then, at whichever attempt', async () => {
    const warm = await start({ SANDBOX_CREDENTIALS: 'outside' });
    const gate = Promise.withResolvers<void>();
    backend.script.gate = gate.promise;
    expect([(await me.create()).id, (await me.create()).id].toSorted()).toEqual(warm);
    await until(() => warm.every((id) => backend.callsOf(id).includes('start')));
    const { user } = me;
    await app.close();
    const attempts = `CASE WHEN id = '${warm[0]}' THEN 1 ELSE 0 END`;
    await execute(database.url, `UPDATE sandboxes SET attempts = ${attempts}`);
    backend.script.gate = null;
    const away = new SandboxBackendUnavailableError('It is away.');
    const pauses = jest.spyOn(backend, 'pause').mockRejectedValueOnce(away).mockRejectedValueOnce(away);
    app = await open({ SANDBOX_CREDENTIALS: 'inside' });
    const released = 'SELECT FROM sandboxes WHERE lease_owner IS NULL';
    await until(
      async () =>
        pauses.mock.calls.length > 1 && (await app.dataSource.query<unknown[]>(released)).length === 2,
    );
    app.clock.advance(5_000);
    await app.app.get(SandboxWorker).now();
    for (const id of warm) {
      await new SandboxesClient(app.url, user).reach(id, 'RUNNING');
      expect(backend.callsOf(id)).toEqual(['warm', 'start', 'pause', 'pause', 'resume']);
      expect(backend.box(id).launch.egress).toBeUndefined();
    }
  });

  it('are not offered once more by a restored database, whether they run or are paused', async () => {
    const warm = await start();
    const backup = await app.dataSource.getRepository(WarmSandbox).find();
    const { id: paused } = await me.running();
    await me.running();
    await me.pause(paused);
    await me.reach(paused, 'PAUSED');
    await app.dataSource.query('DELETE FROM sandboxes');
    await app.dataSource.query('DELETE FROM warm_sandboxes');
    await app.dataSource.getRepository(WarmSandbox).insert(backup);
    await restart();

    for (const id of [(await me.running()).id, (await me.running()).id]) {
      expect(warm).not.toContain(id);
    }
    // As any other without a row, they stay for a while.
    expect(warm.flatMap((id) => backend.callsOf(id))).not.toContain('remove');
  });
});
