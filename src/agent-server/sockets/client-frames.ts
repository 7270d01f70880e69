import type { WebSocket } from 'ws';

const MAX_QUEUED = 100;
/** Of frames that wait, apart from the last one. */
const MAX_QUEUED_CHARACTERS = 1024 * 1024;

/** The frames of one client, read one by one. While too many are queued, the socket is paused. */
export class ClientFrames {
  readonly #socket: WebSocket;
  readonly #queue: string[] = [];
  #queuedCharacters = 0;
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
    this.#queuedCharacters -= frame?.length ?? 0;
    if (this.#socket.isPaused && !this.#isFull()) {
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
    this.#queuedCharacters += frame.length;
    if (this.#isFull()) {
      this.#socket.pause();
    }
  }

  #isFull(): boolean {
    return this.#queue.length >= MAX_QUEUED || this.#queuedCharacters >= MAX_QUEUED_CHARACTERS;
  }

  #deliver(frame: string | null): void {
    const reader = this.#reader;
    this.#reader = null;
    reader?.(frame);
  }
}
