import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Dialer } from './dialer.js';
import type { Client } from './exchange.js';
import { headLength, proxyCredential } from './message-headers.js';
import type { PolicySource } from './policy-source.js';
import type { EgressPolicy } from './protocol.js';
import { RefusedError, unknownCaller } from './refusal.js';
import { Shares, Strangers } from './shares.js';
import { UpstreamAgent } from './upstream.js';

export interface ConnectionLimits {
  /** Connections that have not shown a credential; the oldest of the place that has the most makes room. */
  strangers: number;
  /** Connections of one sandbox, each of which carries one request at a time. */
  share: number;
  /** Requests that wait on one connection. */
  pipelined: number;
  /** Of their heads together, in characters. */
  heads: number;
}

interface ClientConnectionsOptions {
  policies: PolicySource;
  dialer: Dialer;
  ca: readonly string[] | undefined;
  limits: ConnectionLimits;
}

/** Who is connected, and which share of the proxy each sandbox has. */
export class ClientConnections {
  private readonly clients = new Map<Duplex, Client>();
  private readonly strangers: Strangers<Duplex>;
  private readonly connections: Shares;

  constructor(private readonly options: ClientConnectionsOptions) {
    this.connections = new Shares(options.limits.share);
    this.strangers = new Strangers(options.limits.strangers, (socket) => void socket.destroy());
  }

  get held(): Record<string, number> {
    return {
      clients: this.clients.size,
      strangers: this.strangers.size,
      connections: this.connections.size,
    };
  }

  of(socket: Duplex): Client | undefined {
    return this.clients.get(socket);
  }

  /** Takes a new connection; one that is known already, as the inside of a tunnel is, stays as it is. */
  admit(socket: Duplex): void {
    if (this.clients.has(socket)) {
      return;
    }
    const { dialer, ca } = this.options;
    const agent = new UpstreamAgent(dialer, ca);
    const client = this.add({
      socket,
      caller: null,
      agent,
      underWay: 0,
      heads: 0,
      turn: Promise.resolve(),
      leaving: new Set(),
      inside: null,
    });
    // Pods have addresses of their own; those of processes and of relays are one for all.
    this.strangers.add(socket, socket instanceof Socket ? (socket.remoteAddress ?? '') : '');
    socket.once('close', () => {
      this.strangers.delete(socket);
      agent.destroy();
      if (client.caller !== null) {
        this.connections.release(client.caller.sandbox);
      }
    });
  }

  addInside(inside: Client): void {
    this.add(inside);
  }

  private add(client: Client): Client {
    const { socket, leaving } = client;
    this.clients.set(socket, client);
    // A reset by the program ends the connection, and is no error of the proxy.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.clients.delete(socket);
      leaving.forEach((leave) => leave());
    });
    return client;
  }

  /** Counts a request until its response has ended; false for one too many, whose connection ends. */
  take(client: Client, request: IncomingMessage, response: ServerResponse): boolean {
    const { pipelined, heads } = this.options.limits;
    const head = headLength(request);
    client.underWay += 1;
    client.heads += head;
    response.once('close', () => {
      client.underWay -= 1;
      client.heads -= head;
    });
    const isWithin = client.underWay <= pipelined && client.heads <= heads;
    if (!isWithin) {
      client.socket.destroy();
    }
    return isWithin;
  }

  /** Runs a request by the policy of its sandbox, after those that came before it on its connection. @throws RefusedError */
  async serve(
    client: Client,
    request: IncomingMessage,
    work: (policy: EgressPolicy) => Promise<void>,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = client.turn;
    client.turn = promise;
    try {
      await before;
      if (!client.socket.destroyed) {
        await work(await this.policyOf(client, request));
      }
    } finally {
      resolve();
    }
  }

  endAll(): void {
    for (const socket of this.clients.keys()) {
      socket.destroy();
    }
  }

  /** Of the sandbox behind a connection; its first request shows who it is. */
  private async policyOf(client: Client, request: IncomingMessage): Promise<EgressPolicy> {
    const shown = client.inside === null ? proxyCredential(request) : client.caller;
    const policy = shown === null ? null : await this.options.policies.policy(shown.credential);
    if (shown === null || policy === null || policy.sandbox !== shown.sandbox) {
      throw unknownCaller();
    }
    if (client.caller === null) {
      if (!this.connections.take(shown.sandbox)) {
        throw this.crowded();
      }
      client.caller = shown;
      this.strangers.delete(client.socket);
      if (!this.clients.has(client.socket)) {
        // It has ended while the service was asked.
        this.connections.release(shown.sandbox);
      }
    }
    if (client.caller.sandbox !== shown.sandbox) {
      throw unknownCaller();
    }
    return policy;
  }

  private crowded(): RefusedError {
    const { share } = this.options.limits;
    return new RefusedError(
      null,
      503,
      `This sandbox has ${share} connections open, the most that its share allows.`,
    );
  }
}
