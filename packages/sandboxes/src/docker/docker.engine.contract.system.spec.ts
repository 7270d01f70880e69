import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { connect, createServer, type Server } from 'node:net';
import {
  type SandboxBackend,
  type SandboxLaunch,
  SandboxBackendError,
  SandboxBackendUnavailableError,
} from '../sandbox-backend.js';
import { startedSandbox, untilStopped } from '../sandbox-backend.harness.js';
import { FakeRegistry } from '../../../../test/fakes/fake-registry.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import {
  AGENT_IMAGE,
  DOCKER_HOST,
  DockerHarness,
  imageVariant,
  describeWithEngine,
} from './docker.harness.js';

const SIGNAL = new AbortController().signal;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): images, ports, leftovers', () => {
  let harness: DockerHarness;
  let backend: SandboxBackend;

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    ({ backend } = harness);
  });

  afterEach(async () => {
    await harness.close();
  });

  const started = (launch: SandboxLaunch = harness.launch()): Promise<SandboxClient> =>
    startedSandbox(harness, launch);

  async function refusal(launch: SandboxLaunch, from: SandboxBackend = backend): Promise<string> {
    const error: unknown = await from.start(launch, SIGNAL).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SandboxBackendError);
    return error instanceof SandboxBackendError ? error.message : '';
  }

  describe('images', () => {
    it('names the command that builds our own image, and never pulls it', async () => {
      const image = `slipway-missing-${randomBytes(6).toString('hex')}`;
      const without = harness.another({ defaultImage: image });
      expect((await without.prepare()).map(({ text }) => text).join('\n')).toContain(
        `npm run image:agent-server -- --tag ${image}`,
      );
      expect(await refusal(harness.launch(), without)).toBe(
        `the engine has no image ${image}: build it with "npm run image:agent-server -- --tag ${image}"`,
      );
      expect(await backend.list()).toEqual([]);
    });

    it('pulls other images, reports progress, and explains why they do not start', async () => {
      const registry = await FakeRegistry.start();
      try {
        const lines: string[] = [];
        const launch = harness.imageLaunch(registry.image, { onProgress: (line) => lines.push(line) });
        await backend.start(launch, SIGNAL);
        expect(lines[0]).toBe(`pulling the image ${registry.image}`);
        expect(lines.at(-1)).toBe(`pulling the image ${registry.image}, 1 of 1 layers`);
        await untilStopped(backend, launch.id);
        expect(await backend.inspect(launch.id)).toMatchObject({ exit: { code: 127 } });
        expect(await backend.logTail(launch.id)).toContain('/not-there');
        await backend.remove(launch.id);
      } finally {
        await harness.docker.getImage(registry.image).remove();
        await registry.stop();
      }
    });

    it('names the image that a registry does not have', async () => {
      const registry = await FakeRegistry.start();
      try {
        const image = registry.image.replace('empty', 'other');
        expect(await refusal(harness.imageLaunch(image))).toMatch(
          new RegExp(`^the image ${image} cannot be pulled: .*docker pull ${image}\\)$`),
        );
      } finally {
        await registry.stop();
      }
    });

    it('stops a pull when the signal aborts', async () => {
      // Accepts connections and never responds.
      const registry = createServer((connection) => {
        connection.resume();
        controller.abort(new Error('given up'));
      });
      const port = await startListening(registry);
      const controller = new AbortController();
      const launch = harness.imageLaunch(`127.0.0.1:${port}/slow:1`);
      try {
        await expect(backend.start(launch, controller.signal)).rejects.toThrow('given up');
      } finally {
        registry.close();
      }
      expect(await backend.list()).toEqual([]);
    });

    it('names the command that builds our own image when the one under its name has no agent server', async () => {
      const plain = await imageVariant(['true'], ['slipway.agent-server=']);
      try {
        const mistaken = harness.another({ defaultImage: plain.image });
        expect(await refusal(harness.launch(), mistaken)).toBe(
          `the image ${plain.image} has no Slipway agent server: build it with "npm run image:agent-server -- --tag ${plain.image}"`,
        );
      } finally {
        await plain.remove();
      }
    });
  });

  describe('ports and networks', () => {
    it('gets another port when the earlier one is taken meanwhile', async () => {
      const launch = harness.launch();
      const { address } = await started(launch);
      await backend.pause(launch.id);
      const squatter = createServer();
      await startListening(squatter, Number(new URL(address).port));
      try {
        await backend.resume(launch, SIGNAL);
        const after = await sandboxAnswers(backend, launch);
        expect(after.address).not.toBe(address);
      } finally {
        squatter.close();
      }
    });

    it('reaches an engine over TCP', async () => {
      const socket = (DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '');
      const proxy: Server = createServer((client) => {
        const engine = connect(socket);
        client.pipe(engine).pipe(client);
        client.on('error', () => engine.destroy());
        engine.on('error', () => client.destroy());
      });
      const port = await startListening(proxy);
      try {
        const overTcp = harness.another({ dockerHost: `tcp://127.0.0.1:${port}` });
        const launch = harness.launch();
        await overTcp.start(launch, SIGNAL);
        expect((await (await sandboxAnswers(overTcp, launch)).run('echo here')).stdout).toBe('here\n');
      } finally {
        proxy.close();
      }
    });

    it('reports a missing engine, and one whose ports would be out of reach', async () => {
      const nobody = harness.another({ dockerHost: 'unix:///nonexistent/docker.sock' });
      await expect(nobody.prepare()).rejects.toThrow('no Docker engine answers (ENOENT)');
      await expect(nobody.inspect('x')).rejects.toThrow(SandboxBackendUnavailableError);
      const remote = harness.another({ dockerHost: 'tcp://192.0.2.1:2375' });
      await expect(remote.prepare()).rejects.toThrow('SANDBOX_DOCKER_NETWORK');
    });
  });

  describe('leftovers', () => {
    it('leaves sandboxes of other installations alone', async () => {
      const launch = harness.launch();
      const client = await started(launch);
      const other = harness.another({ instanceId: `${harness.instanceId}-other` });
      expect(await other.list()).toEqual([]);
      expect((await other.inspect(launch.id)).state).toBe('missing');
      await other.pause(launch.id);
      await other.remove(launch.id);
      await expect(other.resume(launch, SIGNAL)).rejects.toThrow('the files of this sandbox are gone');
      expect(await refusal(launch, other)).toContain('belongs to another installation');
      expect(await client.isAlive()).toBe(true);
    });

    it('continues a start that was interrupted', async () => {
      const [volumeOnly, withContainer] = [harness.launch(), harness.launch()];
      const labels = (id: string) => ({ 'slipway.instance': harness.instanceId, 'slipway.sandbox-id': id });
      for (const { id } of [volumeOnly, withContainer]) {
        await harness.docker.createVolume({ Name: `slipway-${id}`, Labels: labels(id) });
      }
      await harness.docker.createContainer({
        name: `slipway-${withContainer.id}`,
        Image: AGENT_IMAGE,
        Labels: labels(withContainer.id),
        OpenStdin: true,
        StdinOnce: true,
      });
      expect(
        (await backend.list()).map(({ id, state, exit }) => ({ id, state, exit })).toSorted(byId),
      ).toEqual(
        [volumeOnly, withContainer].map(({ id }) => ({ id, state: 'stopped', exit: null })).toSorted(byId),
      );
      await started(volumeOnly);
      await started(withContainer);
      await backend.remove(withContainer.id);
      expect((await backend.list()).map(({ id }) => id)).toEqual([volumeOnly.id]);
    });

    it('resumes a sandbox whose container somebody removed', async () => {
      const launch = harness.launch();
      const client = await started(launch);
      await client.run('echo kept > file');
      const { createdAt } = await backend.inspect(launch.id);
      await backend.pause(launch.id);
      await harness.docker.getContainer(`slipway-${launch.id}`).remove();
      expect(await backend.inspect(launch.id)).toMatchObject({ state: 'stopped', exit: null, createdAt });
      await backend.resume(launch, SIGNAL);
      expect((await (await sandboxAnswers(backend, launch)).run('cat file')).stdout).toBe('kept\n');
      expect((await backend.inspect(launch.id)).createdAt).toBe(createdAt);
    });
  });
});

function byId(one: { id: string }, other: { id: string }): number {
  return one.id < other.id ? -1 : 1;
}
