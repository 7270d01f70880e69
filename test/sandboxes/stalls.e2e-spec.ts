import { beforeEach, describe, expect, it } from '@jest/globals';
import { StepInterrupted } from '../../src/v1/sandboxes/lifecycle/sandbox-starter.js';
import { SandboxTransitionsRunner } from '../../src/v1/sandboxes/lifecycle/sandbox-transitions.runner.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { SandboxRepository } from '../../src/v1/sandboxes/sandbox.repository.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { useTestApp } from '../support/use-test-app.js';

/** A process that stalls notices nothing: its checks run after the step that it was in the middle of. */
const UNNOTICED = new AbortController().signal;

describe('a process that stalled for longer than its lease', () => {
  const backend = new ScriptedSandboxBackend();
  const app = useTestApp({}, { sandboxBackend: backend });
  let me: SandboxesClient;
  let id: string;

  beforeEach(async () => {
    me = new SandboxesClient(app.url, await app.createUser());
    ({ id } = await me.running());
    backend.calls.length = 0;
  });

  async function row(): Promise<Sandbox> {
    const found = await app.app.get(SandboxRepository).read(id);
    return found ?? Promise.reject(new Error('the sandbox is gone'));
  }

  /** Goes on with the work on the row as it was before the stall. */
  async function goOn(before: Partial<Sandbox>): Promise<unknown> {
    const taken = Object.assign(await row(), { leaseOwner: 'stalled' }, before);
    return app.app
      .get(SandboxTransitionsRunner)
      .run(taken, UNNOTICED)
      .then(
        () => null,
        (error: unknown) => error,
      );
  }

  async function expectItRunsAsBefore(): Promise<void> {
    expect(backend.callsOf(id)).not.toContain('pause');
    expect(backend.box(id)).toMatchObject({ starts: 1, server: expect.anything() });
    expect(await me.get(id)).toMatchObject({ status: 'RUNNING' });
  }

  it('does not pause a sandbox that was paused and runs again', async () => {
    expect(await goOn({ status: 'PAUSING' })).toBeInstanceOf(StepInterrupted);

    await expectItRunsAsBefore();
  });

  it('does not pause one that was paused while it told its listeners', async () => {
    const paused = id;
    await app.dataSource.query(
      `UPDATE sandboxes SET status = 'PAUSING', lease_owner = 'stalled', lease_until = now() + interval '1 hour' WHERE id = $1`,
      [id],
    );
    app.app.get(SandboxEvents).on('stopping', async (each) => {
      await app.dataSource.query(
        `UPDATE sandboxes SET status = 'RUNNING', generation = 2, lease_owner = NULL, lease_until = NULL WHERE id = $1 AND $1 = $2`,
        [each, paused],
      );
    });
    await goOn({ status: 'PAUSING' });

    await expectItRunsAsBefore();
  });

  it('does not end the program of a resume that another one has made', async () => {
    await goOn({ status: 'STARTING', generation: 1 });

    await expectItRunsAsBefore();
  });

  it('does not stop what another one has started when its own start fails', async () => {
    const { address } = await backend.inspect(id);
    backend.reported.set(id, 'http://127.0.0.1:9');
    backend.script.failure = 'The engine refuses.';
    await goOn({ status: 'STARTING', generation: 0 });
    backend.reported.set(id, address ?? '');
    backend.script.failure = null;

    expect(backend.callsOf(id)).toEqual(['start']);
    expect(backend.box(id)).toMatchObject({ starts: 1, server: expect.anything() });
  });

  it('leaves the files of one that another one is removing', async () => {
    await app.dataSource.query(
      `UPDATE sandboxes SET status = 'DELETING', lease_owner = 'other', lease_until = now() + interval '1 hour' WHERE id = $1`,
      [id],
    );
    await goOn({ status: 'DELETING' });

    expect(backend.callsOf(id)).toEqual([]);
  });
});
