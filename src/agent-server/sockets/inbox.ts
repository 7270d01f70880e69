import type { WebSocket } from 'ws';

const MAX_WAITING = 100;

/** The frames of one client, to be taken one after the other. A client that is faster than that has to wait. */
export class Inbox {
  readonly #socket: WebSocket;
  readonly #waiting: string[] = [];
  #taker: ((frame: string | null) => void) | null = null;
  #closed = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.#take(data.toString('utf8')));
    socket.once('close', () => {
      this.#closed = true;
      this.#hand(null);
    });
  }

  /** The next frame; null once the socket is closed, or when none came in time. */
  async next(timeoutMs?: number): Promise<string | null> {
    const frame = this.#waiting.shift();
    if (this.#socket.isPaused && this.#waiting.length < MAX_WAITING) {
      this.#socket.resume();
    }
    if (frame !== undefined || this.#closed) {
      return frame ?? null;
    }
    return await new Promise<string | null>((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.#hand(null), timeoutMs);
      this.#taker = (given) => {
        clearTimeout(timer);
        resolve(given);
      };
    });
  }

  #take(frame: string): void {
    if (this.#taker !== null) {
      this.#hand(frame);
      return;
    }
    this.#waiting.push(frame);
    if (this.#waiting.length >= MAX_WAITING) {
      this.#socket.pause();
    }
  }

  #hand(frame: string | null): void {
    const taker = this.#taker;
    this.#taker = null;
    taker?.(frame);
  }
}
