import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { SandboxBackend } from '../sandbox-backend.js';
import { FakeRegistry } from '../../../../test/fakes/fake-registry.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import {
  AGENT_IMAGE,
  DockerHarness,
  type ImageVariant,
  plainImage,
  describeWithEngine,
} from './docker.harness.js';
import { shareSandbox, startedSandbox, untilStopped } from '../sandbox-backend.harness.js';
import { describeSandboxIsolation } from '../sandbox-backend.isolation.contract.js';

const SIGNAL = new AbortController().signal;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): images without our agent server', () => {
  let plain: ImageVariant;
  let harness: DockerHarness;
  let backend: SandboxBackend;

  beforeAll(async () => {
    plain = await plainImage();
  });

  afterAll(async () => {
    await plain.remove();
  });

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    harness.image = plain.image;
    ({ backend } = harness);
  });

  afterEach(async () => {
    await harness.close();
  });

  const started = (launch = harness.launch()): Promise<SandboxClient> => startedSandbox(harness, launch);

  it('run with ours, and keep their files', async () => {
    const lines: string[] = [];
    const launch = harness.launch({ onProgress: (line) => lines.push(line) });
    const client = await started(launch);
    expect(lines).toEqual([`taking our agent server out of the image ${AGENT_IMAGE}`]);
    const { stdout } = await client.run(
      'id -u; pwd; echo $HOME; echo kept > "$HOME/file"; stat -c %U:%a /sandbox',
    );
    expect(stdout).toBe('10001\n/workspace/project\n/sandbox/home\nUNKNOWN:700\n');
    await backend.pause(launch.id);
    expect(await backend.inspect(launch.id)).toMatchObject({ state: 'stopped', exit: { code: 0 } });
    await backend.resume(launch, SIGNAL);
    const resumed = await sandboxAnswers(backend, launch);
    expect((await resumed.run('cat "$HOME/file"')).stdout).toBe('kept\n');
  });

  it('share one copy of it, which is not listed as a sandbox', async () => {
    const [one, two] = [harness.launch(), harness.launch()];
    await Promise.all([started(one), started(two)]);
    const volumes = await harness.agentServerVolumes();
    expect(volumes).toHaveLength(2);
    expect(volumes[1]).toBe(`${volumes[0]}-ready`);
    expect((await backend.list()).map(({ id }) => id).toSorted()).toEqual([one.id, two.id].toSorted());
    await backend.remove(one.id);
    await backend.remove(two.id);
    expect(await backend.list()).toEqual([]);
    await harness.reopen();
    expect(await harness.agentServerVolumes()).toEqual(volumes);
  });

  it('run when several services start at the same time', async () => {
    const launches = [harness.launch(), harness.launch(), harness.launch()];
    const services = launches.map(() => harness.another());
    await Promise.all(
      services.map(
        async (service, index) => await service.start(launches[index] ?? harness.launch(), SIGNAL),
      ),
    );
    const clients = await Promise.all(launches.map(async (launch) => await sandboxAnswers(backend, launch)));
    const answers = await Promise.all(clients.map(async (client) => await client.run('echo here')));
    expect(answers.map(({ stdout }) => stdout)).toEqual(['here\n', 'here\n', 'here\n']);
  });

  it('never use a volume that was filled in part', async () => {
    await started();
    const [complete = ''] = await harness.agentServerVolumes();
    const { Labels } = await harness.docker.getVolume(complete).inspect();
    const [launched] = await backend.list();
    await backend.remove(launched?.id ?? '');
    await harness.docker.getVolume(`${complete}-ready`).remove();
    await harness.docker.getVolume(complete).remove();
    // As left by a service that died before it set the mark.
    await harness.docker.createVolume({ Name: complete, Labels });
    expect((await (await started()).run('echo here')).stdout).toBe('here\n');
    expect(await harness.agentServerVolumes()).toHaveLength(3);
  });

  it('continue a start that was interrupted before anything ran', async () => {
    const launch = harness.launch();
    const labels = { 'slipway.instance': harness.instanceId, 'slipway.sandbox-id': launch.id };
    await harness.docker.createContainer({
      name: `slipway-${launch.id}`,
      Image: AGENT_IMAGE,
      Labels: labels,
      HostConfig: { NetworkMode: 'none' },
    });
    expect((await (await started(launch)).run('echo x > "$HOME/file"')).exitCode).toBe(0);
  });

  it('let tools see the files of the agent server, but neither change them nor read its Node.js', async () => {
    const client = await started();
    const { stdout } = await client.run(
      'ls /opt/slipway/agent-server/main.js; touch /opt/slipway/x 2>&1; cat /opt/slipway/bin/node 2>&1 | head -c 99',
    );
    expect(stdout.split('\n')).toEqual([
      '/opt/slipway/agent-server/main.js',
      expect.stringContaining('Read-only file system'),
      expect.stringContaining('Permission denied'),
      '',
    ]);
  });

  it('come with an explanation where Node.js cannot run', async () => {
    const registry = await FakeRegistry.start();
    const launch = harness.launch({ program: { kind: 'native', image: registry.image } });
    try {
      await backend.start(launch, SIGNAL);
      await untilStopped(backend, launch.id);
      expect(await backend.inspect(launch.id)).toMatchObject({ exit: { code: 127 } });
      expect(await backend.logTail(launch.id)).toContain(
        `The image ${registry.image} cannot run our agent server: it has no glibc`,
      );
      await backend.remove(launch.id);
    } finally {
      await harness.docker.getImage(registry.image).remove();
      await registry.stop();
    }
  });

  it('need our own image', async () => {
    const without = harness.another({ defaultImage: 'slipway-never-built' });
    await expect(without.start(harness.launch(), SIGNAL)).rejects.toThrow(
      `the image ${plain.image} has no Slipway agent server, and the engine has no image slipway-never-built to take it from: build that with "npm run image:agent-server -- --tag slipway-never-built"`,
    );
    expect(await backend.list()).toEqual([]);
  });

  it('lose the copies of earlier agent servers that no container uses', async () => {
    const labels = (createdAt: number) => ({
      'slipway.instance': harness.instanceId,
      'slipway.agent-server-of': 'sha256:earlier',
      'slipway.created-at': String(createdAt),
    });
    const name = (end: string) => `slipway-agent-server-${harness.instanceId}-${end}`;
    for (const [end, createdAt] of [
      ['unused', 1],
      ['used', 1],
      ['young', Date.now()],
    ] as const) {
      await harness.docker.createVolume({ Name: name(end), Labels: labels(createdAt) });
    }
    const mounting = (volume: string, Labels: Record<string, string>) => ({
      Image: AGENT_IMAGE,
      Labels,
      HostConfig: { Mounts: [{ Type: 'volume' as const, Source: volume, Target: '/opt/slipway' }] },
    });
    const user = await harness.docker.createContainer(mounting(name('used'), {}));
    // Left by a service that died while it filled a volume.
    await harness.docker.createContainer(mounting(name('unused'), labels(1)));
    try {
      await harness.reopen();
      expect(await harness.agentServerVolumes()).toEqual([name('used'), name('young')]);
    } finally {
      await user.remove();
    }
  });

  describe('and their tools', () => {
    // One sandbox for all tests, because the copy takes a while.
    const shared = shareSandbox(async () => {
      const harness = await DockerHarness.make('');
      harness.image = plain.image;
      return harness;
    });

    describeSandboxIsolation(shared, { isolated: true, samePaths: true });
  });
});
