import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that wait on a connection before it is read no further. */
const WAITING_UNREAD = 8;
/** No client sends so many requests ahead; the connection is closed. */
const MAX_WAITING = 100;
const STALLED_MS = 30_000;
/** How long a connection that was opened before the server closed may take to send its first byte. */
const FIRST_BYTE_MS = 1_000;

interface Connection {
  isUsed: boolean;
  current: ServerResponse | null;
  waiting: [IncomingMessage, ServerResponse, RequestListener][];
  stalledAt: number;
}

/**
 * Handles the requests of a connection one after the other: Node.js would begin all of them and keep their responses
 * in memory. Closes connections whose output makes no progress for 30 to 45 seconds.
 * While draining, each response says `Connection: close`, so that clients connect elsewhere. Node.js alone would wait
 * for busy connections without end, and cut off responses that are still being read, which count as idle.
 */
export class ServerConnections {
  private readonly server: Server;
  private readonly connections = new Map<Socket, Connection>();
  private readonly closeIdle: () => void;
  private readonly checkMs: number;
  private isDraining = false;

  private constructor(server: Server, stalledMs: number) {
    this.server = server;
    this.checkMs = stalledMs / 2;
    this.closeIdle = server.closeIdleConnections.bind(server);
    // Called by `server.close`.
    server.closeIdleConnections = () => this.endIdle();
    server.on('connection', (socket) => this.open(socket));
    server.on('upgrade', (_request, socket: Socket) => {
      this.connections.delete(socket);
      socket.setTimeout(0);
    });
    server.setTimeout(this.checkMs, (socket) => this.checkProgress(socket));
  }

  static attach(server: Server, stalledMs = STALLED_MS): ServerConnections {
    return new ServerConnections(server, stalledMs);
  }

  /** A listener for `request` that gets the next request of a connection once the response before is over. */
  inTurn(listener: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      const connection = this.connections.get(socket);
      if (connection === undefined) {
        // It came over a connection of another server, which has kept the order already.
        listener(request, response);
      } else if (connection.current === null) {
        this.begin(connection, request, response, listener);
      } else if (connection.waiting.push([request, response, listener]) > MAX_WAITING) {
        socket.destroy();
        dropRest(socket);
      } else if (connection.waiting.length >= WAITING_UNREAD) {
        socket.pause();
      }
    };
  }

  /** From now on responses end their connections, those of requests that are under way included. */
  drain(): void {
    this.isDraining = true;
    for (const { current } of this.connections.values()) {
      if (current?.headersSent === false) {
        current.shouldKeepAlive = false;
      }
    }
  }

  private open(socket: Socket): void {
    const connection: Connection = { isUsed: false, current: null, waiting: [], stalledAt: -Infinity };
    this.connections.set(socket, connection);
    socket.once('close', () => {
      connection.waiting = [];
      this.connections.delete(socket);
    });
    // Node.js goes on reading after each request.
    socket.on('resume', () => {
      if (connection.waiting.length >= WAITING_UNREAD) {
        socket.pause();
      }
    });
  }

  private begin(
    connection: Connection,
    request: IncomingMessage,
    response: ServerResponse,
    listener: RequestListener,
  ): void {
    connection.isUsed = true;
    connection.current = response;
    if (this.isDraining || !this.server.listening) {
      response.shouldKeepAlive = false;
    }
    response.once('close', () => {
      connection.current = null;
      const next = connection.waiting.shift();
      // Behind the last response of its connection, no other one is ever sent.
      if (next !== undefined && next[1].socket !== null) {
        request.socket.resume();
        this.begin(connection, ...next);
      } else {
        this.endIdleOnceClosed();
      }
    });
    // The request's body may still be arriving when it has been answered.
    request.once('close', () => this.endIdleOnceClosed());
    listener(request, response);
  }

  /** Since the last check nothing has arrived and the size of the output has not changed. */
  private checkProgress(socket: Socket): void {
    const connection = this.connections.get(socket);
    if (connection === undefined) {
      return;
    }
    const now = performance.now();
    const wasStalled = now - connection.stalledAt < 1.5 * this.checkMs;
    if (connection.current === null || (socket.writableLength > 0 && wasStalled)) {
      socket.destroy();
    } else if (socket.writableLength > 0) {
      connection.stalledAt = now;
      socket.setTimeout(this.checkMs);
    }
  }

  /** The headers of a response may have gone out before the server closed, and promised to keep the connection. */
  private endIdleOnceClosed(): void {
    if (!this.server.listening) {
      this.endIdle();
    }
  }

  private endIdle(): void {
    const connections = [...this.connections.values()];
    if (connections.every(({ current }) => current === null)) {
      this.closeIdle();
    }
    if (connections.some(({ isUsed }) => !isUsed)) {
      setTimeout(() => this.endUnused(), FIRST_BYTE_MS).unref();
    }
  }

  private endUnused(): void {
    for (const [socket, { isUsed }] of this.connections) {
      if (!isUsed && socket.bytesRead === 0) {
        socket.destroy();
      }
    }
  }
}

// Makes Node.js ignore further requests of the same read, which take kilobytes each. The parser is undocumented;
// without it they stay until the event loop comes round.
function dropRest(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (typeof parser === 'object' && parser !== null) {
    Reflect.set(parser, 'onIncoming', () => undefined);
  }
}
