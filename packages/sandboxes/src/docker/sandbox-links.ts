import { randomInt } from 'node:crypto';
import type Docker from 'dockerode';
import pRetry from 'p-retry';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { sandboxHostName, sandboxName } from './container.js';
import type { DockerBackendOptions } from './docker.options.js';
import { callEngine, nullOnStatus } from './engine.js';
import { bridgeName } from './instance-network.js';

const TAKEN = /overlap/i;
/** Suffices for some thousand sandboxes. */
const RECONNECT_DEADLINE_MS = 600_000;

/**
 * Links services in containers with sandboxes: each sandbox has a network with them. It is internal, so that no default
 * route changes.
 */
export class SandboxLinks {
  constructor(
    private readonly docker: Docker,
    private readonly options: Pick<DockerBackendOptions, 'instanceId' | 'subnets'> & { network: string },
  ) {}

  /** Connects a sandbox's container, which has not started yet, with the services. @throws SandboxBackendError */
  async connect(id: string, container: string): Promise<void> {
    const name = sandboxName(id);
    const { instanceId, subnets } = this.options;
    await callEngine(`the sandbox gets no network of SANDBOX_DOCKER_SUBNETS, ${subnets}`, async () => {
      const create = async (): Promise<unknown> =>
        // 409: of an interrupted start.
        await nullOnStatus(
          [409],
          this.docker.createNetwork({
            Name: name,
            CheckDuplicate: true,
            Internal: true,
            IPAM: { Driver: 'default', Config: [{ Subnet: anySubnet(subnets) }] },
            Labels: { [INSTANCE_LABEL]: instanceId, [SANDBOX_LABEL]: id },
            Options: { 'com.docker.network.bridge.name': bridgeName(id) },
          }),
        );
      // The engine knows all networks, those of other replicas too.
      await pRetry(create, {
        retries: 100,
        minTimeout: 0,
        shouldRetry: ({ error }) => TAKEN.test(error.message),
      });
      await this.join(name, container, [sandboxHostName(id)]);
      await this.joinServices([name]);
    });
  }

  /** Reconnects a service whose container is new, and so in no sandbox's network. */
  async reconnect(): Promise<void> {
    const reconnect = async (): Promise<void> => {
      const label = [`${INSTANCE_LABEL}=${this.options.instanceId}`, SANDBOX_LABEL];
      const networks = await this.docker.listNetworks({ filters: { label } });
      await this.joinServices(networks.map(({ Name }) => Name));
    };
    await callEngine("the service cannot join its sandboxes' networks", reconnect, RECONNECT_DEADLINE_MS);
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

  /** Under the names that they have in the network of the operator, that of `SANDBOX_CALLBACK_URL` among them. */
  private async joinServices(networks: string[]): Promise<void> {
    const { network: own } = this.options;
    const found = await this.docker.listContainers({ filters: { network: [own] } });
    // An earlier version put the sandboxes themselves there.
    for (const { Id } of found.filter(({ Labels }) => Labels[SANDBOX_LABEL] === undefined)) {
      const container = await nullOnStatus([404], this.docker.getContainer(Id).inspect());
      for (const network of networks) {
        await this.join(network, Id, container?.NetworkSettings.Networks[own]?.Aliases ?? []);
      }
    }
  }

  private async join(network: string, Container: string, Aliases: string[]): Promise<void> {
    const joined = this.docker.getNetwork(network).connect({ Container, EndpointConfig: { Aliases } });
    // 403: another replica was quicker. 404: the sandbox or the replica was removed just now.
    await nullOnStatus([403, 404], joined);
  }
}

/** Sixteen addresses: for a sandbox and a dozen replicas. */
export function anySubnet(range: string): string {
  const [address = '', bits] = range.split('/');
  const given = address.split('.').slice(0, Number(bits) / 8);
  const chosen = Array.from({ length: 3 - given.length }, () => randomInt(256));
  return `${[...given, ...chosen, 16 * randomInt(16)].join('.')}/28`;
}
