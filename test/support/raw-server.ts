import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { startListening, stopServer } from './start-listening.js';

/** An HTTP server whose listener writes what it likes, for answers that `FakeServer` would not give. */
export class RawServer {
  private constructor(
    private readonly server: Server,
    readonly origin: string,
  ) {}

  /** @param onSocket called with each WebSocket; without it, none is accepted */
  static async start(
    listener: RequestListener,
    onSocket?: (socket: WebSocket, request: IncomingMessage) => void,
  ): Promise<RawServer> {
    const server = createServer(listener);
    if (onSocket) {
      new WebSocketServer({ server }).on('connection', onSocket);
    }
    return new RawServer(server, `http://127.0.0.1:${await startListening(server)}`);
  }

  async close(): Promise<void> {
    await stopServer(this.server);
  }
}
