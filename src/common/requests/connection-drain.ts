import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How long the first byte may take on a connection that was opened before the server closed. */
const FIRST_BYTE_MS = 1_000;

/**
 * Lets the connections of a server end without breaking what clients send over them. Once it has begun, or once the server
 * no longer listens, each response is the last one of its connection and says so (`Connection: close`), so that clients and
 * balancers connect again elsewhere.
 *
 * Node.js alone ends connections that are idle at the moment of the close. One on which request follows request would hold
 * the close up for ever, one that was opened ahead of need for half a minute, and a response that its client is still
 * reading counts as idle and is cut off.
 */
export class ConnectionDrain {
  readonly #server: Server;
  /** Responses under way, until their last byte has been handed over. */
  readonly #responses = new Set<ServerResponse>();
  /** Connections without a request so far. */
  readonly #unused = new Set<Socket>();
  readonly #closeIdle: () => void;
  #hasBegun = false;

  private constructor(server: Server) {
    this.#server = server;
    this.#closeIdle = server.closeIdleConnections.bind(server);
    // Called by `server.close`.
    server.closeIdleConnections = () => this.#endIdle();
    server.on('connection', (socket) => {
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    server.prependListener('request', (request, response) => {
      this.#unused.delete(request.socket);
      this.#watch(response);
    });
  }

  /** Before the server listens. */
  static attach(server: Server): ConnectionDrain {
    return new ConnectionDrain(server);
  }

  /** From now on responses end their connections, those of requests that are under way included. */
  begin(): void {
    this.#hasBegun = true;
    for (const response of this.#responses) {
      if (!response.headersSent) {
        response.shouldKeepAlive = false;
      }
    }
  }

  #watch(response: ServerResponse): void {
    if (this.#hasBegun || !this.#server.listening) {
      response.shouldKeepAlive = false;
    }
    this.#responses.add(response);
    response.once('close', () => {
      this.#responses.delete(response);
      if (!this.#server.listening) {
        // Its headers may have gone out before, and promised to keep the connection.
        this.#endIdle();
      }
    });
  }

  #endIdle(): void {
    if (this.#responses.size === 0) {
      this.#closeIdle();
    }
    if (this.#unused.size > 0) {
      setTimeout(() => this.#endUnused(), FIRST_BYTE_MS).unref();
    }
  }

  #endUnused(): void {
    for (const socket of this.#unused) {
      if (socket.bytesRead === 0) {
        socket.destroy();
      }
    }
  }
}
