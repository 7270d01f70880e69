import type { WebSocket } from 'ws';

const MAX_QUEUED = 100;

/** The frames of one client, read one by one. While too many are queued, the socket is paused. */
export class ClientFrames {
  readonly #socket: WebSocket;
  readonly #queue: string[] = [];
  #reader: ((frame: string | null) => void) | null = null;
  #closed = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#receive(data.toString('utf8')));
    socket.once('close', () => {
      this.#closed = true;
      this.#deliver(null);
    });
  }

  /** The next frame; null once the socket is closed, or after the timeout. */
  async next(timeoutMs?: number): Promise<string | null> {
    const frame = this.#queue.shift();
    if (this.#socket.isPaused && this.#queue.length < MAX_QUEUED) {
      this.#socket.resume();
    }
    if (frame !== undefined || this.#closed) {
      return frame ?? null;
    }
    return await new Promise<string | null>((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#deliver(null), timeoutMs);
      this.#reader = (received) => {
        clearTimeout(timer);
        resolve(received);
      };
    });
  }

  #receive(frame: string): void {
    if (this.#reader !== null) {
      this.#deliver(frame);
      return;
    }
    this.#queue.push(frame);
    if (this.#queue.length >= MAX_QUEUED) {
      this.#socket.pause();
    }
  }

  #deliver(frame: string | null): void {
    const reader = this.#reader;
    this.#reader = null;
    reader?.(frame);
  }
}
