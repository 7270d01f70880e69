import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Response } from 'express';
import type { StreamPage } from './audience.js';

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

/** For clients that disconnect before the first event. The frame has no data, so clients dispatch no event. */
function openingFrame(position: number, first: object | null): string {
  const frame = `retry: ${RECONNECT_MS}\nid: ${position}\n\n`;
  return first === null ? frame : `${frame}event: ${STATE_EVENT}\ndata: ${JSON.stringify(first)}\n\n`;
}
