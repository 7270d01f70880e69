import { once } from 'node:events';
import { lstat, mkdir, readdir, rm, readFile } from 'node:fs/promises';
import { connect, createServer, type Server, Socket } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { log } from './observability.js';
import { setTimeout as delay } from 'node:timers/promises';

export interface Relay {
  from: Address;
  to: RelayEnd;
}

/** A Unix socket or a port, as Node.js takes them. */
type Address = { path: string } | { host: string; port: number };
/** The folder has a socket that something listens at: each replica of the service has a proxy of its own. */
type RelayEnd = Address | { folder: string };

/** Reads `unix:/path=tcp:host:port`, `tcp:host:port=any:/folder` and the like; the first end listens. @throws TypeError */
export function parseRelay(text: string): Relay {
  const [from, to, ...others] = text.split('=').map(parseEnd);
  if (!from || !to || 'folder' in from || others.length > 0) {
    throw new TypeError(
      '--relay must be unix:/path=tcp:host:port, tcp:host:port=tcp:host:port or tcp:host:port=any:/folder',
    );
  }
  return { from, to };
}

/** Starts all relays, in their order. One whose port a program of the sandbox has taken is logged; the others work without it. */
export async function startRelays(relays: readonly Relay[]): Promise<{ close(): void }> {
  const servers: Server[] = [];
  for (const { from, to } of relays) {
    const server = createServer({ allowHalfOpen: true }, (client) => void forward(client, to));
    try {
      await ('path' in from ? listenOnSocket(server, from.path) : listening(server, from));
      servers.push(server);
    } catch (error) {
      const name = Object.values(from).join(':');
      log('warn', 'failed to start relay', { from: name, error: errorMessage(error) });
    }
  }
  return { close: () => servers.forEach((server) => server.close()) };
}

/** Replaces a leftover socket. Addresses have at most 107 bytes (unix(7)), so the shorter path is used. */
export async function listenOnSocket(server: Server, socket: string): Promise<void> {
  await mkdir(path.dirname(socket), { recursive: true, mode: 0o700 });
  if ((await lstat(socket).catch(() => null)) !== null) {
    await rm(socket);
  }
  const relative = path.relative(process.cwd(), socket);
  await listening(server, { path: relative.length < socket.length ? relative : socket });
}

export async function listening(
  server: Server,
  options: { path: string } | { host?: string; port: number },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, resolve);
  });
}

/** Each direction ends by itself: a client may stop sending and still wait for the response. */
async function forward(client: Socket, to: RelayEnd): Promise<void> {
  client.on('error', () => undefined);
  const target = 'folder' in to ? await connectToAny(to.folder) : connectTo(to);
  try {
    await Promise.all([pipeline(client, target), pipeline(target, client)]);
  } catch {
    // One side has gone, or nothing listens there: closing the connection tells the other side.
    client.destroy();
    target.destroy();
  }
}

/** An error that comes before anything is forwarded has no other listener. */
function connectTo(to: Address): Socket {
  return connect({ ...to, allowHalfOpen: true }).on('error', () => undefined);
}

/** A program that was killed leaves its socket behind, at which nothing answers. Returns a destroyed socket where none does. */
async function connectToAny(folder: string): Promise<Socket> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const socket = connectTo({ path: path.join(folder, name) });
    try {
      await once(socket, 'connect');
      return socket;
    } catch {
      socket.destroy();
    }
  }
  return new Socket().destroy();
}

function parseEnd(text: string): RelayEnd | null {
  if (text.startsWith('unix:/')) {
    return { path: text.slice('unix:'.length) };
  }
  if (text.startsWith('any:/')) {
    return { folder: text.slice('any:'.length) };
  }
  const [, host, port] = /^tcp:([\w.]+):(\d{1,5})$/.exec(text) ?? [];
  return host === undefined ? null : { host, port: Number(port) };
}

const POLL_MS = 10;
/** The route is the last thing that slirp4netns configures. */
const DEFAULT_ROUTE = /^\w+\t00000000\t/m;

/** Resolves when this network leads somewhere, or is not waited for any more. The service ends what it cannot connect. */
export async function networkConnected(stopped: AbortSignal = new AbortController().signal): Promise<void> {
  while (!stopped.aborted && !DEFAULT_ROUTE.test(await readFile('/proc/net/route', 'utf8'))) {
    await delay(POLL_MS);
  }
}
