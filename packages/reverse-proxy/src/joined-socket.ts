import type { Socket } from 'node:net';

const LENGTH_OF_TWO_BYTES = 126;
const LENGTH_OF_EIGHT_BYTES = 127;
const MASKED = 0x80;
const MASK_BYTES = 4;
const SHORT_HEADER_BYTES = 2;

/** Finds ends of frames (RFC 6455, 5.2), because a frame of our own may only be sent between two others. */
export class FrameBoundaries {
  private header: number[] = [];
  private payload = 0;

  get isAtBoundary(): boolean {
    return this.payload === 0 && this.header.length === 0;
  }

  pass(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      at = this.passPart(bytes, at);
    }
  }

  /** Counts bytes up to the next end of a frame, and returns their number; null when the frame goes on. */
  passToBoundary(bytes: Buffer): number | null {
    for (let at = 0; at < bytes.length;) {
      at = this.passPart(bytes, at);
      if (this.isAtBoundary) {
        return at;
      }
    }
    return null;
  }

  private passPart(bytes: Buffer, at: number): number {
    if (this.payload > 0) {
      const passed = Math.min(this.payload, bytes.length - at);
      this.payload -= passed;
      return at + passed;
    }
    this.header.push(bytes.readUInt8(at));
    if (this.header.length >= headerLength(this.header)) {
      this.payload = payloadLength(this.header);
      this.header = [];
    }
    return at + 1;
  }
}

function headerLength([, second = 0]: readonly number[]): number {
  return SHORT_HEADER_BYTES + lengthBytes(second) + ((second & MASKED) === 0 ? 0 : MASK_BYTES);
}

function payloadLength([, second = 0, ...rest]: readonly number[]): number {
  const bytes = lengthBytes(second);
  // Precision is lost only above the safe integers; no frame of that length ever ends.
  return bytes === 0
    ? second & ~MASKED
    : rest.slice(0, bytes).reduce((length, byte) => length * 256 + byte, 0);
}

function lengthBytes(second: number): 0 | 2 | 8 {
  switch (second & ~MASKED) {
    case LENGTH_OF_TWO_BYTES:
      return 2;
    case LENGTH_OF_EIGHT_BYTES:
      return 8;
    default:
      return 0;
  }
}

/** TCP keep-alive is the only way to notice a peer that vanished. */
const KEEP_ALIVE_MS = 30_000;
/** How long one end may still send after the other has closed. */
const LINGER_MS = 5_000;
/** How long the ends may take to close when the service stops. */
const CLOSE_GRACE_MS = 2_000;
/** A close frame with the code 1012, "service restart": clients connect again. */
const RESTART_FRAME = Buffer.from([0x88, 2, 1012 >> 8, 1012 & 0xff]);

export interface SocketEnd {
  socket: Socket;
  head: Buffer;
}

/** A WebSocket between a client and a program; bytes are passed on as they arrive. */
export class JoinedSocket {
  private readonly client: Socket;
  private readonly program: Socket;
  private readonly boundaries = new FrameBoundaries();
  private readonly countFrames = (chunk: Buffer): void => this.boundaries.pass(chunk);

  constructor(client: SocketEnd, program: SocketEnd, onClientData?: () => void) {
    this.client = client.socket;
    this.program = program.socket;
    const linger = (): unknown => setTimeout(() => this.destroy(), LINGER_MS).unref();
    for (const [{ socket: end, head }, { socket: other }] of [
      [client, program],
      [program, client],
    ] as const) {
      end.unshift(head);
      end.setTimeout(0);
      end.setNoDelay(true);
      end.setKeepAlive(true, KEEP_ALIVE_MS);
      end.on('error', () => undefined);
      end.once('end', linger);
      end.once('close', () => {
        other.destroySoon();
        linger();
      });
    }
    if (onClientData) {
      client.socket.on('data', onClientData);
    }
    program.socket.on('data', this.countFrames);
    client.socket.pipe(program.socket).pipe(client.socket);
  }

  onClosed(listener: () => void): void {
    this.client.once('close', listener);
  }

  destroy(): void {
    this.client.destroy();
    this.program.destroy();
  }

  /** Ends the program's frame, then has the client connect again. Resolves when both ends are closed. */
  async closeForRestart(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.onClosed(resolve));
    const timer = setTimeout(() => this.destroy(), CLOSE_GRACE_MS);
    this.program.unpipe(this.client);
    this.program.off('data', this.countFrames);
    if (this.boundaries.isAtBoundary) {
      this.sendClose();
    } else {
      this.passToBoundary();
    }
    this.program.resume();
    await closed;
    clearTimeout(timer);
  }

  private passToBoundary(): void {
    const onData = (chunk: Buffer): void => {
      const end = this.boundaries.passToBoundary(chunk);
      this.client.write(end === null ? chunk : chunk.subarray(0, end));
      if (end !== null) {
        this.program.off('data', onData);
        this.program.resume();
        this.sendClose();
      }
    };
    this.program.on('data', onData);
  }

  /** The client's own close frame, which is passed on, closes the program's end. */
  private sendClose(): void {
    this.client.end(RESTART_FRAME);
  }
}
