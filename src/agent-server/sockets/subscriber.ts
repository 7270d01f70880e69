import type { WebSocket } from 'ws';
import type { EventIdentity, EventLog } from '../event-log.js';

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

/** Bytes on their way to one client above which nothing more is handed to its socket. */
const HIGH_WATER = 256 * 1024;
const MAX_EXTRA = 20;

/** Close codes of the protocol. */
export const CLOSE = { AUTH_FAILED: 4001, UNKNOWN: 4004, TRY_LATER: 1013, GOING_AWAY: 1001, FAILED: 1011 };

interface SubscriberOptions<E extends EventIdentity> {
  socket: WebSocket;
  log: EventLog<E>;
  /** Position in the log that it begins with. */
  from: number;
  /** Sent before the log. */
  first: (() => string) | null;
  /** A client that takes nothing for so long is dropped. */
  stallMs: number;
}

/**
 * Sends a log to one client, from a position on and as it grows, no faster than the client takes it. What it has not
 * taken yet is read from the log when its turn comes, so a slow client costs no memory.
 */
export class Subscriber<E extends EventIdentity> {
  readonly #options: SubscriberOptions<E>;
  readonly #unsubscribe: () => void;
  /** Frames beside the log, each due once the log was sent up to a position. */
  #extra: { after: number; frame: () => string }[];
  #position: number;
  #stalled: NodeJS.Timeout | undefined;

  constructor(options: SubscriberOptions<E>) {
    this.#options = options;
    this.#position = options.from;
    this.#extra = options.first === null ? [] : [{ after: 0, frame: options.first }];
    this.#unsubscribe = options.log.onAppend(() => this.#pump());
    options.socket.once('close', () => this.#end());
    this.#pump();
  }

  /** Sends a frame that is in no log, after everything that is in the log by now. */
  sendBeside(frame: () => string): void {
    this.#extra.push({ after: this.#options.log.entries.length, frame });
    if (this.#extra.length > MAX_EXTRA) {
      // The newest matters: clients wait for the last state.
      this.#extra.shift();
    }
    this.#pump();
  }

  #pump(): void {
    const { socket, log } = this.#options;
    // A log that was cleared is shorter than before.
    this.#position = Math.min(this.#position, log.entries.length);
    while (socket.readyState === socket.OPEN) {
      if (socket.bufferedAmount > HIGH_WATER) {
        this.#stalled ??= setTimeout(() => this.#drop(), this.#options.stallMs);
        return;
      }
      const frame = this.#next();
      if (frame === null) {
        return;
      }
      socket.send(frame, () => this.#taken());
    }
  }

  #next(): string | null {
    const [extra] = this.#extra;
    if (extra !== undefined && extra.after <= this.#position) {
      this.#extra.shift();
      return extra.frame();
    }
    const entry = this.#options.log.entries[this.#position];
    if (entry === undefined) {
      return null;
    }
    this.#position += 1;
    return JSON.stringify(entry);
  }

  #taken(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.#pump();
  }

  #drop(): void {
    this.#options.socket.close(CLOSE.TRY_LATER, 'Too slow');
    // It takes nothing, so it will not take the farewell either.
    this.#options.socket.terminate();
  }

  #end(): void {
    clearTimeout(this.#stalled);
    this.#unsubscribe();
    this.#extra = [];
  }
}
