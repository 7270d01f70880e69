import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { reservedPort } from './reserved-port.js';
import { startListening } from './start-listening.js';

/** One connection through the relay. */
interface Pair {
  client: Socket;
  upstream: Socket;
  /** What the upstream sends goes through it. */
  late: Transform;
}

/** A TCP relay on loopback in front of a server, so that a test can take the server away and give it back. */
export class Relay {
  private readonly pairs = new Set<Pair>();
  /** Accepted while nothing goes through. */
  private readonly held = new Set<Socket>();
  private server: Server | undefined;
  private isFrozen = false;
  private bound = 0;
  /** What the server sends arrives so much later, in order. Milliseconds. */
  delayMs = 0;

  protected constructor(private readonly target: NetConnectOpts) {}

  static async before(target: NetConnectOpts): Promise<Relay> {
    const relay = new Relay(target);
    await relay.comeBack();
    return relay;
  }

  /** The same over every `comeBack`. */
  get port(): number {
    return this.bound;
  }

  /** Refuses connections and cuts the open ones, like a server that was stopped. */
  async goAway(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    this.isFrozen = false;
    const closed = new Promise<void>((resolve) => {
      server?.close(() => {
        resolve();
      });
    });
    for (const { client, upstream } of this.pairs) {
      client.destroy();
      upstream.destroy();
    }
    this.held.forEach((client) => client.destroy());
    await (server && closed);
  }

  async comeBack(): Promise<void> {
    const server = createServer((client) => {
      // Both sides may be cut at any time; 'close' follows.
      client.on('error', () => undefined);
      if (this.isFrozen) {
        client.pause();
        this.held.add(client);
        client.once('close', () => this.held.delete(client));
      } else {
        this.pass(client);
      }
    });
    // Linux may give any other port to a connection while nothing listens there.
    this.bound = await startListening(server, this.bound || (await reservedPort()));
    this.server = server;
  }

  /** Keeps connections open, and takes new ones, but lets nothing through any more, like a network that swallows packets. */
  freeze(): void {
    this.isFrozen = true;
    for (const { client, upstream, late } of this.pairs) {
      client.unpipe(upstream).pause();
      upstream.unpipe(late).pause();
      late.unpipe(client).pause();
    }
  }

  /** Lets everything through again, what was sent meanwhile too. */
  thaw(): void {
    this.isFrozen = false;
    this.pairs.forEach(join);
    for (const client of this.held) {
      this.held.delete(client);
      this.pass(client);
    }
  }

  private pass(client: Socket): void {
    const upstream = connect(this.target);
    const pair = { client, upstream, late: this.late() };
    this.pairs.add(pair);
    upstream.on('error', () => undefined);
    for (const socket of [client, upstream]) {
      socket.once('close', () => {
        this.pairs.delete(pair);
        client.destroy();
        upstream.destroy();
      });
    }
    join(pair);
  }

  private late(): Transform {
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
}

function join({ client, upstream, late }: Pair): void {
  client.pipe(upstream);
  upstream.pipe(late).pipe(client);
}
