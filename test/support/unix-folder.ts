import { mkdtemp, realpath, rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A folder for Unix sockets, without symbolic links on the way to it. */
export interface UnixFolder {
  path: string;
  remove(): Promise<void>;
}

export async function createUnixFolder(): Promise<UnixFolder> {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'slipway-sockets-')));
  return { path: folder, remove: () => rm(folder, { recursive: true, force: true, maxRetries: 10 }) };
}

/** Starts a server on a Unix socket, and answers the address that a backend would report. */
export async function listenOnUnix(server: Server, socketPath: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return `unix:${socketPath}`;
}
