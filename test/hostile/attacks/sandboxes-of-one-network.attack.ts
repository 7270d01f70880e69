import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { SandboxLaunch } from '@slipway/sandboxes/sandbox-backend.js';
import { DockerSandboxBackend } from '@slipway/sandboxes/docker/docker.backend.js';
import { connectEngine } from '../../../packages/sandboxes/src/docker/engine.js';
import { SandboxClient } from '../../support/sandbox-client.js';
import { sandboxLaunch } from '../../support/sandbox-launch.js';
import { until } from '../../support/until.js';
import { type Attack, held } from '../attack.js';
import { addressesOfContainer, AGENT_IMAGE, DOCKER_HOST, removeContainers } from '../support/backends.js';

/** What the service answers in its own container, whose address in the network all sandboxes know. */
const SERVICE = `require('node:http').createServer((_, response) => response.end('the service')).listen(3000)`;

export const sandboxesOfOneNetwork: Attack = {
  name: 'sandboxes-of-one-network',
  finding: 9,
  what: "Beside a service in a container (docker compose up), Bob's tool connects to Alice's sandbox, by each address and by name.",
  expected: {
    docker: held(
      'each sandbox has a network of its own with the service; the one to the internet connects none of them',
    ),
  },
  run: async () => {
    const engine = connectEngine(DOCKER_HOST);
    const instanceId = `one-network-${randomBytes(6).toString('hex')}`;
    const network = await engine.createNetwork({ Name: instanceId });
    const service = await engine.createContainer({
      Image: AGENT_IMAGE,
      Entrypoint: ['node', '-e', SERVICE],
      HostConfig: { NetworkMode: instanceId },
      NetworkingConfig: { EndpointsConfig: { [instanceId]: { Aliases: ['slipway'] } } },
    });
    const backend = new DockerSandboxBackend({
      dockerHost: DOCKER_HOST,
      instanceId,
      listenAddress: null,
      defaultImage: AGENT_IMAGE,
      network: instanceId,
      subnets: '198.18.0.0/16',
      socketFolder: path.join(tmpdir(), instanceId),
      environment: {},
      pidsLimit: 256,
      cpu: 1,
      memoryMb: 512,
      minFreeBytes: 0,
      sandboxBytes: 0,
      graceSeconds: 1,
    });
    const started = async (launch: SandboxLaunch): Promise<[string[], SandboxClient]> => {
      await backend.start(launch, new AbortController().signal);
      const addresses = await addressesOfContainer(instanceId, launch.id);
      const client = new SandboxClient(`http://${addresses[0] ?? ''}:8000`, launch.sessionKey);
      await until(async () => await client.isAlive());
      return [addresses, client];
    };
    try {
      await service.start();
      await backend.prepare();
      const alice = sandboxLaunch();
      const [addresses] = await started(alice);
      const [, bob] = await started(sandboxLaunch());
      const tries = [...addresses, `slipway-${alice.id}`].map(
        (host) => `(timeout 3 bash -c 'echo > /dev/tcp/${host}/8000' 2>/dev/null && echo ${host}:8000) &`,
      );
      const { stdout } = await bob.run(`${tries.join(' ')} curl -sS --max-time 5 http://slipway:3000; wait`);
      if (!stdout.includes('the service')) {
        throw new Error(`Bob's sandbox does not reach the service: ${stdout}`);
      }
      const reached = stdout.match(/\S+:8000/g);
      return {
        held: reached === null,
        seen:
          reached === null
            ? `Alice's agent server answers Bob at none of ${tries.length} addresses`
            : `answered: ${reached.join(', ')}`,
      };
    } finally {
      await service.remove({ force: true });
      await removeContainers(instanceId);
      await network.remove();
    }
  },
};
