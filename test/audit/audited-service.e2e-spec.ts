import { beforeEach, describe, expect, it } from '@jest/globals';
import { AuditRetentionWorker } from '../../src/audit/audit-retention.worker.js';
import type { AuditEntryDto } from '../../src/audit/api/audit.controller.js';
import { newSandboxId } from '../../src/v1/sandboxes/session-key.js';
import { IdleReaper } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { AuditClient } from '../support/audit-client.js';
import type { TestUser } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const SERVICE = { kind: 'service', user_id: null, key_id: null };

describe('what the service does to sandboxes by itself', () => {
  const backend = new ScriptedSandboxBackend();
  const app = useTestApp(
    {
      MAX_RUNNING_SANDBOXES: '1',
      SANDBOX_IDLE_TIMEOUT_SECONDS: '1800',
      SANDBOX_RETENTION_SECONDS: '3600',
      AUDIT_RETENTION_DAYS: '0',
    },
    { sandboxBackend: backend },
  );
  const audit = new AuditClient(app);
  let user: TestUser;
  let me: SandboxesClient;

  beforeEach(async () => {
    user = await app.createUser();
    me = new SandboxesClient(app.url, user);
  });

  const of = (id: string, action: string): Promise<AuditEntryDto[]> =>
    audit.find({ resource_type: 'sandbox', resource_id: id, action });

  it('has a cause where it makes room for another one, and the request that is the occasion', async () => {
    const { id } = await me.running();
    const { headers } = await me.call('POST', '?sandbox_spec_id=slipway');

    expect(await of(id, 'sandbox.pause')).toMatchObject([
      {
        actor: SERVICE,
        owner_user_id: user.id,
        outcome: 'requested',
        request_id: headers.get('x-request-id'),
        details: { cause: 'quota' },
      },
    ]);
  });

  it('has a cause where a sandbox is idle, and later too old; what its user did has none', async () => {
    const { id } = await me.running();
    app.clock.advance(1_800_001);
    backend.box(id).idleSeconds = 1_801;
    await app.app.get(IdleReaper).reap();
    await until(() => backend.box(id).server === null);
    await me.resume(id);
    await me.reach(id, 'RUNNING');
    await me.pause(id);
    await until(async () => {
      const [row] = await app.dataSource.query<{ status: string }[]>(
        'SELECT status FROM sandboxes WHERE id = $1',
        [id],
      );
      return row?.status === 'PAUSED';
    });
    app.clock.advance(3_600_001);
    await app.app.get(IdleReaper).reap();

    const [byUser, byService] = await of(id, 'sandbox.pause');
    expect(byService).toMatchObject({ actor: SERVICE, request_id: null, details: { cause: 'idle' } });
    expect(byUser).toMatchObject({ actor: { kind: 'user', user_id: user.id }, details: {} });
    expect(await of(id, 'sandbox.delete')).toMatchObject([
      { actor: SERVICE, request_id: null, details: { cause: 'retention' } },
    ]);
  });

  it('is not done while no entry can be stored', async () => {
    const { id } = await me.running();
    await audit.whileFull(async () => {
      app.clock.advance(1_800_001);
      backend.box(id).idleSeconds = 1_801;
      await expect(app.app.get(IdleReaper).reap()).rejects.toThrow('audit_entries_full');
      expect(await me.get(id)).toMatchObject({ status: 'RUNNING' });
    });

    await app.app.get(IdleReaper).reap();
    expect(await of(id, 'sandbox.pause')).toHaveLength(1);
  });

  it('stays in the audit for ever where AUDIT_RETENTION_DAYS is 0', async () => {
    await app.dataSource.query(
      `INSERT INTO audit_entries (at, id, action, outcome, actor_kind, owner_user_id, details)
       VALUES ('2019-01-01', gen_random_uuid(), 'sandbox.pause', 'done', 'service', $1, '{}')`,
      [user.id],
    );
    await app.app.get(AuditRetentionWorker).now();

    expect(await audit.find({ owner_user_id: user.id, until: '2020-01-01T00:00:00Z' })).toHaveLength(1);
  });

  it('names orphans before they are removed, once', async () => {
    const { id: known } = await me.running();
    const orphan = newSandboxId();
    const reconcile = (): Promise<void> => app.app.get(SandboxReconciler).now();
    // A turn of its own may find it at any moment.
    await audit.whileFull(async () => {
      await backend.startUnknown({ ...backend.box(known).launch, id: orphan }, app.clock.now() - 61_000);
      await reconcile();
      expect(backend.boxes.has(orphan)).toBe(true);
    });
    await reconcile();

    expect(backend.boxes.has(orphan)).toBe(false);
    expect(await of(orphan, 'sandbox.remove_orphan')).toMatchObject([
      { actor: SERVICE, owner_user_id: null, outcome: 'requested' },
    ]);
  });
});
