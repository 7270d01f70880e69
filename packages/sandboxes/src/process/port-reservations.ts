import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import pLimit from 'p-limit';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { isProgramAlive } from './sandbox-program.js';
import { SandboxFiles, sandboxIds } from './sandbox-files.js';

/** Linux assigns 32768 to 60999 to outgoing connections, which could take a port before the program does. */
const FIRST_PORT = 20_000;
const PORT_COUNT = 10_000;

export class PortReservations {
  /** Only this process: two processes of a host that start sandboxes at once rely on the choice by hash. */
  private readonly serialized = pLimit(1);

  constructor(
    private readonly folder: string,
    private readonly host: string,
  ) {}

  /** Free ports, if possible the same as before, until `record` has stored them. @throws SandboxBackendError */
  async reserve<T>(
    id: string,
    names: readonly string[],
    record: (ports: Record<string, number>) => Promise<T>,
  ): Promise<T> {
    if (names.length === 0) {
      return await record({});
    }
    return await this.serialized(async () => {
      const taken = await this.portsOfOthers(id);
      const ports: Record<string, number> = {};
      for (const name of names) {
        const port = await this.pick(hash('sha256', `${id} ${name}`, 'buffer').readUInt32BE(), taken);
        taken.add(port);
        ports[name] = port;
      }
      return await record(ports);
    });
  }

  private async pick(seed: number, taken: ReadonlySet<number>): Promise<number> {
    for (let step = 0; step < PORT_COUNT; step += 1) {
      const port = FIRST_PORT + ((seed + step) % PORT_COUNT);
      if (!taken.has(port) && (await listenBriefly(this.host, port)) !== null) {
        return port;
      }
    }
    throw new SandboxBackendError(
      `The sandbox cannot be started: no port from ${FIRST_PORT} to ${FIRST_PORT + PORT_COUNT - 1} is free.`,
    );
  }

  private async portsOfOthers(id: string): Promise<Set<number>> {
    const others = (await sandboxIds(this.folder)).filter((other) => other !== id);
    const records = await Promise.all(
      others.map(async (other) => await new SandboxFiles(this.folder, other).program()),
    );
    return new Set(
      records.flatMap((record) =>
        record !== null && isProgramAlive(record) ? Object.values(record.ports) : [],
      ),
    );
  }
}

/** A port that is free now; a program that loses it to another one ends, and gets a new port at its next start. */
export async function freePort(host: string): Promise<number> {
  const port = await listenBriefly(host, 0);
  if (port === null) {
    throw new Error('the system assigned no port');
  }
  return port;
}

async function listenBriefly(host: string, requested: number): Promise<number | null> {
  const server = createServer();
  server.listen(requested, host);
  if ((await unlessCode('EADDRINUSE', once(server, 'listening'))) === null) {
    return null;
  }
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? null : address.port;
}
