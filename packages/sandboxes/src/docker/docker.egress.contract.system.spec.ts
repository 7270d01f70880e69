import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import { once } from 'node:events';
import path from 'node:path';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { startedSandbox, untilStopped } from '../sandbox-backend.harness.js';
import { SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { TEST_CERTIFICATE } from '../../../../test/support/tls-certificate.js';
import { until } from '../../../../test/support/until.js';
import { CALL_PRIVATE_SERVER } from '../sandbox-backend.contract.js';
import { describeSandboxEgress } from '../sandbox-backend.egress.contract.js';
import { sandboxName } from './container.js';
import { AGENT_IMAGE, DockerHarness, imageVariant, describeWithEngine } from './docker.harness.js';
import { newProxySocket } from './sandbox-relays.js';

const SIGNAL = new AbortController().signal;
const PORT = 3180;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): with an egress proxy', () => {
  let harness: DockerHarness;
  let backend: SandboxBackend;
  let proxies: Server[];

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    ({ backend } = harness);
    proxies = [];
  });

  afterEach(async () => {
    proxies.forEach((proxy) => proxy.close().closeAllConnections());
    await harness.close();
  });

  const ruled = (changes: Partial<SandboxLaunch> = {}): SandboxLaunch =>
    harness.launch({ egress: { port: PORT, credential: 'x', authority: null, isOnlyWay: true }, ...changes });

  const started = (launch: SandboxLaunch): Promise<SandboxClient> => startedSandbox(harness, launch);

  async function proxy(name: string): Promise<Server> {
    const server = createServer((_, response) => response.setHeader('connection', 'close').end(name));
    server.listen({ path: await newProxySocket(harness.socketFolder), writableAll: true });
    await once(server, 'listening');
    proxies.push(server);
    return server;
  }

  const ask = async (client: SandboxClient): Promise<string> =>
    (await client.run('curl -sS -m 20 http://any.example/ 2>&1')).stdout;

  /** Names of what the engine and the service have for sandboxes with proxies. */
  async function leftovers(): Promise<string[]> {
    const label = [`slipway.instance=${harness.instanceId}`];
    const relays = await harness.docker.listContainers({
      all: true,
      filters: { label: [...label, 'slipway.relay-of'] },
    });
    const networks = await harness.docker.listNetworks({ filters: { label } });
    const folders = (await readdir(harness.socketFolder)).filter((name) => name !== 'proxies');
    return [...relays.flatMap(({ Names }) => Names), ...networks.map(({ Name }) => Name), ...folders];
  }

  const relayOf = ({ id }: SandboxLaunch) => harness.docker.getContainer(`${sandboxName(id)}-relay`);

  it('are led to whichever proxy is there, as replicas come and go', async () => {
    const client = await started(ruled());
    expect(await ask(client)).toMatch(/Empty reply|reset/);
    const first = await proxy('first');
    expect(await ask(client)).toBe('first');
    await proxy('second');
    first.close();
    await once(first, 'close');
    expect(await ask(client)).toBe('second');
  });

  it('have nothing of the engine but a relay, and that only while they run', async () => {
    const launches = [ruled(), ruled()] as const;
    await Promise.all(launches.map(started));
    const names = launches.flatMap(({ id }) => [`/${sandboxName(id)}-relay`, id]);
    expect((await leftovers()).toSorted()).toEqual(names.toSorted());
    await backend.pause(launches[0].id);
    await backend.remove(launches[1].id);
    expect(await leftovers()).toEqual([]);
    await backend.remove(launches[0].id);
    expect(await backend.list()).toEqual([]);
  });

  it('get back a relay that has ended, and one that a killed service did not start', async () => {
    const launch = ruled();
    await started(launch);
    const { State } = await relayOf(launch).inspect();
    process.kill(State.Pid, 'SIGKILL');
    const client = await sandboxAnswers(backend, launch);
    await proxy('again');
    await until(async () => (await ask(client)) === 'again');
    await relayOf(launch).remove({ force: true });
    await backend.start(launch, SIGNAL);
    expect(await ask(await sandboxAnswers(backend, launch))).toBe('again');
  });

  it('leave no relay behind when their program has ended by itself', async () => {
    const broken = await imageVariant(['sh', '-c', 'sleep 1; exit 7']);
    try {
      const launch = ruled({
        program: { kind: 'image', image: broken.image, args: [] },
        workingDir: 'project',
      });
      await backend.start(launch, SIGNAL);
      await untilStopped(backend, launch.id);
      expect(await backend.inspect(launch.id)).toMatchObject({ exit: { code: 7 } });
      await backend.sweep();
      expect((await leftovers()).filter((name) => name.endsWith('-relay'))).toEqual([]);
      await backend.remove(launch.id);
    } finally {
      await broken.remove();
    }
  });

  it('trust the authority of their proxy also in stock images', async () => {
    const stock = await imageVariant(['node', '-e', CALL_PRIVATE_SERVER]);
    try {
      const launch = ruled({
        program: { kind: 'image', image: stock.image, args: [] },
        workingDir: 'project',
        egress: { port: PORT, credential: 'x', authority: TEST_CERTIFICATE, isOnlyWay: true },
      });
      await backend.start(launch, SIGNAL);
      await untilStopped(backend, launch.id);
      expect(await backend.logTail(launch.id)).toBe('trusted trusted\n');
      await backend.remove(launch.id);
      expect(await leftovers()).toEqual([]);
    } finally {
      await stock.remove();
    }
  });

  it('are refused where rules would not hold, or the relay could not reach them', async () => {
    const refusal = async (changes: Partial<SandboxLaunch>): Promise<string> =>
      await backend.start(ruled(changes), SIGNAL).then(
        () => 'started',
        ({ message }: Error) => message,
      );
    expect(await refusal({ network: 'bridge' })).toContain(
      'in the network bridge, where they would not hold',
    );
    expect(await refusal({ runtime: 'runsc' })).toContain(
      'share the network of one that the runtime runsc runs',
    );
    backend = harness.another({ socketFolder: path.join(harness.socketFolder, 'far'.repeat(30)) });
    expect(await refusal({})).toContain('need a DATA_DIR with a shorter path');
    expect(await backend.list()).toEqual([]);
  });

  it('of a service in a container are reached by its volume, and share no network with it', async () => {
    const network = `slipway-test-${randomBytes(6).toString('hex')}`;
    await harness.docker.createNetwork({ Name: network });
    // Outside of the service its folder has another name.
    const { socketFolder } = harness;
    const outside = `${path.dirname(socketFolder)}-outside`;
    await mkdir(socketFolder, { recursive: true });
    const service = await harness.docker.createContainer({
      Image: AGENT_IMAGE,
      Entrypoint: ['sleep', '1000'],
      HostConfig: { NetworkMode: network, Binds: [`${outside}:${path.dirname(socketFolder)}`] },
    });
    await rename(path.dirname(socketFolder), outside);
    await symlink(outside, path.dirname(socketFolder));
    try {
      backend = harness.another({ network });
      const launch = ruled();
      await expect(backend.start(launch, SIGNAL)).rejects.toThrow('DATA_DIR of the service');
      await service.start();
      await backend.start(launch, SIGNAL);
      const { Mounts } = await relayOf(launch).inspect();
      expect(Mounts.map(({ Source }) => Source)).toContain(path.join(outside, 'sockets', launch.id));
      const { NetworkSettings } = await harness.docker.getContainer(sandboxName(launch.id)).inspect();
      expect(Object.keys(NetworkSettings.Networks)).toEqual(['none']);
      expect((await backend.inspect(launch.id)).address).toBe(
        `unix:${path.join(socketFolder, launch.id, '8000.sock')}`,
      );
      const client = new SandboxClient(
        `unix:${path.join(outside, 'sockets', launch.id, '8000.sock')}`,
        launch.sessionKey,
      );
      await until(async () => await client.isAlive());
    } finally {
      await service.remove({ force: true });
      await harness.docker.getNetwork(network).remove();
      await rm(path.dirname(socketFolder));
      await rename(outside, path.dirname(socketFolder));
    }
  });
});

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): by the contract of backends', () => {
  describeSandboxEgress('docker', async () => {
    const harness = await DockerHarness.make('');
    return Object.assign(harness, {
      port: PORT,
      interfaces: [],
      listen: async () => ({ path: await newProxySocket(harness.socketFolder), writableAll: true }),
    });
  });
});
