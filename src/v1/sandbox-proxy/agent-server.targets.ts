import { Agent, type ClientRequestArgs } from 'node:http';
import { connect, Socket } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import {
  requestOrigin,
  requireSandboxAddress,
  type SandboxAddress,
} from '../agent-servers/sandbox-address.js';
import { connectToSandbox } from '../agent-servers/sandbox-connection.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/running-sandbox.queries.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { sessionKeyHash } from '../sandboxes/session-key.js';
import { MAX_IDLE, SandboxExchanges } from './sandbox-exchanges.js';

/**
 * How old a row may be that a request with the sandbox's key is judged by: another replica may have paused the sandbox
 * since. A connection is opened after a look at the row itself, whatever the age.
 */
const MAX_AGE_MS = 1_000;
/** Shorter than any agent server keeps idle connections (5 s), so that hardly ever both ends close and send at once. */
const IDLE_MS = 2_000;
const MAX_TARGETS = 1_000;

/** A running agent server, and the connections to it that are kept for requests with its key. */
export interface ConnectedSandbox {
  sandbox: RunningSandbox;
  /** Of its session key, for `isKeyOfHash`. */
  keyHash: Buffer;
  connections: SandboxConnections;
}

/** The sandbox has stopped or was started again. Nothing was sent. */
export class SandboxMovedError extends Error {
  constructor() {
    super('the sandbox has stopped or was started again');
    this.name = 'SandboxMovedError';
  }
}

/** Keeps connections to one agent server in one start of its sandbox; its key is sent over no other. */
export class SandboxConnections extends Agent {
  /** For requests without a body. */
  readonly exchanges: SandboxExchanges;
  readonly #address: SandboxAddress;
  readonly #isCurrent: () => Promise<boolean>;

  /** @throws SandboxAddressError */
  constructor({ address, isCurrent }: Pick<RunningSandbox, 'address' | 'isCurrent'>) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS, scheduling: 'lifo' });
    this.#address = requireSandboxAddress(address);
    this.#isCurrent = isCurrent ?? (() => Promise.resolve(true));
    this.exchanges = new SandboxExchanges({
      origin: requestOrigin(this.#address),
      open: () => this.open(),
      idleMs: IDLE_MS,
    });
  }

  override createConnection(
    _options: ClientRequestArgs,
    onCreate?: (error: Error | null, socket: Socket) => void,
  ): undefined {
    this.open().then(
      (socket) => onCreate?.(null, socket),
      (error: Error) => onCreate?.(error, new Socket()),
    );
    return undefined;
  }

  /**
   * Opens a connection, if the sandbox still is in this start: where it was, anybody may listen now.
   *
   * @throws SandboxMovedError
   */
  async open(): Promise<Socket> {
    if (!(await this.#isCurrent())) {
      throw new SandboxMovedError();
    }
    const address = this.#address;
    return address.kind === 'tcp'
      ? connect(tcpOptions(address.origin)).setNoDelay(true)
      : await connectToSandbox(address);
  }

  /** Closes what nobody uses; requests that are under way go on. */
  closeIdle(): void {
    this.exchanges.closeIdle();
    Object.values(this.freeSockets).forEach((sockets) => sockets?.forEach((socket) => socket.destroy()));
  }
}

function tcpOptions(origin: string): { host: string; port: number } {
  const { hostname, port } = urlToHttpOptions(new URL(origin));
  // Port 80 is the only one that an origin leaves out.
  return { host: (hostname ?? '').replace(/^\[|\]$/g, ''), port: Number(port ?? 80) };
}

/**
 * Where agent servers are, for the requests of their users. A row that was read a moment ago is used again: what it may
 * wrongly let through goes over a connection that was opened to the right program, and ends there with that program.
 */
@Injectable()
export class AgentServerTargets implements OnApplicationShutdown {
  readonly #known = new Map<string, ConnectedSandbox & { readAt: number }>();

  constructor(
    private readonly running: RunningSandboxQueries,
    events: SandboxEvents,
  ) {
    events.onStarting((id) => this.forget(id));
    events.beforeStop((id) => Promise.resolve(this.forget(id)));
    events.onStopped((id) => this.forget(id));
  }

  /** As its row said at most a second ago; null when it does not run. */
  async find(sandboxId: string): Promise<ConnectedSandbox | null> {
    const known = this.#known.get(sandboxId);
    return known && performance.now() - known.readAt < MAX_AGE_MS ? known : await this.findAnew(sandboxId);
  }

  /** As its row says now; null when it does not run. */
  async findAnew(sandboxId: string): Promise<ConnectedSandbox | null> {
    const readAt = performance.now();
    const sandbox = await this.running.target(sandboxId);
    if (sandbox === null) {
      this.forget(sandboxId);
      return null;
    }
    const known = this.#known.get(sandboxId);
    if (known && isSameStart(known.sandbox, sandbox)) {
      known.readAt = Math.max(known.readAt, readAt);
      return known;
    }
    this.forget(sandboxId);
    const connections = new SandboxConnections(sandbox);
    const found = { sandbox, keyHash: sessionKeyHash(sandbox.sessionKey), connections, readAt };
    this.#known.set(sandboxId, found);
    this.#forgetOldest();
    return found;
  }

  /** Reads its row again with the next request, and keeps no connection that nobody uses. */
  forget(sandboxId: string): void {
    this.#known.get(sandboxId)?.connections.closeIdle();
    this.#known.delete(sandboxId);
  }

  onApplicationShutdown(): void {
    [...this.#known.keys()].forEach((id) => this.forget(id));
  }

  #forgetOldest(): void {
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > MAX_TARGETS) {
      this.forget(oldest);
    }
  }
}

function isSameStart(one: RunningSandbox, other: RunningSandbox): boolean {
  return (
    one.generation === other.generation &&
    one.address === other.address &&
    one.sessionKey === other.sessionKey
  );
}
