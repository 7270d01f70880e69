import { request, type IncomingMessage } from 'node:http';
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
  private rest = '';

  readonly response: IncomingMessage;

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => this.take(chunk));
    response.on('close', () => {
      this.ended = true;
    });
    response.on('error', () => undefined);
  }

  static async connect(url: string, headers: Record<string, string>): Promise<EventSource> {
    const outgoing = request(url, { headers, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return new EventSource(response);
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
      if (fields['data'] === undefined) {
        this.comments.push(block);
      } else {
        this.events.push({
          id: fields['id'] ?? '',
          event: fields['event'] ?? '',
          data: JSON.parse(fields['data']),
          at: performance.now(),
        });
      }
    }
  }
}
