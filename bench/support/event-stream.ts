import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';

/** An event as it came over a stream. */
export interface StreamedEvent {
  data: unknown;
  /** Epoch milliseconds, of the clock that the agent server has too. */
  at: number;
}

export interface EventStream {
  /** Grows. */
  events: StreamedEvent[];
  close(): void;
}

/** Reads server-sent events from now on. */
export async function openEventStream(url: string, key: string): Promise<EventStream> {
  const outgoing = request(url, { headers: { 'x-session-api-key': key }, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) {
    throw new Error(`${url} answered ${response.statusCode}`);
  }
  response.setEncoding('utf8');
  const events: StreamedEvent[] = [];
  let rest = '';
  response.on('data', (chunk: string) => {
    const at = Date.now();
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.filter((text) => text.startsWith('data: '))) {
      events.push({ data: JSON.parse(line.slice('data: '.length)), at });
    }
  });
  // Closing it breaks the connection.
  response.on('error', () => undefined);
  return { events, close: () => response.destroy() };
}
