import { connect, type NetConnectOpts, Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { Client } from 'pg';
import type { Log } from '@slipway/common/log.js';

const LOOK_MS = 250;
/** Checks without an answer before all connections are cut: a waiting request then fails within two seconds. */
const PATIENCE = 4;
/** SSLRequest: PostgreSQL answers it with a byte before it asks for a login. */
const PROBE = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const TLS_OFFERED = Buffer.from('S');
const HANDSHAKE_MS = 1_000;

/**
 * Cuts connections to a silent database, since a network that swallows packets breaks none. While statements wait and
 * no byte arrives, a probe asks for one; until it gets it, connections fail.
 */
export class ConnectionWatch {
  private readonly sockets = new Set<Socket>();
  private isUsed: () => boolean = () => false;
  private timer: NodeJS.Timeout | undefined;
  private receivedBefore = 0;
  private received = 0;
  private probe: { socket: Socket; looks: number } | null = null;
  private silentSince: number | null = null;

  constructor(
    private readonly url: string,
    private readonly logger: Log,
  ) {}

  /** The `stream` option for connections of the pool. */
  readonly openSocket = (): Socket => {
    const socket = new Socket();
    this.sockets.add(socket);
    socket.once('close', () => {
      this.sockets.delete(socket);
      this.receivedBefore += socket.bytesRead;
    });
    if (this.isSilent) {
      // After the driver has called `connect`.
      process.nextTick(() => socket.destroy(silence()));
    }
    return socket;
  };

  start(isUsed: () => boolean): this {
    this.isUsed = isUsed;
    this.timer ??= setInterval(() => this.look(), LOOK_MS).unref();
    return this;
  }

  get isSilent(): boolean {
    return this.silentSince !== null;
  }

  /** Counts checks, not time: a process that was suspended reads what has arrived before its next check. */
  look(): void {
    const received = [...this.sockets].reduce((sum, { bytesRead }) => sum + bytesRead, this.receivedBefore);
    const isHeard = received !== this.received;
    this.received = received;
    if (this.probe === null) {
      if (this.isSilent || (!isHeard && this.isUsed())) {
        this.ask();
      }
      return;
    }
    this.probe.looks += 1;
    if (isHeard) {
      this.endProbe();
    } else if (this.probe.looks >= PATIENCE) {
      this.endProbe();
      this.cut();
    }
  }

  stop(): void {
    clearInterval(this.timer);
    this.endProbe();
  }

  private ask(): void {
    const socket = connect(this.target());
    const probe = { socket, looks: 0 };
    this.probe = probe;
    socket.once('connect', () => socket.write(PROBE));
    const settle = (): void => {
      if (this.probe === probe) {
        this.probe = null;
        this.answered();
      }
    };
    socket.once('data', (answer) => {
      settle();
      leave(socket, answer);
    });
    // A refusal is an answer too: the pool gets the same one, at once.
    socket.on('error', () => undefined);
    socket.once('close', settle);
  }

  /** Avoids resolving the name again. */
  private target(): NetConnectOpts {
    const { host, port } = new Client({ connectionString: this.url });
    if (host.startsWith('/')) {
      return { path: `${host}/.s.PGSQL.${port}` };
    }
    const open = [...this.sockets].find(({ remoteAddress }) => remoteAddress !== undefined);
    return { host: open?.remoteAddress ?? host, port };
  }

  private cut(): void {
    if (this.silentSince === null) {
      this.silentSince = performance.now();
      this.logger.warn('database timed out', { connections: this.sockets.size });
    }
    for (const socket of this.sockets) {
      socket.destroy(silence());
    }
  }

  private answered(): void {
    if (this.silentSince !== null) {
      const ms = Math.round(performance.now() - this.silentSince);
      this.silentSince = null;
      this.logger.log('database responded again', { ms });
    }
  }

  private endProbe(): void {
    const socket = this.probe?.socket;
    this.probe = null;
    socket?.destroy();
  }
}

/** PostgreSQL and PgBouncer log a client that leaves before the handshake that they offer, and none that leaves after it. */
function leave(socket: Socket, answer: Buffer): void {
  if (answer.equals(TLS_OFFERED)) {
    socket.unref().setTimeout(HANDSHAKE_MS, () => socket.destroy());
    // Nothing is sent, so the certificate does not matter.
    const secured = connectSecurely({ socket, rejectUnauthorized: false }, () => secured.end());
    secured.on('error', () => socket.destroy());
  } else {
    socket.destroy();
  }
}

/** Begins like the driver's error for a broken connection, so that both are handled alike. */
function silence(): Error {
  return new Error('Connection terminated: the database does not answer');
}
