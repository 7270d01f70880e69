import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { SandboxClient } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import { AGENT_IMAGE, DockerHarness, describeWithEngine } from './docker.harness.js';

const SIGNAL = new AbortController().signal;
/** In place of a service: it answers, and says on request what it hears at an address. */
const SERVICE = `require('node:http').createServer(async ({ url }, response) => {
  const asked = new URL(url, 'http://service').searchParams.get('ask');
  response.end(asked ? await fetch(asked).then(({ status }) => String(status), () => 'nobody') : 'the service');
}).listen(3000)`;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): of a service in a container', () => {
  const network = `slipway-test-${randomBytes(6).toString('hex')}`;
  let harness: DockerHarness;
  let backend: SandboxBackend;
  let service: Docker.Container;
  let services: Docker.Container[];

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    await harness.docker.createNetwork({ Name: network });
    services = [];
    service = await startService();
    backend = await inside();
  });

  afterEach(async () => {
    await harness.close();
    await Promise.all(services.map(async (container) => await container.remove({ force: true })));
    await harness.docker.getNetwork(network).remove();
  });

  async function inside(subnets = '198.18.0.0/16'): Promise<SandboxBackend> {
    harness.backend = harness.another({ network, subnets });
    await harness.backend.prepare();
    return harness.backend;
  }

  async function startService(): Promise<Docker.Container> {
    const container = await harness.docker.createContainer({
      Image: AGENT_IMAGE,
      Entrypoint: ['node', '-e', SERVICE],
      HostConfig: { NetworkMode: network },
      NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: ['slipway'] } } },
    });
    services.push(container);
    await container.start();
    const own = (await addressesOf(container.id))[network] ?? '';
    await until(
      async () =>
        await fetch(`http://${own}:3000`).then(
          ({ ok }) => ok,
          () => false,
        ),
    );
    return container;
  }

  /** Its own network and that of the installation are the only ones of a sandbox. */
  async function addressesOf(name: string): Promise<Record<string, string>> {
    const { NetworkSettings: settings } = await harness.docker.getContainer(name).inspect();
    return Object.fromEntries(
      Object.entries(settings.Networks).map(([key, { IPAddress }]) => [key, IPAddress]),
    );
  }

  /** What a service hears at the agent server of a sandbox, by its name. */
  async function heard(from: Docker.Container, launch: SandboxLaunch): Promise<string> {
    const { address } = await backend.inspect(launch.id);
    const own = (await addressesOf(from.id))[network] ?? '';
    const response = await fetch(`http://${own}:3000/?ask=${encodeURIComponent(`${address}/alive`)}`);
    return await response.text();
  }

  async function started(launch = harness.launch()): Promise<SandboxClient> {
    await backend.start(launch, SIGNAL);
    const name = `slipway-${launch.id}`;
    const client = new SandboxClient(
      `http://${(await addressesOf(name))[name] ?? ''}:8000`,
      launch.sessionKey,
    );
    await until(async () => await client.isAlive());
    return client;
  }

  async function networks(): Promise<string[]> {
    const label = [`slipway.instance=${harness.instanceId}`, 'slipway.sandbox-id'];
    return (await harness.docker.listNetworks({ filters: { label } })).map(({ Name }) => Name);
  }

  /** Which of the addresses a program in the sandbox can connect to. */
  async function openTo(client: SandboxClient, targets: string[]): Promise<string[]> {
    const tries = targets.map(
      (target) => `(timeout 3 bash -c 'echo > /dev/tcp/${target}' 2>/dev/null && echo ${target}) &`,
    );
    return (await client.run(`${tries.join(' ')} wait`)).stdout.trim().split('\n');
  }

  it('are reached by name, reach the service, and neither each other nor what is of others', async () => {
    const launches = [
      harness.launch({ id: `Mixed${randomBytes(8).toString('hex')}` }),
      harness.launch(),
    ] as const;
    const [, two] = [await started(launches[0]), await started(launches[1])];
    const name = `slipway-${launches[0].id}`;
    expect((await backend.inspect(launches[0].id)).address).toBe(`http://${name.toLowerCase()}:8000`);
    expect(await heard(service, launches[0])).toBe('200');
    expect(await heard(service, launches[1])).toBe('200');
    expect((await two.run('curl -sS --max-time 5 http://slipway:3000')).stdout).toBe('the service');
    const container = await harness.docker.getContainer(name).inspect();
    expect(container.HostConfig.PortBindings ?? {}).toEqual({});
    const addresses = await addressesOf(name);
    expect(Object.keys(addresses).toSorted()).toEqual([`slipway-${harness.instanceId}`, name].toSorted());
    const ofService = await addressesOf(service.id);
    expect(Object.keys(ofService).toSorted()).toEqual(
      [name, `slipway-${launches[1].id}`, network].toSorted(),
    );
    const targets = [
      ...[...Object.values(addresses), name.toLowerCase()].map((host) => `${host}/8000`),
      ...Object.values(ofService).map((host) => `${host}/3000`),
    ];
    expect(await openTo(two, targets)).toEqual([`${ofService[`slipway-${launches[1].id}`]}/3000`]);
  });

  it('are reached by a replica that is there, and by one that comes later', async () => {
    const second = await startService();
    const launch = harness.launch();
    await started(launch);
    expect(await heard(second, launch)).toBe('200');
    const later = await startService();
    expect(await heard(later, launch)).toBe('nobody');
    await inside();
    expect(await heard(later, launch)).toBe('200');
    await inside();
  });

  it('have a network only while they run, which keeps no service from starting', async () => {
    const launch = harness.launch();
    await started(launch);
    expect(await networks()).toEqual([`slipway-${launch.id}`]);
    await backend.pause(launch.id);
    expect(await networks()).toEqual([]);
    await backend.resume(launch, SIGNAL);
    await service.kill();
    await backend.remove(launch.id);
    expect(await networks()).toEqual([]);
    await service.start();
  });

  it('wait for no network when all are taken, and begin when one is free', async () => {
    const taken = await Promise.all(
      ['198.18.255.0/25', '198.18.255.128/25'].map(async (Subnet, index) => {
        const IPAM = { Driver: 'default', Config: [{ Subnet }] };
        return await harness.docker.createNetwork({ Name: `${network}-${index}`, Internal: true, IPAM });
      }),
    );
    try {
      backend = await inside('198.18.255.0/24');
      const launch = harness.launch();
      await expect(backend.start(launch, SIGNAL)).rejects.toThrow(
        'the sandbox gets no network of SANDBOX_DOCKER_SUBNETS, 198.18.255.0/24: ',
      );
      await taken.pop()?.remove();
      await started(launch);
    } finally {
      await Promise.all(taken.map(async (other) => await other.remove()));
    }
  });

  it('need the network of the service', async () => {
    const elsewhere = harness.another({ network: 'not-there' });
    await expect(elsewhere.prepare()).rejects.toThrow(
      'SANDBOX_DOCKER_NETWORK: the network not-there is not there',
    );
  });
});
