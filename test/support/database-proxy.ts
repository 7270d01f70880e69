import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { startListening } from './start-listening.js';

/** A TCP relay in front of a test's database, so that a test can take the database away and give it back. */
export class DatabaseProxy {
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private frozen = false;
  /** What the server sends arrives so much later, in order. Milliseconds. */
  delayMs = 0;

  private constructor(
    private readonly target: NetConnectOpts,
    private port: number,
  ) {}

  static async start(databaseUrl: string): Promise<DatabaseProxy> {
    const { hostname, port, searchParams } = new URL(databaseUrl);
    const folder = searchParams.get('host');
    const proxy = new DatabaseProxy(
      folder === null ? { host: hostname, port: Number(port) } : { path: `${folder}/.s.PGSQL.${port}` },
      0,
    );
    await proxy.comeBack();
    return proxy;
  }

  /** The same database as seen through the relay. */
  urlOf(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    url.searchParams.delete('host');
    return url.href;
  }

  /** Refuses connections and cuts the open ones, like a server that was stopped. */
  async goAway(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    this.frozen = false;
    const closed = new Promise<void>((resolve) => {
      server?.close(() => {
        resolve();
      });
    });
    for (const socket of this.sockets) {
      socket.destroy();
    }
    await (server && closed);
  }

  /** Keeps connections open, and takes new ones, but lets nothing through any more, like a host that hangs. */
  freeze(): void {
    this.frozen = true;
    for (const socket of this.sockets) {
      socket.pause();
      socket.unpipe();
    }
  }

  /** Lets new connections through again; those that hang go on doing so. */
  thaw(): void {
    this.frozen = false;
  }

  private delayed(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        if (this.delayMs === 0) {
          done(null, chunk);
        } else {
          setTimeout(() => done(null, chunk), this.delayMs);
        }
      },
    });
  }

  async comeBack(): Promise<void> {
    const server = createServer((client) => {
      if (this.frozen) {
        this.sockets.add(client);
        client.on('close', () => this.sockets.delete(client));
        client.on('error', () => undefined);
        return;
      }
      const upstream = connect(this.target);
      for (const socket of [client, upstream]) {
        this.sockets.add(socket);
        socket.on('close', () => {
          this.sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
        // Either side may be cut at any time; 'close' follows.
        socket.on('error', () => undefined);
      }
      client.pipe(upstream);
      upstream.pipe(this.delayed()).pipe(client);
    });
    this.port = await startListening(server, this.port);
    this.server = server;
  }
}
