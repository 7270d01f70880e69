import { hash } from 'node:crypto';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { isPortFree } from './free-port.js';
import { lives } from './program-record.js';
import { SandboxFiles, sandboxIds } from './sandbox-files.js';

/**
 * Below the numbers that Linux gives to outgoing connections (32768 to 60999), which would be taken from a program that
 * starts to listen later.
 */
const FIRST = 20_000;
const COUNT = 10_000;

/** Gives sandboxes ports of this machine that no other sandbox has. */
export class PortAllotments {
  /** Of starts that are under way: not written down yet. */
  readonly #reserved = new Set<number>();
  readonly #folder: string;
  readonly #host: string;

  constructor(folder: string, host: string) {
    this.#folder = folder;
    this.#host = host;
  }

  /**
   * Chooses a port for each name, the same as before where that is free, and keeps them for this sandbox while `write`
   * writes them down.
   *
   * @throws SandboxBackendError when all are taken
   */
  async using<T>(
    id: string,
    names: readonly string[],
    write: (ports: Record<string, number>) => Promise<T>,
  ): Promise<T> {
    const ports: Record<string, number> = {};
    try {
      const taken = names.length === 0 ? new Set<number>() : await this.#taken(id);
      for (const name of names) {
        ports[name] = await this.#reserve(hash('sha256', `${id} ${name}`, 'buffer').readUInt32BE(), taken);
      }
      return await write(ports);
    } finally {
      for (const port of Object.values(ports)) {
        this.#reserved.delete(port);
      }
    }
  }

  async #reserve(seed: number, taken: ReadonlySet<number>): Promise<number> {
    for (let step = 0; step < COUNT; step += 1) {
      const port = FIRST + ((seed + step) % COUNT);
      if (taken.has(port) || this.#reserved.has(port)) {
        continue;
      }
      this.#reserved.add(port);
      if (await isPortFree(this.#host, port)) {
        return port;
      }
      this.#reserved.delete(port);
    }
    throw new SandboxBackendError(
      `The sandbox cannot be started: no port from ${FIRST} to ${FIRST + COUNT - 1} is free.`,
    );
  }

  /** Ports of the other sandboxes that run. */
  async #taken(id: string): Promise<Set<number>> {
    const others = (await sandboxIds(this.#folder)).filter((other) => other !== id);
    const records = await Promise.all(
      others.map(async (other) => await new SandboxFiles(this.#folder, other).program()),
    );
    return new Set(
      records.flatMap((record) => (record !== null && lives(record) ? Object.values(record.ports) : [])),
    );
  }
}
