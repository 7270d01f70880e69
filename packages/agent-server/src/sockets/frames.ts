import { randomUUID } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { ConversationInfo } from '@slipway/agent-protocol/conversation-api.js';
import { jsonAt, parseJson } from '@slipway/common/json-access.js';
import { nextTimestamp } from '../event-log.js';

const MAX_QUEUED = 100;
/** Maximum size of the frames that wait, apart from the last one. */
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

/** The full state of a conversation, as the event that clients wait for after each run. */
export function stateFrame(info: ConversationInfo): string {
  return JSON.stringify({
    kind: 'ConversationStateUpdateEvent',
    ...identity(),
    source: 'environment',
    key: 'full_state',
    value: info,
  });
}

export function errorFrame(code: string, detail: string): string {
  return JSON.stringify({ kind: 'ServerErrorEvent', ...identity(), source: 'environment', code, detail });
}

/** The key in a client's first frame, `{"type":"auth","session_api_key":"…"}`. */
export function keyInFrame(frame: string): string | undefined {
  const message = parseJson(frame);
  const key = jsonAt(message, 'session_api_key');
  return isAuthFrame(message) && typeof key === 'string' ? key : undefined;
}

export function isAuthFrame(message: unknown): boolean {
  return jsonAt(message, 'type') === 'auth';
}

function identity(): { id: string; timestamp: string } {
  return { id: randomUUID(), timestamp: nextTimestamp(undefined, Date.now()) };
}
