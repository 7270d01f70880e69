import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Often enough to time an event well, and seldom enough to take no processor time from what is measured. */
const POLL_MS = 4;
const TIMEOUT_MS = 120_000;

/** Runs `work` with a temporary folder, and removes the folder afterwards. */
export async function withFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-bench-'));
  try {
    // Under root PostgreSQL runs as another user, who has to pass through.
    await chmod(folder, 0o711);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** @throws Error when the condition does not come true within two minutes */
export async function untilTrue(
  condition: () => boolean | Promise<boolean>,
  what: string,
  pollMs = POLL_MS,
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`waiting for ${what} timed out`);
    }
    await delay(pollMs);
  }
}

/** Whether the address answers with success. */
export async function isServed(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.ok;
  } catch (error) {
    // fetch's error for a refused connection.
    if (error instanceof TypeError) {
      return false;
    }
    throw error;
  }
}

/** A loopback port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
