import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { jittered, KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { ServerConnections } from '@slipway/api/requests/server-connections.js';
import { MAX_HEADER_BYTES } from '@slipway/api/requests/unreadable-requests.js';
import { AppConfig } from '../../config/app-config.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { type ExposedSandbox, SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { HostIdentity } from '../sandboxes/host-identity.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { isWebSocket } from '@slipway/reverse-proxy/sandbox-forwarder.js';

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

class PortListener {
  private constructor(
    readonly port: number,
    private readonly server: Server,
  ) {}

  /** Returns null when another process listens on the port. */
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
async function isHeldByReplica(port: number, sessionKey: string): Promise<boolean> {
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

/**
 * Below the ports of process sandboxes (20000 to 29999) and Linux's ephemeral ones, which may be taken in a restart.
 */
const FIRST_PORT = 13_000;
const PORT_COUNT = 7_000;
/** Bounds the delay of a start when a program occupies many ports on purpose. */
const MAX_ATTEMPTS = 200;
/** Bounds how long a takeover from a killed replica takes, and how late removals by other replicas are noticed. */
const EVERY_MS = 2_000;
/** While this host has no sandbox with a port. */
const IDLE_MS = 10_000;
/** How long the port of a removed sandbox answers 'gone': pages that have it open retry at growing intervals. */
const GONE_MS = 60_000;
/** Payload: the id of the host whose replica has released its ports. */
const RELEASED_CHANNEL = 'sandbox_ports';

/**
 * Holds a loopback port for each sandbox of this host (`SANDBOX_EXPOSE=ports`), even a paused one, so that no other
 * program answers at an address that clients know. Replicas take ports over: at once if the last holder announced its
 * stop, otherwise with the next sweep.
 */
@Injectable()
export class AgentServerPorts extends BackgroundLoop implements OnApplicationShutdown {
  private readonly listeners = new Map<string, PortListener>();
  private readonly sandboxes = new WeakMap<Socket, string>();
  /** Times of a monotonic clock, milliseconds. */
  private readonly goneSince = new Map<string, number>();
  private readonly bySandbox = new KeyedLimit(1);
  /** Sandboxes that got no port; their next start tries again. */
  private readonly without = new Set<string>();
  private main: Server | null = null;
  private closing: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly config: AppConfig,
    private readonly rows: SandboxRepository,
    private readonly events: SandboxEvents,
    private readonly host: HostIdentity,
    private readonly notifications: DatabaseNotifications,
    private readonly dataSource: DataSource,
  ) {
    super(EVERY_MS, new Logger(AgentServerPorts.name), 'failed to hold the ports of sandboxes');
  }

  handTo(main: Server): void {
    this.main = main;
  }

  /** The sandbox at whose port a request has arrived; null elsewhere. */
  sandboxOf({ socket }: Pick<IncomingMessage, 'socket'>): string | null {
    return this.sandboxes.get(socket) ?? null;
  }

  /** Clients may know the addresses, so the ports are bound before the first request. */
  override async onApplicationBootstrap(): Promise<void> {
    if (this.config.sandboxes.expose !== 'ports') {
      return;
    }
    this.events.on('starting', async (id) => {
      this.without.delete(id);
      this.loop.within(EVERY_MS);
      await this.hold(id);
    });
    this.events.on('stopped', (id) => this.hold(id));
    this.notifications.listen(RELEASED_CHANNEL, (hostId) => {
      if (hostId === this.host.id) {
        void this.loop.now();
      }
    });
    await this.loop.now();
    this.loop.start();
  }

  override async beforeApplicationShutdown(): Promise<void> {
    await super.beforeApplicationShutdown();
    const ids = [...this.listeners.keys()];
    this.closing = Promise.all(ids.map((id) => this.release(id)));
    if (ids.length > 0) {
      await this.announceRelease();
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.closing;
  }

  protected async work(): Promise<number | void> {
    return (await this.holdAll()) ? undefined : jittered(IDLE_MS);
  }

  /**
   * Holds the ports of all sandboxes that this host has or just had, and no others.
   * @returns whether there are any, in this process or in another one that may die
   */
  async holdAll(now: number = performance.now()): Promise<boolean> {
    const exposed = await this.rows.listExposed();
    const wanted = new Map(exposed.map(({ id, port }) => [id, port]));
    const outdated = [...this.listeners].filter(([id, { port }]) => wanted.get(id) !== port);
    const missing = exposed.filter(({ id }) => !this.listeners.has(id) && !this.without.has(id));
    const ids = new Set([...outdated, ...missing.map(({ id }) => [id] as const)].map(([id]) => id));
    await Promise.all([...ids].map((id) => this.hold(id, now)));
    return exposed.length > 0 || this.listeners.size > 0;
  }

  /** Holds the port in a sandbox's row, or assigns another one. */
  private async hold(id: string, now: number = performance.now()): Promise<void> {
    await this.bySandbox.run(id, async () => {
      const found = await this.rows.findExposed(id);
      const { port = null } = this.listeners.get(id) ?? {};
      if (found !== null) {
        this.goneSince.delete(id);
      }
      if (found === null ? this.isLongGone(id, now) : port !== found.port) {
        // Not awaited, because a request under way may take long.
        void this.release(id);
      }
      if (found === null || this.stopping || (port !== null && port === found.port)) {
        return;
      }
      if (found.port !== null && ((await this.open(id, found.port)) || (await this.isWithReplica(found)))) {
        return;
      }
      if (found.port !== null) {
        this.logger.warn('failed to hold the port of a sandbox: another program has it', {
          sandbox_id: id,
          port: found.port,
        });
      }
      await this.openAnother(found);
    });
  }

  private isLongGone(id: string, now: number): boolean {
    if (!this.listeners.has(id)) {
      return false;
    }
    const since = this.goneSince.get(id) ?? now;
    this.goneSince.set(id, since);
    return now - since >= GONE_MS;
  }

  private async open(id: string, port: number): Promise<boolean> {
    if (this.main === null) {
      throw new Error('expected handTo to be called before ports are opened');
    }
    const listener = await PortListener.open({
      port,
      main: this.main,
      onConnection: (socket) => this.sandboxes.set(socket, id),
      sessionKey: async () => (await this.rows.findExposed(id))?.sessionKey ?? null,
    });
    if (listener === null) {
      return false;
    }
    this.listeners.set(id, listener);
    if (this.stopping) {
      await this.release(id);
    }
    return true;
  }

  /** Asks twice, because a resume may renew the key in between. */
  private async isWithReplica({ id, port }: ExposedSandbox): Promise<boolean> {
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const found = await this.rows.findExposed(id);
      if (found === null || found.port !== port || port === null) {
        return true;
      }
      if (await isHeldByReplica(port, found.sessionKey)) {
        return true;
      }
    }
    return false;
  }

  /** Assigns another port. If none is free, the sandbox's address is the path below the service. */
  private async openAnother({ id, port: previous }: ExposedSandbox): Promise<void> {
    const taken = new Set((await this.rows.listExposed()).map(({ port }) => port));
    const seed = hash('sha256', id, 'buffer').readUInt32BE();
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const port = FIRST_PORT + ((seed + attempt) % PORT_COUNT);
      if (taken.has(port) || !(await this.open(id, port))) {
        continue;
      }
      if (await this.rows.assignPort(id, port, previous)) {
        return;
      }
      await this.release(id);
      if ((await this.rows.findExposed(id))?.port !== previous) {
        return;
      }
    }
    this.without.add(id);
    // The sandbox's clients must not be sent to the program that holds the old port.
    await this.rows.assignPort(id, null, previous);
    this.logger.warn('failed to find a free port for a sandbox', { sandbox_id: id, from: FIRST_PORT });
  }

  private async announceRelease(): Promise<void> {
    try {
      await this.notifications.publish(this.dataSource, RELEASED_CHANNEL, this.host.id);
    } catch (error) {
      this.logger.warn('failed to announce released ports', { error: errorMessage(error) });
    }
  }

  private async release(id: string): Promise<void> {
    const listener = this.listeners.get(id);
    this.listeners.delete(id);
    this.goneSince.delete(id);
    await listener?.close();
  }
}
