import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import { jsonAt } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL } from '../container-layout.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { callEngine, engineStatus, nullOnStatus } from './engine.js';

/** How the bridges of all installations begin, so that a rule of a firewall can name them (`slw+`). */
const BRIDGE_PREFIX = 'slw';
/** On Linux the name of an interface has at most 15 characters. */
const BRIDGE_HASH = 10;

/**
 * The network of an installation's sandboxes. It lets no container connect to another one. One for all of them, because an
 * engine has addresses for some thirty networks only.
 */
export class InstanceNetwork {
  readonly name: string;

  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {
    this.name = `slipway-${instanceId}`;
  }

  /** Get-or-create. Other replicas of this installation may do so at the same time. */
  async ensure(): Promise<void> {
    if (await this.exists()) {
      return;
    }
    await callEngine('the network of the sandboxes cannot be created', async () => {
      try {
        await this.docker.createNetwork({
          Name: this.name,
          Driver: 'bridge',
          CheckDuplicate: true,
          Labels: { [INSTANCE_LABEL]: this.instanceId },
          Options: {
            'com.docker.network.bridge.enable_icc': 'false',
            'com.docker.network.bridge.name': this.#bridge(),
          },
        });
      } catch (error) {
        if (engineStatus(error) !== 409 && !(await this.exists())) {
          throw error;
        }
      }
    });
  }

  /** @throws SandboxBackendError when there is another network of that name, which may let containers connect */
  async exists(): Promise<boolean> {
    const network = await callEngine('the network of the sandboxes cannot be inspected', () =>
      nullOnStatus([404], this.docker.getNetwork(this.name).inspect()),
    );
    if (network === null) {
      return false;
    }
    if (jsonAt(network, 'Labels', INSTANCE_LABEL) !== this.instanceId) {
      throw new SandboxBackendError(
        `the network ${this.name} is not the service's: remove it (docker network rm ${this.name}), or set another INSTANCE_ID`,
      );
    }
    return true;
  }

  #bridge(): string {
    const hash = createHash('sha256').update(this.instanceId).digest('hex');
    return `${BRIDGE_PREFIX}${hash.slice(0, BRIDGE_HASH)}`;
  }
}
