import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { jsonAt } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL } from '../container-layout.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { callEngine, engineStatus, nullOnStatus } from './engine.js';

/** A common prefix lets a firewall rule name the bridges of all installations and sandboxes (`slw+`). */
const BRIDGE_PREFIX = 'slw';
/** An interface name has at most 15 characters on Linux. */
const BRIDGE_HASH = 10;
/** The engine refuses a second network with the bridge of one that it is creating, and does not show that one yet. */
const CREATING_MS = 3_000;
const POLL_MS = 50;

/**
 * The network by which sandboxes reach the internet, and not each other. All share it, as an engine has addresses for some
 * thirty networks only.
 */
export class InstanceNetwork {
  readonly name: string;

  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {
    this.name = `slipway-${instanceId}`;
  }

  /** Gets or creates the network; other replicas may do so at the same time. */
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
            'com.docker.network.bridge.name': bridgeName(this.instanceId),
          },
        });
      } catch (error) {
        if (engineStatus(error) !== 409 && !(await this.appears(engineStatus(error) === 403))) {
          throw error;
        }
      }
    });
  }

  /** @throws SandboxBackendError when another network has that name: it may let containers connect */
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

  private async appears(soon: boolean): Promise<boolean> {
    const deadline = performance.now() + (soon ? CREATING_MS : 0);
    for (; !(await this.exists()); await delay(POLL_MS)) {
      if (performance.now() >= deadline) {
        return false;
      }
    }
    return true;
  }
}

export function bridgeName(owner: string): string {
  return `${BRIDGE_PREFIX}${hash('sha256', owner).slice(0, BRIDGE_HASH)}`;
}
