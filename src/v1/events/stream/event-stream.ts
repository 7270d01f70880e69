import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Response } from 'express';
import type { AuthUser } from '../../../auth/auth.decorators.js';
import type { ReadEvent, StoredEvent } from '../store/event.queries.js';

/** A comment that clients ignore; it keeps connections open. */
const HEARTBEAT = ': heartbeat\n\n';
const HEARTBEAT_MS = 15_000;
/** Reconnection time of clients. */
const RECONNECT_MS = 1_000;
/** Clients that read nothing for this long are disconnected. */
const STALL_MS = 60_000;
/** Time for sent data to arrive after the stream has ended. */
const END_GRACE_MS = 2_000;
const STATE_EVENT = 'ConversationStateUpdateEvent';

/** The state as the first message of a stream, in the form that agent servers send. */
export function stateMessage(conversationId: string, state: object, now: number): object {
  return {
    kind: STATE_EVENT,
    id: randomUUID(),
    timestamp: new Date(now).toISOString(),
    source: 'environment',
    key: 'full_state',
    value: { id: conversationId, ...state },
  };
}

interface EventStreamOptions {
  response: Response;
  position: number;
  /** A message to begin with that is no event of the log. */
  first: object | null;
  read: (after: number) => Promise<StreamPage>;
}

/** Sends events to one client as fast as it reads. The rest stays in the database, so a slow client costs one page. */
export class EventStream {
  private readonly closed = new AbortController();
  private position: number;
  private woken = false;
  private wakeUp: () => void = () => undefined;

  constructor(private readonly options: EventStreamOptions) {
    this.position = options.position;
    options.response.once('close', () => this.close());
    if (options.response.closed) {
      // The client left while its key was checked: no event will tell.
      this.close();
    }
  }

  get sent(): number {
    return this.position;
  }

  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  /** Ends the response; data already sent still arrives. */
  close(): void {
    this.closed.abort();
    this.wakeUp();
  }

  /** Sends until the client disconnects or the stream is closed. Throws what `read` throws. */
  async run(): Promise<void> {
    const { response } = this.options;
    response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'X-Accel-Buffering': 'no',
      // A stopping service need not wait for this connection.
      Connection: 'close',
    });
    response.flushHeaders();
    response.write(openingFrame(this.position, this.options.first));
    const heartbeats = setInterval(() => {
      if (!response.writableNeedDrain) {
        response.write(HEARTBEAT);
      }
    }, HEARTBEAT_MS);
    heartbeats.unref();
    try {
      while (!this.closed.signal.aborted) {
        await this.sendPage();
      }
    } finally {
      clearInterval(heartbeats);
      this.end();
    }
  }

  private end(): void {
    const { response } = this.options;
    response.end();
    if (!response.closed) {
      const timer = setTimeout(() => response.destroy(), END_GRACE_MS);
      response.once('close', () => clearTimeout(timer));
    }
  }

  private async sendPage(): Promise<void> {
    this.woken = false;
    const { parts, hasMore } = await this.options.read(this.position);
    for (const part of parts) {
      await this.send(part);
    }
    if (!hasMore) {
      await this.untilWoken();
    }
  }

  private async send({ bytes, seq }: StreamPage['parts'][number]): Promise<void> {
    if (this.closed.signal.aborted) {
      return;
    }
    this.position = seq;
    if (!this.options.response.write(bytes)) {
      await this.untilDrained();
    }
  }

  private async untilDrained(): Promise<void> {
    const { response } = this.options;
    const signal = AbortSignal.any([this.closed.signal, AbortSignal.timeout(STALL_MS)]);
    try {
      await once(response, 'drain', { signal });
    } catch (error) {
      if (!signal.aborted) {
        throw error;
      }
      if (!this.closed.signal.aborted) {
        response.destroy();
      }
    }
  }

  private async untilWoken(): Promise<void> {
    if (!this.woken && !this.closed.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.wakeUp = resolve;
      });
    }
  }
}

/**
 * Returns a frame that gives a position to clients that disconnect before the first event. It has no data, so they dispatch
 * no event for it.
 */
function openingFrame(position: number, first: object | null): string {
  const frame = `retry: ${RECONNECT_MS}\nid: ${position}\n\n`;
  return first === null ? frame : `${frame}event: ${STATE_EVENT}\ndata: ${JSON.stringify(first)}\n\n`;
}

