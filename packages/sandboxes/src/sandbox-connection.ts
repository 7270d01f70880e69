import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import type { RequestOptions } from 'node:http';
import { connect, Socket } from 'node:net';
import path from 'node:path';
import { urlToHttpOptions } from 'node:url';
import { callbackify } from 'node:util';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { PodPort } from './sandbox-backend.js';
import type { SandboxAddress } from './sandbox-address.js';

/** open(2): opens the file itself, whatever its kind, without the right to read it. Node.js does not name the flag. */
const O_PATH = 0o10000000;
const { O_DIRECTORY, O_NOFOLLOW } = constants;
const WRITABLE_BY_OTHERS = 0o002;
const CONNECT_TIMEOUT_MS = 10_000;

/** A Unix socket failed its checks or could not be reached. Nothing was sent to it. */
export class SandboxSocketError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(`failed to connect to the socket of the sandbox: ${message}`, options);
    this.name = 'SandboxSocketError';
  }
}

type PodConnector = (port: PodPort) => Promise<Socket>;
let podConnector: PodConnector | null = null;

/** Sets how the service reaches pods whose own address it cannot use. */
export function connectPodsWith(connector: PodConnector): void {
  podConnector = connector;
}

/** Returns options for `http.request` and WebSocket clients; each request gets a connection of its own. */
export function connectionOptions(address: SandboxAddress): RequestOptions {
  if (address.kind === 'tcp') {
    return { ...urlToHttpOptions(new URL(address.origin)), agent: false };
  }
  const toSocket = callbackify(() => connectToSandbox(address));
  return {
    host: 'localhost',
    createConnection: (_options, onCreate) => {
      toSocket((error: Error | null, socket) => onCreate(error, error ? new Socket() : socket));
      return undefined;
    },
  };
}

/** @throws Error unless the program accepts the connection */
export async function connectToSandbox(address: Exclude<SandboxAddress, { kind: 'tcp' }>): Promise<Socket> {
  if (address.kind === 'unix') {
    return await connectToSocket(address.socketPath);
  }
  if (podConnector === null) {
    throw new Error('failed to connect to a pod: that needs SANDBOX_BACKEND=kubernetes');
  }
  return await podConnector(address);
}

/**
 * Connects through a checked descriptor, because tools of the sandbox may replace parts of the path between check and
 * connect. Works for paths beyond a socket address's 107 bytes too.
 * @throws SandboxSocketError unless a socket of the folder's owner has exactly this path and accepts
 */
export async function connectToSocket(socketPath: string): Promise<Socket> {
  try {
    const socket = await (process.platform === 'linux'
      ? connectThroughDescriptor(socketPath)
      : connectByName(socketPath));
    if (socket.destroyed) {
      throw new SandboxSocketError('it was closed at once');
    }
    return socket;
  } catch (error) {
    throw error instanceof SandboxSocketError
      ? error
      : new SandboxSocketError(errorMessage(error), { cause: error });
  }
}

async function connectThroughDescriptor(socketPath: string): Promise<Socket> {
  const folder = await open(path.dirname(socketPath), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  try {
    const { uid, mode } = await folder.stat();
    if ((await readlink(pathOf(folder))) !== path.dirname(socketPath)) {
      throw new SandboxSocketError('a symbolic link leads to its folder');
    }
    if ((mode & WRITABLE_BY_OTHERS) !== 0) {
      throw new SandboxSocketError('everybody can write to its folder');
    }
    const file = await open(path.join(pathOf(folder), path.basename(socketPath)), O_PATH | O_NOFOLLOW);
    try {
      const found = await file.stat();
      if (!found.isSocket() || found.uid !== uid) {
        throw new SandboxSocketError('something else has its name');
      }
      return await connected(pathOf(file));
    } finally {
      await file.close();
    }
  } finally {
    await folder.close();
  }
}

/** Connects on systems without `/proc`, where tools could reach the socket anyway. */
async function connectByName(socketPath: string): Promise<Socket> {
  const found = await lstat(socketPath);
  if (!found.isSocket() || (await realpath(path.dirname(socketPath))) !== path.dirname(socketPath)) {
    throw new SandboxSocketError('something else has its name');
  }
  return await connected(socketPath);
}

function pathOf(file: FileHandle): string {
  return `/proc/self/fd/${file.fd}`;
}

async function connected(name: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ path: name });
  const timer = setTimeout(() => socket.destroy(new Error('it timed out')), CONNECT_TIMEOUT_MS);
  socket.on('error', reject);
  socket.once('connect', () => resolve(socket));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
