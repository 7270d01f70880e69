import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  SandboxBackendError,
  type SandboxLaunch,
  type WarmStarts,
  type WarmTemplate,
} from './sandbox-backend.js';
import { SandboxClient, sandboxAnswers } from '../../../test/support/sandbox-client.js';
import { until } from '../../../test/support/until.js';
import { type SandboxBackendHarness, shareBackend } from './sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;

/** The contract of a backend that starts programs before they have a session key. */
export function describeWarmStarts(makeHarness: () => Promise<SandboxBackendHarness>): void {
  describe('warm sandboxes', () => {
    const shared = shareBackend(makeHarness);
    let harness: SandboxBackendHarness;

    beforeEach(() => {
      harness = shared();
    });

    const warmOf = ({ backend }: SandboxBackendHarness): WarmStarts => {
      if (backend.warm === null) {
        throw new Error('this backend keeps none warm');
      }
      return backend.warm;
    };

    /** Starts it without its key, and waits until it waits for that. */
    async function waiting(launch: SandboxLaunch): Promise<SandboxClient> {
      const { sessionKey, ...rest } = launch;
      const { backend } = harness;
      await warmOf(harness).start(rest, SIGNAL);
      await until(async () => {
        const { state, address } = await backend.inspect(launch.id);
        expect(state).toBe('running');
        return address !== null && (await new SandboxClient(address, '').liveness()) === 'unassigned';
      });
      const { address } = await backend.inspect(launch.id);
      return new SandboxClient(address ?? '', sessionKey);
    }

    it('serve nobody, and get their key from the start of their owner', async () => {
      const { backend } = harness;
      const launch = harness.launch();
      const early = await waiting(launch);
      expect((await early.send('GET', '/api/bash/bash_events/search')).status).toBe(503);
      expect(await backend.list()).toMatchObject([{ id: launch.id, state: 'running' }]);

      await backend.start(launch, SIGNAL);
      const client = await sandboxAnswers(backend, launch);
      expect(client.address).toBe(early.address);
      expect((await client.run('echo kept > file')).exitCode).toBe(0);
      const stranger = new SandboxClient(client.address, 'another-key');
      expect((await stranger.send('GET', '/api/bash/bash_events/search')).status).toBe(401);

      // The sandbox's tools see nothing of the way that the key took.
      const env = await client.run('env; cat /proc/self/fd/0 < /dev/null');
      expect(env.stdout).not.toContain(launch.sessionKey);
      await backend.pause(launch.id);
      await backend.resume(launch, SIGNAL);
      expect((await (await sandboxAnswers(backend, launch)).run('cat file')).stdout).toBe('kept\n');
    });

    it('are started once, and assigned once', async () => {
      const { backend } = harness;
      const launch = harness.launch();
      const { sessionKey, ...rest } = launch;
      await waiting(launch);
      await warmOf(harness).start(rest, SIGNAL);
      await Promise.all([backend.start(launch, SIGNAL), backend.start(launch, SIGNAL)]);
      const client = await sandboxAnswers(backend, launch);
      await client.run('echo here > mine');
      // Neither is the key exchanged, nor the program.
      await backend.start({ ...launch, sessionKey: `${sessionKey}-another` }, SIGNAL);
      await warmOf(harness).start(rest, SIGNAL);
      expect((await client.run('cat mine')).stdout).toBe('here\n');
    });

    it('wait over a restart of the service', async () => {
      const launch = harness.launch();
      const early = await waiting(launch);
      const reopened = await harness.reopen();
      expect(await reopened.list()).toMatchObject([{ id: launch.id, state: 'running' }]);
      expect(await early.liveness()).toBe('unassigned');
      await reopened.start(launch, SIGNAL);
      expect((await (await sandboxAnswers(reopened, launch)).run('true')).exitCode).toBe(0);
    });

    it('end like others: paused, resumed with a key, and removed', async () => {
      const { backend } = harness;
      const launch = harness.launch();
      const early = await waiting(launch);
      await backend.pause(launch.id);
      expect((await backend.inspect(launch.id)).state).toBe('stopped');
      expect(await early.liveness()).toBeNull();
      await backend.resume(launch, SIGNAL);
      expect((await (await sandboxAnswers(backend, launch)).run('true')).exitCode).toBe(0);

      const another = harness.launch();
      const unused = await waiting(another);
      await backend.remove(another.id);
      expect(await unused.liveness()).toBeNull();
      expect((await backend.inspect(another.id)).state).toBe('missing');
    });

    it('have a fingerprint of what they are started with', async () => {
      const { id: _id, sessionKey: _key, ...template } = harness.launch();
      const fingerprint = async (changes: Partial<WarmTemplate> = {}) =>
        await warmOf(harness).fingerprint({ ...template, egress: undefined, ...changes });
      const egress = { port: 3180, isOnlyWay: true, opensTls: true, derivation: 'one' };
      const usual = await fingerprint();
      expect(usual).toMatch(/^[0-9a-f]{64}$/);
      expect(await fingerprint()).toBe(usual);
      const others = await Promise.all([
        fingerprint({ env: { A: '1' } }),
        fingerprint({ memoryMb: 700 }),
        fingerprint({ ports: { WORKER_1: 8011 } }),
        fingerprint({ callbackUrl: 'http://127.0.0.1:1/api/v1/webhooks' }),
        fingerprint({ egress }),
        fingerprint({ egress: { ...egress, isOnlyWay: false } }),
        fingerprint({ egress: { ...egress, derivation: 'another' } }),
      ]);
      expect(new Set([usual, ...others]).size).toBe(8);
    });

    it('are no programs that read their key elsewhere', async () => {
      const program = { kind: 'command' as const, command: 'true', args: [] };
      const { sessionKey: _key, ...launch } = harness.launch({ program });
      expect(await warmOf(harness).fingerprint({ ...launch, egress: undefined })).toBeNull();
      await expect(warmOf(harness).start(launch, SIGNAL)).rejects.toThrow(SandboxBackendError);
    });
  });
}
