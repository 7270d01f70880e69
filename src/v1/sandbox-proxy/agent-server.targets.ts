import { Agent, type ClientRequestArgs, type IncomingMessage } from 'node:http';
import { connect, Socket } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { AccessChanges } from '../../auth/access-changes.js';
import { requireSandboxAddress, type SandboxAddress } from '@slipway/sandboxes/sandbox-address.js';
import { connectToSandbox } from '@slipway/sandboxes/sandbox-connection.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { SandboxEvents } from '../sandboxes/sandbox-events.js';
import { sessionKeyHash } from '../sandboxes/session-key.js';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { AgentServerPorts } from './agent-server.ports.js';

/** How old a row may be that a key is checked against. New connections read it again, as it may be paused by now. */
const MAX_AGE_MS = 1_000;
/** Below the 5 s for which agent servers keep idle connections, to rarely send just as they close. */
const IDLE_MS = 2_000;
/** Matches one program's concurrent requests, as each new connection costs a read of the sandbox's row. */
const MAX_IDLE = 256;
const MAX_TARGETS = 1_000;

export interface ConnectedSandbox {
  sandbox: RunningSandbox;
  keyHash: Buffer;
  connections: SandboxConnections;
}

/** Thrown when the sandbox has stopped or was started again. Nothing was sent to it. */
export class SandboxMovedError extends Error {
  constructor() {
    super('the sandbox has stopped or was started again');
    this.name = 'SandboxMovedError';
  }
}

/** Keeps connections to one agent server during one start. Its key is sent over no other connection. */
export class SandboxConnections extends Agent {
  private readonly address: SandboxAddress;
  private readonly isCurrent: () => Promise<boolean>;

  constructor({ address, isCurrent }: Pick<RunningSandbox, 'address' | 'isCurrent'>) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS, scheduling: 'lifo' });
    this.address = requireSandboxAddress(address);
    this.isCurrent = isCurrent ?? (() => Promise.resolve(true));
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

  /** After the start ends, any program may listen at the address. Throws SandboxMovedError. */
  private async open(): Promise<Socket> {
    if (!(await this.isCurrent())) {
      throw new SandboxMovedError();
    }
    const address = this.address;
    return address.kind === 'tcp'
      ? connect(tcpOptions(address.origin)).setNoDelay(true)
      : await connectToSandbox(address);
  }

  closeIdle(): void {
    Object.values(this.freeSockets).forEach((sockets) => sockets?.forEach((socket) => socket.destroy()));
  }
}

function tcpOptions(origin: string): { host: string; port: number } {
  const { hostname, port } = urlToHttpOptions(new URL(origin));
  // Port 80 is the only one that an origin leaves out.
  return { host: (hostname ?? '').replace(/^\[|\]$/g, ''), port: Number(port ?? 80) };
}

/** Finds agent servers for requests. An old row is safe: a connection leads to the right program, and ends with it. */
@Injectable()
export class AgentServerTargets implements OnApplicationShutdown {
  private readonly known = new Map<string, ConnectedSandbox & { readAt: number }>();

  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly changes: AccessChanges,
    events: SandboxEvents,
  ) {
    changes.listen((userId) => this.forgetOf(userId));
    events.on('starting', (id) => this.forget(id));
    events.on('stopping', (id) => this.forget(id));
    events.on('stopped', (id) => this.forget(id));
  }

  /** Returns the row as it was at most a second ago; null when the sandbox is not running. */
  async find(sandboxId: string): Promise<ConnectedSandbox | null> {
    const known = this.known.get(sandboxId);
    return known && performance.now() - known.readAt < MAX_AGE_MS ? known : await this.findAnew(sandboxId);
  }

  /** Returns the row as it is now; null when the sandbox is not running. */
  async findAnew(sandboxId: string): Promise<ConnectedSandbox | null> {
    const readAt = performance.now();
    const sandbox = await this.changes.settled(() => this.running.lastTarget(sandboxId));
    // A sandbox that is being paused is shown as RUNNING, and answers until it is paused.
    if (sandbox?.status !== 'RUNNING' && sandbox?.status !== 'PAUSING') {
      this.forget(sandboxId);
      return null;
    }
    const known = this.known.get(sandboxId);
    if (known && isSameStart(known.sandbox, sandbox)) {
      known.readAt = Math.max(known.readAt, readAt);
      return known;
    }
    this.forget(sandboxId);
    const connections = new SandboxConnections(sandbox);
    const found = { sandbox, keyHash: sessionKeyHash(sandbox.sessionKey), connections, readAt };
    this.known.set(sandboxId, found);
    this.forgetOldest();
    return found;
  }

  /** Closes idle connections, and makes the next request read the row again. */
  forget(sandboxId: string): void {
    this.known.get(sandboxId)?.connections.closeIdle();
    this.known.delete(sandboxId);
  }

  private forgetOf(userId: string | null): void {
    const known = [...this.known].filter(([, { sandbox }]) => userId === null || sandbox.userId === userId);
    known.forEach(([id]) => this.forget(id));
  }

  onApplicationShutdown(): void {
    [...this.known.keys()].forEach((id) => this.forget(id));
  }

  private forgetOldest(): void {
    const [oldest] = this.known.keys();
    if (oldest !== undefined && this.known.size > MAX_TARGETS) {
      this.forget(oldest);
    }
  }
}

function isSameStart(one: RunningSandbox, other: RunningSandbox): boolean {
  return (
    one.generation === other.generation &&
    one.mayOwnerAct === other.mayOwnerAct &&
    one.address === other.address &&
    one.sessionKey === other.sessionKey
  );
}

const PREFIX = /^\/api\/v1\/sandboxes\/([0-9A-Za-z]{1,64})\/agent-server(?=[/?]|$)/;

export interface AgentServerAddress {
  sandboxId: string;
  /** Path and query as the agent server gets them. */
  rest: string;
  isOwn: boolean;
}

type Addressed = Pick<IncomingMessage, 'url' | 'headers' | 'socket'>;

/** Recognizes requests for agent servers by the port they arrive at, by their host name, or by their path. */
@Injectable()
export class AgentServerAddresses {
  constructor(
    private readonly ports: AgentServerPorts,
    private readonly urls: SandboxUrls,
  ) {}

  /**
   * Returns null for the service or another port. Everything that arrives at an agent server's own port or host name is for
   * it.
   */
  find(request: Addressed): AgentServerAddress | null {
    const { url = '/', headers } = request;
    const sandboxId = this.ports.sandboxOf(request) ?? this.urls.agentServerAt(headers.host);
    if (sandboxId !== null) {
      return { sandboxId, rest: url.startsWith('/') ? url : '/', isOwn: true };
    }
    return this.urls.isPortHost(headers.host) ? null : agentServerPath(url);
  }
}

/** Returns null for a path that is not below an agent server's. */
export function agentServerPath(url: string): AgentServerAddress | null {
  const [prefix, sandboxId] = PREFIX.exec(url) ?? [];
  if (prefix === undefined || sandboxId === undefined) {
    return null;
  }
  const rest = url.slice(prefix.length);
  return { sandboxId, rest: rest.startsWith('/') ? rest : `/${rest}`, isOwn: false };
}
