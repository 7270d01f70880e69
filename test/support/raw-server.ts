import { createServer, type RequestListener, type Server } from 'node:http';
import { startListening } from './start-listening.js';

/** An HTTP server whose listener writes what it likes, for answers that `FakeServer` would not give. */
export class RawServer {
  private constructor(
    private readonly server: Server,
    readonly origin: string,
  ) {}

  static async start(listener: RequestListener): Promise<RawServer> {
    const server = createServer(listener);
    return new RawServer(server, `http://127.0.0.1:${await startListening(server)}`);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.server.close(() => {
        resolve();
      });
    });
  }
}
