import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Often enough that requests leave close to their planned moment. */
const TICK_MS = 2;
const TIMEOUT_MS = 10_000;
/**
 * Opened before. Node.js accepts one connection per turn of its event loop, about a hundred a second when it is busy: with a
 * connection for each request this would measure that instead, and a reverse proxy keeps its connections.
 */
const CONNECTIONS = 2_000;

/** A request that is sent over and over. */
export interface OfferedRequest {
  method: 'GET' | 'POST';
  path: string;
  key: string;
  body?: string;
}

/** What came of the requests that were offered. */
export interface OfferedLoad {
  sent: number;
  /** Responses by status. */
  statuses: Map<number, number>;
  /** No response within ten seconds. */
  timeouts: number;
  /** Connections that were refused or broken. */
  errors: number;
  /** Milliseconds from the planned sending of each request answered 2xx to the last byte of its answer, ascending. */
  latencies: number[];
}

/**
 * Sends requests at a fixed rate, however long responses take, as many independent users would. Latency counts from the
 * planned moment, so that a service that stalls is charged for the requests that it kept from being sent (coordinated
 * omission).
 *
 * @param rate requests per second, spread evenly
 * @param seconds how long requests are sent; their responses may come later
 */
export async function offerLoad(
  url: string,
  requests: readonly OfferedRequest[],
  rate: number,
  seconds: number,
): Promise<OfferedLoad> {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CONNECTIONS,
    maxFreeSockets: CONNECTIONS,
    // Each in its turn: the service closes those that are idle for a minute, and then counts of open files would follow
    // how many requests happen to be under way at once.
    scheduling: 'fifo',
  });
  await openConnections(agent, url);
  const load: OfferedLoad = { sent: 0, statuses: new Map(), timeouts: 0, errors: 0, latencies: [] };
  const total = Math.floor(rate * seconds);
  const responses: Promise<void>[] = [];
  const beganAt = performance.now();
  while (load.sent < total) {
    const due = Math.min(total, Math.ceil(((performance.now() - beganAt) * rate) / 1000));
    for (; load.sent < due; load.sent += 1) {
      const each = requests[load.sent % requests.length];
      if (each !== undefined) {
        responses.push(send(agent, url, each, beganAt + (load.sent * 1000) / rate, load));
      }
    }
    await delay(TICK_MS);
  }
  await Promise.all(responses);
  agent.destroy();
  load.latencies.sort((a, b) => a - b);
  return load;
}

async function openConnections(agent: Agent, url: string): Promise<void> {
  const open = async (): Promise<void> => {
    const sent = request(`${url}/health/live`, { agent });
    sent.once('response', (response) => response.resume());
    await once(sent.end(), 'close');
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, open));
}

async function send(
  agent: Agent,
  url: string,
  { method, path, key, body }: OfferedRequest,
  plannedAt: number,
  load: OfferedLoad,
): Promise<void> {
  return await new Promise((resolve) => {
    const sent = request(`${url}${path}`, {
      method,
      agent,
      timeout: TIMEOUT_MS,
      headers: {
        'x-session-api-key': key,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
    });
    let hasTimedOut = false;
    sent.once('timeout', () => {
      hasTimedOut = true;
      sent.destroy();
    });
    sent.once('error', () => {
      load.timeouts += hasTimedOut ? 1 : 0;
      load.errors += hasTimedOut ? 0 : 1;
      resolve();
    });
    sent.once('response', (response) => {
      const status = response.statusCode ?? 0;
      response.resume();
      response.once('end', () => {
        load.statuses.set(status, (load.statuses.get(status) ?? 0) + 1);
        if (status >= 200 && status < 300) {
          load.latencies.push(performance.now() - plannedAt);
        }
        resolve();
      });
    });
    sent.end(body);
  });
}

/** Looks again and again until the load is over. */
export async function during(
  load: Promise<OfferedLoad>,
  pauseMs: number,
  look: () => Promise<void>,
): Promise<OfferedLoad> {
  const over = new AbortController();
  const result = load.finally(() => over.abort());
  while (!over.signal.aborted) {
    await look();
    await delay(pauseMs);
  }
  return await result;
}

/** The responses with a status of the given hundred, or with exactly the given status. */
export function countOf({ statuses }: OfferedLoad, wanted: number): number {
  return [...statuses]
    .filter(([status]) => status === wanted || (wanted < 10 && Math.floor(status / 100) === wanted))
    .reduce((sum, [, count]) => sum + count, 0);
}
