import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import autocannon from 'autocannon';
import { jsonList } from '@slipway/common/json-access.js';
import { atMost, median, type Outcome, print, spread } from './report.js';

const WARM_UPS = 40;
const RUNS = 100;
const MAX_PAGE_MS = 10;

interface ClientRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: string;
  /** The key of a sandbox, instead of the client's own. */
  key?: string;
}

interface TimedResponse {
  status: number;
  body: string;
  /** Milliseconds from sending to the last byte. */
  ms: number;
}

/** An event of a stream. */
interface StreamedEvent {
  data: unknown;
  /** Epoch milliseconds of its arrival, by the same clock as the agent server's. */
  at: number;
}

export interface EventStream {
  /** Grows while the stream is open. */
  events: StreamedEvent[];
  close(): void;
}

/** A client with as little overhead as Node allows. It keeps its connections. */
export class HttpClient {
  private readonly agent = new Agent({ keepAlive: true });
  private readonly url: string;
  private readonly apiKey: string;

  constructor(url: string, apiKey: string) {
    this.url = url;
    this.apiKey = apiKey;
  }

  async send({ method, path, body, key = this.apiKey }: ClientRequest): Promise<TimedResponse> {
    return await new Promise((resolve, reject) => {
      const startedAt = performance.now();
      const sent = request(`${this.url}${path}`, {
        method,
        agent: this.agent,
        headers: { 'x-session-api-key': key, 'content-type': 'application/json' },
      });
      sent.on('error', reject);
      sent.on('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('error', reject);
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString('utf8'),
            ms: performance.now() - startedAt,
          });
        });
      });
      sent.end(body);
    });
  }

  /** {@link send} for requests that must succeed: throws for any status but 2xx. */
  async expectOk(given: ClientRequest): Promise<TimedResponse> {
    const response = await this.send(given);
    if (response.status < 200 || response.status > 299) {
      throw new Error(`${given.method} ${given.path} responded ${response.status}: ${response.body}`);
    }
    return response;
  }

  /** {@link expectOk}, with the body parsed as JSON. */
  async json(given: ClientRequest): Promise<unknown> {
    return JSON.parse((await this.expectOk(given)).body);
  }

  close(): void {
    this.agent.destroy();
  }
}

/**
 * Repeats the requests for so many seconds. Each connection begins elsewhere in the list, so that they do not all work on
 * the same rows at once.
 *
 * @returns responses per second
 * @throws Error when a request failed, since the number would mean nothing
 */
export async function requestsPerSecond(
  url: string,
  requests: autocannon.LoadRequest[],
  { duration, connections }: { duration: number; connections: number },
): Promise<number> {
  let clients = 0;
  const result = await autocannon({
    url,
    connections,
    duration,
    setupClient: (client) => {
      const start = Math.floor((clients * requests.length) / connections);
      clients += 1;
      client.setRequests([...requests.slice(start), ...requests.slice(0, start)]);
    },
  });
  const { errors, timeouts, non2xx } = result;
  if (errors + timeouts + non2xx > 0) {
    throw new Error(`${url}: ${errors} errors, ${timeouts} timeouts, ${non2xx} responses other than 2xx`);
  }
  return result.requests.average;
}

/** Reads a page of a hundred items, in turns with a route that does nothing. */
export async function pageOutcome(client: HttpClient, what: string, path: string): Promise<Outcome> {
  const page: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_UPS + RUNS; run += 1) {
    const response = await client.expectOk({ method: 'GET', path });
    const live = await client.expectOk({ method: 'GET', path: '/health/live' });
    if (run === 1 && jsonList(JSON.parse(response.body), 'items').length !== 100) {
      throw new Error(`${path} did not return what is there`);
    }
    if (run > WARM_UPS) {
      page.push(response.ms);
      nothing.push(live.ms);
    }
  }
  print(`  ${what}: ${spread(page, 1)} ms, /health/live ${spread(nothing, 1)} ms`);
  const note = `x${(median(page) / median(nothing)).toFixed(1)}`;
  return atMost(`${what} (and against /health/live)`, page, MAX_PAGE_MS, { digits: 1, note });
}

/** Reads server-sent events until it is closed. */
export async function openEventStream(url: string, key: string): Promise<EventStream> {
  const response = await openStream(url, key);
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
  return { events, close: () => response.destroy() };
}

/** @throws Error for any status but 200 */
export async function openStream(url: string, key: string): Promise<IncomingMessage> {
  const outgoing = request(url, { headers: { 'x-session-api-key': key }, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) {
    throw new Error(`${url} responded ${response.statusCode}`);
  }
  // Closing breaks the connection.
  response.on('error', () => undefined);
  return response;
}
