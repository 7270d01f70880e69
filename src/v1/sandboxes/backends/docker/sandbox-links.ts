import { randomInt } from 'node:crypto';
import type Docker from 'dockerode';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { sandboxHostName, sandboxName } from './container.js';
import type { DockerBackendOptions } from './docker.descriptor.js';
import { callEngine, engineStatus, nullOnStatus } from './engine.js';
import { bridgeName } from './instance-network.js';

/** For a sandbox and a dozen replicas. */
const PREFIX = 28;
const SIZE = 2 ** (32 - PREFIX);
const MAX_TRIES = 256;

/** For services in containers: a network of each sandbox and these. It is internal, so that no default route changes. */
export class SandboxLinks {
  constructor(
    private readonly docker: Docker,
    private readonly options: Pick<DockerBackendOptions, 'instanceId' | 'subnets'> & { network: string },
  ) {}

  /** Connects a sandbox's container, which has not started yet, with the services. @throws SandboxBackendError */
  async connect(id: string, container: string): Promise<void> {
    await callEngine('the network of the sandbox cannot be made', () => this.#create(id));
    await this.#join(sandboxName(id), container, [sandboxHostName(id)]);
    await this.#joinServices([sandboxName(id)]);
  }

  /** For a service whose container is new, and thus in no sandbox's network. */
  async reconnect(): Promise<void> {
    const label = [`${INSTANCE_LABEL}=${this.options.instanceId}`, SANDBOX_LABEL];
    const networks = await callEngine('the networks of the sandboxes cannot be listed', () =>
      this.docker.listNetworks({ filters: { label } }),
    );
    await this.#joinServices(networks.map(({ Name }) => Name));
  }

  /** Also takes stopped containers out: they could not start again with a network that is gone. */
  async remove(id: string): Promise<void> {
    const network = this.docker.getNetwork(sandboxName(id));
    await callEngine('the network of the sandbox cannot be removed', async () => {
      const filters = { network: [sandboxName(id)] };
      for (const { Id } of await this.docker.listContainers({ all: true, filters })) {
        await nullOnStatus([404], network.disconnect({ Container: Id, Force: true }));
      }
      await nullOnStatus([404], network.remove());
    });
  }

  /** The engine decides which subnet is free: it knows all, and other replicas take some at the same time. */
  async #create(id: string): Promise<void> {
    const subnets = subnetsOf(this.options.subnets);
    for (const Subnet of subnets) {
      try {
        await this.docker.createNetwork({
          Name: sandboxName(id),
          Driver: 'bridge',
          CheckDuplicate: true,
          Internal: true,
          IPAM: { Driver: 'default', Config: [{ Subnet }] },
          Labels: { [INSTANCE_LABEL]: this.options.instanceId, [SANDBOX_LABEL]: id },
          Options: { 'com.docker.network.bridge.name': bridgeName(id) },
        });
        return;
      } catch (error) {
        if (engineStatus(error) === 409) {
          return;
        }
        if (!/overlap/i.test(errorMessage(error))) {
          throw error;
        }
      }
    }
    throw new SandboxBackendError(
      `none of ${subnets.length} networks in ${this.options.subnets} is free: set SANDBOX_DOCKER_SUBNETS to a larger range that nothing else uses`,
    );
  }

  /** Under the names that they have in the network of the operator, `SANDBOX_CALLBACK_URL` being one of them. */
  async #joinServices(networks: string[]): Promise<void> {
    const { network: own } = this.options;
    const found = await callEngine('the containers of the service cannot be listed', () =>
      this.docker.listContainers({ filters: { network: [own] } }),
    );
    // An earlier version put the sandboxes themselves there.
    for (const { Id } of found.filter(({ Labels }) => Labels[SANDBOX_LABEL] === undefined)) {
      const container = await callEngine('a container of the service cannot be inspected', () =>
        nullOnStatus([404], this.docker.getContainer(Id).inspect()),
      );
      const joined = container?.NetworkSettings.Networks ?? {};
      for (const network of networks.filter((name) => joined[name] === undefined)) {
        await this.#join(network, Id, joined[own]?.Aliases ?? []);
      }
    }
  }

  async #join(network: string, Container: string, Aliases: string[]): Promise<void> {
    await callEngine(`the network ${network} cannot be joined`, async () => {
      try {
        // 404: the sandbox or the replica was removed just now.
        await nullOnStatus(
          [404],
          this.docker.getNetwork(network).connect({ Container, EndpointConfig: { Aliases } }),
        );
      } catch (error) {
        // Another replica was quicker.
        if (!/already exists/.test(errorMessage(error))) {
          throw error;
        }
      }
    });
  }
}

/** Free or not, in an order of chance; all of a small range. */
export function subnetsOf(range: string): string[] {
  const [address = '', bits] = range.split('/');
  const count = 2 ** (PREFIX - Number(bits));
  const given = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);
  const first = given - (given % (count * SIZE));
  const chosen = randomInt(count);
  return Array.from({ length: Math.min(count, MAX_TRIES) }, (_, index) => {
    const subnet = first + ((chosen + index) % count) * SIZE;
    return `${[24, 16, 8, 0].map((shift) => (subnet >>> shift) & 255).join('.')}/${PREFIX}`;
  });
}
