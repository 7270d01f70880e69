import { setTimeout as wait } from 'node:timers/promises';
import { type RawData, WebSocket } from 'ws';
import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { EventSource } from '../support/event-source.js';
import type { LoadClient } from './load-client.js';

const REFUSED_PAUSE_MS = 200;

/** What a follower has got so far. */
export interface Followed {
  /** Numbers of the messages, in the order in which they came. */
  numbers: number[];
  connects: number;
  /** Events that came a second time although the client had said where it was. */
  doubled: number;
  /** Places where the numbering of the service jumped. */
  gaps: number;
  /** How connections ended, with counts. */
  ends: Map<string, number>;
}

/** The number in a message of the load; null for every other event. */
export function messageNumber(event: unknown): number | null {
  const [part] = jsonList(event, 'llm_message', 'content');
  const text = jsonText(event, 'kind') === 'MessageEvent' ? jsonText(part, 'text') : null;
  const [, number] = /^load (\d+)$/.exec(text ?? '') ?? [];
  return number === undefined ? null : Number(number);
}

/** Follows the server-sent events of a conversation as a browser does: it connects again after the last id it has. */
export class StreamFollower implements Followed {
  readonly numbers: number[] = [];
  readonly ends = new Map<string, number>();
  connects = 0;
  doubled = 0;
  gaps = 0;
  readonly #client: LoadClient;
  readonly #path: string;
  #last = 0;
  #source: EventSource | null = null;
  #isStopped = false;

  constructor(client: LoadClient, conversationId: string) {
    this.#client = client;
    this.#path = `/api/v1/conversation/${conversationId}/events/stream`;
  }

  async run(): Promise<void> {
    while (!this.#isStopped) {
      await wait(await this.#followOnce());
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#source?.close();
  }

  /** @returns how long to wait before the next connection, milliseconds */
  async #followOnce(): Promise<number> {
    const { tally, url, key } = this.#client;
    const startedAt = tally.begin('streams');
    let source: EventSource;
    try {
      source = await EventSource.connect(
        `${url}${this.#path}`,
        { 'X-Session-API-Key': key, ...(this.#last > 0 && { 'Last-Event-ID': String(this.#last) }) },
        ({ id, data }) => this.#take(Number(id), data),
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') {
        tally.refused += 1;
      } else {
        tally.fail('streams', startedAt, String(error));
      }
      return REFUSED_PAUSE_MS;
    }
    if (source.response.statusCode !== 200) {
      tally.fail('streams', startedAt, `${source.response.statusCode}`);
      source.close();
      return REFUSED_PAUSE_MS;
    }
    this.connects += 1;
    this.#source = source;
    if (this.#isStopped) {
      source.close();
    }
    await source.untilEnded();
    if (!this.#isStopped) {
      count(this.ends, source.response.complete ? 'ended' : 'broken off');
    }
    return source.retryMs ?? REFUSED_PAUSE_MS;
  }

  #take(id: number, data: unknown): void {
    if (id <= this.#last) {
      this.doubled += 1;
      return;
    }
    this.gaps += id === this.#last + 1 ? 0 : 1;
    this.#last = id;
    const number = messageNumber(data);
    if (number !== null) {
      this.numbers.push(number);
    }
  }
}

/**
 * Follows a conversation over the WebSocket of its agent server, passed through by the service. It connects again with the
 * time of the last event; the protocol then sends that event once more, which clients know by its id.
 */
export class SocketFollower implements Followed {
  readonly numbers: number[] = [];
  readonly ends = new Map<string, number>();
  connects = 0;
  doubled = 0;
  readonly gaps = 0;
  readonly #client: LoadClient;
  readonly #path: string;
  readonly #key: string;
  readonly #seen = new Set<string>();
  #since: string | null = null;
  #socket: WebSocket | null = null;
  #isStopped = false;

  constructor(client: LoadClient, sandbox: { id: string; key: string }, conversationId: string) {
    this.#client = client;
    this.#key = sandbox.key;
    this.#path = `/api/v1/sandboxes/${sandbox.id}/agent-server/sockets/events/${conversationId}`;
  }

  async run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#followOnce();
      await wait(REFUSED_PAUSE_MS);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#socket?.close();
  }

  async #followOnce(): Promise<void> {
    const { tally, url } = this.#client;
    const startedAt = tally.begin('sockets');
    const resend =
      this.#since === null
        ? 'resend_mode=all'
        : `resend_mode=since&after_timestamp=${encodeURIComponent(this.#since)}`;
    const since = this.#since;
    const socket = new WebSocket(`${url.replace('http', 'ws')}${this.#path}?${resend}`, {
      headers: { 'X-Session-API-Key': this.#key },
    });
    this.#socket = socket;
    let failure: Error | null = null;
    socket.on('error', (error) => (failure = error));
    socket.on('open', () => {
      this.connects += 1;
      failure = null;
    });
    socket.on('message', (data) => this.#take(parseJson(textOf(data)), since));
    // Not events.once: it rejects when the handshake is lost with a replica, which is for the tally to judge.
    const code = await new Promise<number>((resolve) => {
      socket.once('close', resolve);
    });
    if (this.#isStopped) {
      return;
    }
    if (failure === null) {
      count(this.ends, String(code));
    } else if ((failure as NodeJS.ErrnoException).code === 'ECONNREFUSED') {
      tally.refused += 1;
    } else {
      tally.fail('sockets', startedAt, String(failure));
    }
  }

  #take(event: unknown, since: string | null): void {
    const id = jsonText(event, 'id');
    const number = messageNumber(event);
    if (id === null || number === null) {
      return;
    }
    const timestamp = String(jsonAt(event, 'timestamp'));
    if (this.#seen.has(id)) {
      // The one that the client named is sent again; anything else is not asked for.
      this.doubled += timestamp === since ? 0 : 1;
      return;
    }
    this.#seen.add(id);
    this.#since = timestamp;
    this.numbers.push(number);
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function textOf(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8');
}