const PAGE_SIZE = 100;
const MAX_TAIL_EVENTS = PAGE_SIZE;
const MAX_TAIL_CHARACTERS = 32 * 1024;
/** Small events are sent together up to this size. */
const PART_CHARACTERS = 32 * 1024;
/** How long after its last event this process counts as the follower; then another may have taken over. */
const FED_MS = 2_000;

/** Events as they are sent, written once for all readers. */
export interface StreamPage {
  parts: readonly { bytes: Buffer; /** Number of the last event. */ seq: number }[];
  hasMore: boolean;
}

type ReadStored = (after: number, limit: number) => Promise<ReadEvent[]>;

/** The open streams of one conversation. Up-to-date readers get new events from memory, others from the table. */
export class Audience {
  readonly streams = new Map<EventStream, AuthUser>();
  private tail: StoredEvent[] = [];
  private tailCharacters = 0;
  private fedAt = -Infinity;
  /** A read that began before the latest wake may have missed the event that caused it. */
  private wakes = 0;
  private readonly reads = new Map<string, Promise<StreamPage>>();

  constructor(private readonly readStored: ReadStored) {}

  get last(): number {
    return this.tail.at(-1)?.seq ?? 0;
  }

  /** Whether this process stores the events, so that notifications about them bring nothing new. */
  get isFed(): boolean {
    return performance.now() - this.fedAt < FED_MS;
  }

  feed(rows: readonly StoredEvent[]): void {
    const last = this.last;
    const fresh = rows.filter(({ seq }) => seq > last);
    const [first] = fresh;
    if (first === undefined) {
      return;
    }
    this.fedAt = performance.now();
    if (first.seq !== last + 1) {
      this.tail = [];
      this.tailCharacters = 0;
    }
    for (const row of fresh) {
      this.tail.push(row);
      this.tailCharacters += row.body.length;
    }
    while (this.tail.length > MAX_TAIL_EVENTS || this.tailCharacters > MAX_TAIL_CHARACTERS) {
      this.tailCharacters -= this.tail.shift()?.body.length ?? 0;
    }
    this.wakeBehind(fresh.at(-1)?.seq ?? last);
  }

  /** Makes every reader look for more events in the table. */
  wake(): void {
    this.wakes += 1;
    this.streams.forEach((_owner, stream) => stream.wake());
  }

  close(): void {
    this.streams.forEach((_owner, stream) => stream.close());
  }

  page(after: number): Promise<StreamPage> {
    const key = `${after}/${this.last}/${this.wakes}`;
    const shared = this.reads.get(key);
    if (shared) {
      return shared;
    }
    const reading = this.read(after);
    this.reads.set(key, reading);
    const forget = (): void => void this.reads.delete(key);
    reading.then(forget, forget);
    return reading;
  }

  private async read(after: number): Promise<StreamPage> {
    const first = this.tail[0]?.seq ?? Infinity;
    if (after + 1 >= first && after < this.last) {
      return { parts: toParts(this.tail.slice(after + 1 - first)), hasMore: false };
    }
    const rows = await this.readStored(after, PAGE_SIZE);
    return {
      parts: toParts(rows),
      hasMore: (rows[0]?.found ?? 0) > rows.length || rows.length === PAGE_SIZE,
    };
  }

  private wakeBehind(last: number): void {
    this.streams.forEach((_owner, stream) => {
      if (stream.sent < last) {
        stream.wake();
      }
    });
  }
}

function toParts(rows: readonly StoredEvent[]): StreamPage['parts'] {
  const parts: { bytes: Buffer; seq: number }[] = [];
  let text = '';
  let seq = 0;
  for (const row of rows) {
    const frame = sseFrame(row);
    if (text !== '' && text.length + frame.length > PART_CHARACTERS) {
      parts.push({ bytes: Buffer.from(text), seq });
      text = '';
    }
    text += frame;
    seq = row.seq;
  }
  return text === '' ? parts : [...parts, { bytes: Buffer.from(text), seq }];
}

/** An event in the format of server-sent events. Its JSON is one line. */
function sseFrame({ seq, kind, body }: StoredEvent): string {
  return `id: ${seq}\nevent: ${kind.replaceAll(/[\r\n]/g, ' ')}\ndata: ${body}\n\n`;
}
