import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { endProcesses } from '@slipway/common/processes/end-processes.js';
import { PROBE_PREFIX } from './isolation-probe.js';
import { sandboxMarker } from './program-command.js';
import type { ProcessBackendOptions } from './process-options.js';
import { removeTree } from './tree-removal.js';

/** Twice as long as a probe may take before it is killed. */
const ABANDONED_MS = 40_000;

/** Replicas that share the folder may not see each other's processes, so only age tells which probes are abandoned. */
export class AbandonedProbes {
  readonly #options: Pick<ProcessBackendOptions, 'folder' | 'instanceId'>;
  readonly #monotonic: () => number;
  #seenAt = new Map<string, number>();

  constructor(
    options: Pick<ProcessBackendOptions, 'folder' | 'instanceId'>,
    monotonic: () => number = () => performance.now(),
  ) {
    this.#options = options;
    this.#monotonic = monotonic;
  }

  async remove(): Promise<void> {
    const { folder, instanceId } = this.#options;
    const now = this.#monotonic();
    const names = (await readdir(folder)).filter((name) => name.startsWith(PROBE_PREFIX));
    this.#seenAt = new Map(names.map((name) => [name, this.#seenAt.get(name) ?? now]));
    for (const [name, seenAt] of this.#seenAt) {
      if (now >= seenAt + ABANDONED_MS) {
        await endProcesses({ root: null, marker: sandboxMarker(instanceId, name), user: null });
        await removeTree(path.join(folder, name));
      }
    }
  }
}
