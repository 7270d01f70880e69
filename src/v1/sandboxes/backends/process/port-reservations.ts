import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import pLimit from 'p-limit';
import { jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { isProgramAlive } from './program-record.js';
import { SandboxFiles, sandboxIds } from './sandbox-files.js';

/**
 * Below the numbers that Linux gives to outgoing connections (32768 to 60999), which would be taken from a program that
 * starts to listen later.
 */
const FIRST = 20_000;
const COUNT = 10_000;

/** Gives sandboxes ports of this machine that no other sandbox has. */
export class PortReservations {
  /** Of this process; with others of the same host only the choice by hash keeps starts at the same moment apart. */
  readonly #turn = pLimit(1);
  readonly #folder: string;
  readonly #host: string;

  constructor(folder: string, host: string) {
    this.#folder = folder;
    this.#host = host;
  }

  /**
   * Chooses a port for each name, the same as before where that is free. Nobody else is given one until `write` has
   * written them down.
   *
   * @throws SandboxBackendError when all are taken
   */
  async reserve<T>(
    id: string,
    names: readonly string[],
    write: (ports: Record<string, number>) => Promise<T>,
  ): Promise<T> {
    if (names.length === 0) {
      return await write({});
    }
    return await this.#turn(async () => {
      const taken = await this.#taken(id);
      const ports: Record<string, number> = {};
      for (const name of names) {
        const port = await this.#choose(hash('sha256', `${id} ${name}`, 'buffer').readUInt32BE(), taken);
        taken.add(port);
        ports[name] = port;
      }
      return await write(ports);
    });
  }

  async #choose(seed: number, taken: ReadonlySet<number>): Promise<number> {
    for (let step = 0; step < COUNT; step += 1) {
      const port = FIRST + ((seed + step) % COUNT);
      if (!taken.has(port) && (await isPortFree(this.#host, port))) {
        return port;
      }
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
      records.flatMap((record) =>
        record !== null && isProgramAlive(record) ? Object.values(record.ports) : [],
      ),
    );
  }
}

/**
 * A port of an address of this machine that nothing listens on right now. Another program may take it before it is
 * used: whoever is told it ends then, and gets another one at its next start.
 */
export async function freePort(host: string): Promise<number> {
  const port = await listenOnce(host, 0);
  if (port === null) {
    throw new Error('the system gave no port');
  }
  return port;
}

/** Whether a program could listen there right now. */
async function isPortFree(host: string, port: number): Promise<boolean> {
  return (await listenOnce(host, port)) !== null;
}

/** The port; null when it is taken. */
async function listenOnce(host: string, wanted: number): Promise<number | null> {
  const server = createServer();
  server.listen(wanted, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (jsonText(error, 'code') === 'EADDRINUSE') {
      return null;
    }
    throw error;
  }
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? null : address.port;
}
