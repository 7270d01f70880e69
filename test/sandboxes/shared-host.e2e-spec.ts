import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { DurableJobs } from '../../src/database/jobs/durable-jobs.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { SandboxWorker } from '../../src/v1/sandboxes/lifecycle/sandbox.worker.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';

/** As with an engine that all replicas reach, such as a cluster: one host, one backend, several replicas. */
describe('sandboxes that several replicas look after', () => {
  let backend: ScriptedSandboxBackend;
  let first: TestApp;
  let second: TestApp;
  let me: SandboxesClient;

  beforeEach(async () => {
    backend = new ScriptedSandboxBackend();
    first = await createTestApp({}, undefined, { sandboxBackend: backend });
    second = await createTestApp({}, first.databaseUrl, { sandboxBackend: backend });
    me = new SandboxesClient(first.url, await first.createUser());
  });

  afterEach(async () => {
    await second.close();
    await first.close();
    await backend.close();
  });

  const both = async (work: (app: TestApp) => Promise<void>): Promise<void> => {
    await Promise.all([first, second].map(work));
  };

  const reconcile = (): Promise<void> => both((app) => app.app.get(SandboxReconciler).now());

  it('are removed once when they have no row', async () => {
    const { id } = await me.running();
    const { launch } = backend.box(id);
    await backend.startUnknown({ ...launch, id: 'Orphan' }, Date.now() - 3_600_000);
    await reconcile();
    await until(() => !backend.boxes.has('Orphan'));
    await reconcile();

    expect(backend.callsOf('Orphan')).toEqual(['remove']);
  });

  it('are stopped once when their rows say that they do not run', async () => {
    const { id } = await me.running();
    await me.pause(id);
    await me.reach(id, 'PAUSED');
    await until(() => backend.box(id).server === null);
    const { launch } = backend.box(id);
    await backend.startUnknown(launch, Date.now());
    const before = backend.callsOf(id).length;
    await reconcile();
    await until(() => backend.box(id).server === null);
    await reconcile();

    expect(backend.callsOf(id).slice(before)).toEqual(['pause']);
  });

  it('are paused once when nobody uses them', async () => {
    const { id } = await me.running();
    backend.box(id).idleSeconds = 4_000;
    [first, second].forEach(({ clock }) => clock.advance(3_600_000));
    await both((app) => app.app.get(IdleReaper).reap());
    await me.reach(id, 'PAUSED');
    await both((app) => app.app.get(IdleReaper).reap());

    expect(backend.callsOf(id)).toEqual(['start', 'pause']);
  });

  it('fail once when they end by themselves', async () => {
    const { id } = await me.running();
    await backend.end(id, { code: 3, signal: null, outOfMemory: false });
    await reconcile();

    expect(await me.get(id)).toMatchObject({ status: 'ERROR', status_detail: expect.stringContaining('3') });
    expect(backend.callsOf(id)).toEqual(['start']);
  });

  it('are started by another replica when the first one is killed in the middle of the start', async () => {
    // The replica that was asked does nothing more, and its lease is not renewed.
    backend.script.gate = new Promise<void>(() => undefined);
    const { id } = await me.create();
    await until(() => backend.callsOf(id).includes('start'));
    await first.dataSource.query(`UPDATE sandboxes SET lease_owner = 'killed' WHERE id = $1`, [id]);
    await first.app.get(SandboxWorker).beforeApplicationShutdown();
    backend.script.gate = null;
    second.clock.advance(15_001);

    await new SandboxesClient(second.url, me.user).reach(id, 'RUNNING');
    expect(backend.box(id).starts).toBe(1);
  });
});

describe('starts of conversations', () => {
  it('are worked on by whichever replica there is', async () => {
    const backend = new InProcessSandboxBackend();
    const first = await createTestApp({}, undefined, { sandboxBackend: backend });
    const second = await createTestApp({}, first.databaseUrl, { sandboxBackend: backend });
    const client = new StartsClient(first, first.user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
    // It takes requests, and leaves the work to others: as when it is about to stop.
    await first.app.get(DurableJobs).onModuleDestroy();
    await first.app.get(SandboxWorker).beforeApplicationShutdown();
    const { body } = await request(first.url)
      .post('/api/v1/app-conversations')
      .set(first.user.headers)
      .send({})
      .expect(200);

    expect(await client.reached({ id: body.id }, 'READY')).toMatchObject({ attempt: 1 });
    await second.close();
    await first.close();
    await backend.close();
  });
});
