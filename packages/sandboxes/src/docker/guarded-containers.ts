import type Docker from 'dockerode';
import { jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import type { GuardedSandboxes } from '../disk-guard.js';
import { sandboxName } from './container.js';
import { callEngine, dialEngine, nullOnStatus } from './engine.js';

/** Leaves out the layers of images and containers, which take long as well. The library cuts off the last character. */
const MEASURE_VOLUMES = '/system/df?type=volume&verbose=1&';
/** The engine reads the files of all volumes. */
const MEASURE_DEADLINE_MS = 120_000;
/** One answer of the engine serves all sandboxes, which are measured about once a minute. */
const SHARED_FOR_MS = 60_000;

type Sizes = ReadonlyMap<string, number>;

export class GuardedContainers implements GuardedSandboxes {
  /** The key is the container's id: the next container of the sandbox has another one. */
  private readonly causes = new Map<string, string>();
  private sizes: { at: number; of: Promise<Sizes> } | null = null;

  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {}

  async running(): Promise<string[]> {
    return await this.sandboxes('running');
  }

  async measure(id: string): Promise<number | null> {
    if (this.sizes === null || performance.now() > this.sizes.at + SHARED_FOR_MS) {
      this.sizes = { at: performance.now(), of: this.readSizes() };
    }
    return (await this.sizes.of).get(sandboxName(id)) ?? null;
  }

  async countFiles(): Promise<number | null> {
    return 0;
  }

  async freeze(id: string): Promise<void> {
    // The next measurement must show which sandbox has grown just now.
    this.sizes = null;
    // 409: it has ended or is frozen already.
    await callEngine('the sandbox cannot be paused', () =>
      nullOnStatus([404, 409], this.docker.getContainer(sandboxName(id)).pause()),
    );
  }

  async thaw(id: string): Promise<void> {
    await callEngine('the sandbox cannot go on', () =>
      nullOnStatus([404, 409, 500], this.docker.getContainer(sandboxName(id)).unpause()),
    );
  }

  /** Thaws what a service left frozen when it died. */
  async thawAll(): Promise<void> {
    const ids = await this.sandboxes('paused');
    await Promise.all(ids.map(async (id) => await this.thaw(id)));
  }

  async end(id: string, cause: string): Promise<void> {
    const container = this.docker.getContainer(sandboxName(id));
    await callEngine('the sandbox cannot be stopped', async () => {
      const found = await nullOnStatus([404], container.inspect());
      if (found === null) {
        return;
      }
      this.causes.set(found.Id, cause);
      // 409: it has ended by itself.
      await nullOnStatus([404, 409], container.kill());
    });
  }

  /** Why the container was ended; null when the guard did not end it. */
  causeOf(containerId: string): string | null {
    return this.causes.get(containerId) ?? null;
  }

  forget(containerId: string): void {
    this.causes.delete(containerId);
  }

  private async sandboxes(status: 'running' | 'paused'): Promise<string[]> {
    const filters = { label: [`${INSTANCE_LABEL}=${this.instanceId}`], status: [status] };
    const found = await callEngine('the sandboxes cannot be listed', () =>
      this.docker.listContainers({ filters }),
    );
    return found.flatMap(({ Labels }) => Labels[SANDBOX_LABEL] || []);
  }

  private async readSizes(): Promise<Sizes> {
    const answer: unknown = await callEngine(
      'the volumes of the sandboxes cannot be measured',
      () => dialEngine(this.docker, { method: 'GET', path: MEASURE_VOLUMES }),
      MEASURE_DEADLINE_MS,
    );
    const sizes = new Map<string, number>();
    // Engines after 29 name them otherwise (API 1.53).
    for (const volume of [...jsonList(answer, 'VolumeUsage', 'Items'), ...jsonList(answer, 'Volumes')]) {
      const [name, bytes] = [jsonText(volume, 'Name'), jsonNumber(volume, 'UsageData', 'Size')];
      // -1: the engine does not know.
      if (name !== null && bytes !== null && bytes >= 0) {
        sizes.set(name, bytes);
      }
    }
    return sizes;
  }
}
