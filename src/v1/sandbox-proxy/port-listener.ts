import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ServerConnections } from '../../common/requests/server-connections.js';
import { MAX_HEADER_BYTES } from '../../common/requests/unreadable-requests.js';
import { isWebSocket } from './sandbox-forwarder.js';

const LOOPBACK = '127.0.0.1';
/** Asks which process holds a port. No agent server has such a path. */
const CHALLENGE_PATH = '/.well-known/slipway-port';
const CHALLENGE = /^\/\.well-known\/slipway-port\?nonce=([0-9a-f]{32})$/;
const CHALLENGE_TIMEOUT_MS = 2_000;
const PROOF_LENGTH = 64;

interface ListenerOptions {
  port: number;
  main: Server;
  onConnection: (socket: Socket) => void;
  sessionKey: () => Promise<string | null>;
}

export class PortListener {
  private constructor(
    readonly port: number,
    private readonly server: Server,
  ) {}

  /** Null when another process listens on the port. */
  static async open({ port, main, onConnection, sessionKey }: ListenerOptions): Promise<PortListener | null> {
    const server = createServer({
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: main.headersTimeout,
      requestTimeout: main.requestTimeout,
      keepAliveTimeout: main.keepAliveTimeout,
    });
    Object.assign(server, { shouldUpgradeCallback: isWebSocket });
    const connections = ServerConnections.attach(server);
    server.on('connection', onConnection);
    server.on(
      'request',
      connections.inTurn((request, response) => {
        const [, nonce] = CHALLENGE.exec(request.url ?? '') ?? [];
        if (nonce === undefined) {
          main.emit('request', request, response);
        } else {
          void prove(response, port, nonce, sessionKey);
        }
      }),
    );
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      main.emit('upgrade', request, socket, head);
    });
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    server.once('listening', () => resolve(true));
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen({ port, host: LOOPBACK });
    return (await promise) ? new PortListener(port, server) : null;
  }

  /** Resolves when the requests under way have ended. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.server.close(() => resolve());
    });
    this.server.closeIdleConnections();
    await closed;
  }
}

/** Whether the port's holder knows the sandbox's key, as only another replica does. The key itself is not sent. */
export async function isHeldByReplica(port: number, sessionKey: string): Promise<boolean> {
  const nonce = randomBytes(16).toString('hex');
  const given = await askForProof(port, nonce);
  const expected = proofOf(sessionKey, port, nonce);
  return given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected));
}

/** Contains the port, so that a challenge cannot be relayed to another port. */
function proofOf(sessionKey: string, port: number, nonce: string): string {
  return createHmac('sha256', sessionKey).update(`slipway holds port ${port}: ${nonce}`).digest('hex');
}

async function prove(
  response: ServerResponse,
  port: number,
  nonce: string,
  sessionKey: () => Promise<string | null>,
): Promise<void> {
  try {
    const key = await sessionKey();
    response.writeHead(key === null ? 404 : 200, {
      'Content-Type': 'text/plain',
      'Cache-Control': 'no-store',
    });
    response.end(key === null ? '' : proofOf(key, port, nonce));
  } catch {
    // The database is unavailable; the other replica asks again.
    response.writeHead(503).end();
  }
}

/** Returns at most as many bytes as a proof has. */
async function askForProof(port: number, nonce: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const outgoing = get({
    host: LOOPBACK,
    port,
    path: `${CHALLENGE_PATH}?nonce=${nonce}`,
    agent: false,
    // An unknown program may send one byte at a time, so the whole exchange is limited.
    signal: AbortSignal.timeout(CHALLENGE_TIMEOUT_MS),
  });
  outgoing.on('error', () => resolve(''));
  outgoing.on('close', () => resolve(''));
  outgoing.on('response', (response) => {
    let text = '';
    response.setEncoding('latin1');
    response.on('error', () => resolve(''));
    response.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > PROOF_LENGTH) {
        resolve('');
        outgoing.destroy();
      }
    });
    response.on('end', () => resolve(text));
  });
  return await promise;
}
