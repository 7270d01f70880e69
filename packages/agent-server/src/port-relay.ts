import { lstat, mkdir, rm, readFile } from 'node:fs/promises';
import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { log } from './observability.js';
import { setTimeout as delay } from 'node:timers/promises';

export interface Relay {
  from: RelayEnd;
  to: RelayEnd;
}

type RelayEnd = { kind: 'unix'; socket: string } | { kind: 'tcp'; host: string; port: number };

/** Reads `unix:/path=tcp:host:port` and the like; the first end listens. @throws TypeError */
export function parseRelay(text: string): Relay {
  const [from, to, ...others] = text.split('=').map(parseEnd);
  if (!from || !to || others.length > 0) {
    throw new TypeError('--relay must be unix:/path=tcp:host:port or tcp:host:port=tcp:host:port');
  }
  return { from, to };
}

/** Starts all relays. One whose port a program of the sandbox has taken is logged; the others work without it. */
export async function startRelays(relays: readonly Relay[]): Promise<{ close(): void }> {
  const servers = await Promise.all(
    relays.map(async ({ from, to }) => {
      const server = createServer({ allowHalfOpen: true }, (client) => void forward(client, to));
      try {
        await listenAt(server, from);
        return [server];
      } catch (error) {
        log('warn', 'failed to start relay', { from: nameOf(from), error: errorMessage(error) });
        return [];
      }
    }),
  );
  return { close: () => servers.flat().forEach((server) => server.close()) };
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

async function listenAt(server: Server, end: RelayEnd): Promise<void> {
  await (end.kind === 'unix'
    ? listenOnSocket(server, end.socket)
    : listening(server, { host: end.host, port: end.port }));
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
  const options: NetConnectOpts = to.kind === 'unix' ? { path: to.socket } : { host: to.host, port: to.port };
  const target = connect({ ...options, allowHalfOpen: true });
  try {
    await Promise.all([pipeline(client, target), pipeline(target, client)]);
  } catch {
    // One side has gone, or nothing listens there: closing the connection tells the other side.
    client.destroy();
    target.destroy();
  }
}

function parseEnd(text: string): RelayEnd | null {
  if (text.startsWith('unix:/')) {
    return { kind: 'unix', socket: text.slice('unix:'.length) };
  }
  const [, host, port] = /^tcp:([\w.]+):(\d{1,5})$/.exec(text) ?? [];
  return host === undefined ? null : { kind: 'tcp', host, port: Number(port) };
}

function nameOf(end: RelayEnd): string {
  return end.kind === 'unix' ? end.socket : `${end.host}:${end.port}`;
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
