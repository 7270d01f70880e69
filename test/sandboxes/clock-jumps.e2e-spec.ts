import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  SANDBOX_LEASE_MS,
  SandboxLifecycleRepository,
} from '../../src/v1/sandboxes/sandbox-lifecycle.repository.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const HOUR_MS = 3_600_000;

describe('a clock of the machine that is set anew', () => {
  const backend = new ScriptedSandboxBackend();
  const gate = Promise.withResolvers<void>();
  let second: TestApp;
  let started: { id: string };

  afterAll(async () => {
    gate.resolve();
    await second.close();
  });
  const first = useTestApp({}, { sandboxBackend: backend, ownClock: true });

  beforeAll(async () => {
    second = await createTestApp({}, first.databaseUrl, { sandboxBackend: backend, ownClock: true });
    backend.script.gate = gate.promise;
    started = await new SandboxesClient(first.url, first.user).create();
    await until(() => backend.callsOf(started.id).includes('start'));
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  function setClock(byMs: number): void {
    const { now } = Date;
    jest.spyOn(Date, 'now').mockImplementation(() => now() + byMs);
  }

  /** Until when the lease lasts, and how many seconds that is on the clock of the database. */
  async function lease(): Promise<{ until: string; seconds: number }> {
    const [row] = await first.dataSource.query<[{ until: string; seconds: number }]>(
      `SELECT lease_until::text AS until, extract(epoch FROM lease_until - now())::float AS seconds
       FROM sandboxes WHERE id = $1`,
      [started.id],
    );
    return row;
  }

  it.each([HOUR_MS, -HOUR_MS])(
    'by %d ms takes no lease from anybody, and makes none last longer or shorter',
    async (byMs) => {
      const before = (await lease()).until;
      setClock(byMs);
      const { leases } = second.app.get(SandboxLifecycleRepository);
      const { rows: taken } = await leases.take({ limit: 10, share: 10, leaseMs: 15_000, held: [] });
      expect([taken, backend.callsOf(started.id)]).toEqual([[], ['start']]);
      let after = await lease();
      // The worker renews it with its next look.
      await until(async () => {
        after = await lease();
        return after.until !== before;
      });

      expect(Math.abs(after.seconds - SANDBOX_LEASE_MS / 1_000)).toBeLessThan(60);
    },
  );
});
