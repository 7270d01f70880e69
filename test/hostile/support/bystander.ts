import { createServer, type Server } from 'node:net';
import { HeldSockets } from '../../support/held-sockets.js';
import { startListening, stopServer } from '../../support/start-listening.js';

/** A program of the machine that asks for no key, as a database on loopback or metrics do. */
export class Bystander {
  private readonly sockets = new HeldSockets();

  private constructor(
    private readonly server: Server,
    readonly host: string,
    readonly port: number,
    private readonly told: { connections: number },
  ) {}

  /** @param host where it listens; `0.0.0.0`: at all addresses of the machine */
  static async listen(host: string): Promise<Bystander> {
    const told = { connections: 0 };
    const server = createServer();
    const bystander = new Bystander(server, host, await startListening(server, 0, host), told);
    server.on('connection', (socket) => {
      told.connections += 1;
      bystander.sockets.hold(socket);
      socket.write(`${SECRET_OF_THE_MACHINE}\n`);
    });
    return bystander;
  }

  /** How many connections there were. */
  get connections(): number {
    return this.told.connections;
  }

  async close(): Promise<void> {
    this.sockets.cut();
    await stopServer(this.server);
  }
}

/** What a bystander says to every client. */
export const SECRET_OF_THE_MACHINE = 'what-only-this-machine-may-read-70733';
