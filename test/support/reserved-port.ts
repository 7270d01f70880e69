import { createServer } from 'node:net';
import { startListening } from './start-listening.js';

/** Below what Linux assigns by itself, and below the ports of sandboxes; each worker of Jest has a part of its own. */
const FIRST_PORT = 10_000;
const PORTS_OF_A_WORKER = 900;
const first = FIRST_PORT + (Number(process.env['JEST_WORKER_ID'] ?? 0) % 10) * PORTS_OF_A_WORKER;
let next = process.pid;

/** A port for a program that has to be told one: nothing else takes it between this look and the program's start. */
export async function reservedPort(): Promise<number> {
  for (let step = 0; step < PORTS_OF_A_WORKER; step += 1) {
    const port = first + (next++ % PORTS_OF_A_WORKER);
    const server = createServer();
    try {
      await startListening(server, port);
    } catch {
      continue;
    }
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    return port;
  }
  throw new Error(`no port from ${first} on is free`);
}
