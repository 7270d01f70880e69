import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { once } from 'node:events';
import { until } from './until.js';

/** An event as it came over a stream. */
export interface ReceivedEvent {
  id: string;
  event: string;
  data: unknown;
  /** `performance.now()`. */
  at: number;
}

/** A client of server-sent events that keeps what it got. */
export class EventSource {
  readonly events: ReceivedEvent[] = [];
  readonly comments: string[] = [];
  ended = false;
  /** When the server wants the client to connect again. */
  retryMs: number | null = null;
  /** What the client would say of itself in `Last-Event-ID`: also an id that came without an event. */
  position = '';
  private rest = '';

  private constructor(
    readonly response: IncomingMessage,
    private readonly onEvent: (event: ReceivedEvent) => void,
  ) {
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.take(chunk));
    response.on('close', () => {
      this.ended = true;
    });
    response.on('error', () => undefined);
  }

  static async connect(
    url: string,
    headers: Record<string, string>,
    onEvent: (event: ReceivedEvent) => void = () => undefined,
  ): Promise<EventSource> {
    const request = url.startsWith('https:') ? httpsRequest : httpRequest;
    const outgoing = request(url, { headers, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return new EventSource(response, onEvent);
  }

  get ids(): number[] {
    return this.events.map(({ id }) => Number(id));
  }

  get lastId(): string {
    return this.events.at(-1)?.id ?? '0';
  }

  async untilCount(count: number): Promise<void> {
    await until(() => this.events.length >= count);
  }

  async untilEnded(): Promise<void> {
    await until(() => this.ended);
  }

  close(): void {
    this.response.destroy();
  }

  private take(chunk: string): void {
    const blocks = (this.rest + chunk).split('\n\n');
    this.rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      this.position = fields['id'] ?? this.position;
      this.retryMs = fields['retry'] === undefined ? this.retryMs : Number(fields['retry']);
      if (fields['data'] === undefined) {
        this.comments.push(block);
      } else {
        const event = {
          id: fields['id'] ?? '',
          event: fields['event'] ?? '',
          data: JSON.parse(fields['data']),
          at: performance.now(),
        };
        this.events.push(event);
        this.onEvent(event);
      }
    }
  }
}
