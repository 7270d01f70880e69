import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import pRetry, { AbortError } from 'p-retry';
import type { CommandLineConfig } from '../config/command-line-config.js';
import { CommandError, type CommandOutput, EXIT } from './command-output.js';

const TIMEOUT_MS = 60_000;
/** How long a restart or an update may take. */
const AWAY_MS = 60_000;
const RETRY_MS = 1_000;
/** A service that stops, and a proxy in front of none. */
const AWAY = new Set([502, 503, 504]);

/** Values that are null or undefined are left out. */
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;
type Method = 'GET' | 'POST' | 'DELETE';

/** What a command over the API works with. */
export interface Invocation {
  client: ServiceClient;
  output: CommandOutput;
  json: boolean;
}

interface RequestOptions {
  /** Sent as JSON. */
  body?: unknown;
  query?: Query;
  headers?: Readonly<Record<string, string>>;
  /** Whether it is repeated while the service is away. */
  isPatient?: boolean;
  /** Null: as long as it takes. */
  timeoutMs?: number | null;
}

export interface ServiceAnswer<T> {
  body: T;
  headers: Headers;
}

/** The public API of a service, for the commands of `slipway`; answers have the types of its own DTOs. */
export class ServiceClient {
  constructor(
    private readonly config: Pick<CommandLineConfig, 'url' | 'key'>,
    private readonly awayMs = AWAY_MS,
  ) {}

  /** @throws CommandError unless the answer is a success */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<ServiceAnswer<T>> {
    const response = await this.send(method, path, options);
    const text = await response.text();
    const body = parseJson(text);
    if (body === undefined && text !== '') {
      throw new CommandError(`${this.config.url} does not answer as Slipway does; is SLIPWAY_URL right?`);
    }
    return { body: body as T, headers: response.headers };
  }

  /** All items of a list that is answered in pages. */
  async list<T>(path: string, query: Query): Promise<T[]> {
    const { body } = await this.request<{ items: T[]; next_page_id: string | null }>('GET', path, { query });
    const { items, next_page_id: page_id } = body;
    return page_id === null ? items : [...items, ...(await this.list<T>(path, { ...query, page_id }))];
  }

  /** Server-sent events without an end: a stream that ends or breaks is continued after its last event. */
  async *events(path: string): AsyncGenerator<EventSourceMessage> {
    for (let lastId: string | null = null; ; await delay(RETRY_MS)) {
      const since = lastId === null ? {} : { headers: { 'Last-Event-ID': lastId }, isPatient: true };
      const { body } = await this.send('GET', path, { ...since, timeoutMs: null });
      const frames = body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      for await (const frame of untilBroken(frames)) {
        lastId = frame.id ?? lastId;
        yield frame;
      }
    }
  }

  private async send(method: Method, path: string, options: RequestOptions): Promise<Response> {
    const { query = {}, body, headers, isPatient = false, timeoutMs = TIMEOUT_MS } = options;
    const { key, url } = this.config;
    const address = new URL(`${url}${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined) {
        address.searchParams.set(name, String(value));
      }
    }
    const attempt = async (): Promise<Response> => {
      const response = await fetch(address, {
        method,
        headers: {
          ...headers,
          ...(key !== null && { 'X-Session-API-Key': key }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: timeoutMs === null ? null : AbortSignal.timeout(timeoutMs),
        redirect: 'error',
      }).catch((error: unknown) => {
        const cause = errorMessage(
          error instanceof Error && error.cause instanceof Error ? error.cause : error,
        );
        const advice = 'is the service running, and is SLIPWAY_URL right?';
        throw new CommandError(`cannot reach ${url}: ${cause}; ${advice}`, EXIT.unreachable);
      });
      if (!response.ok) {
        const error = refusal(response.status, parseJson(await response.text()));
        throw AWAY.has(response.status) ? error : new AbortError(error);
      }
      return response;
    };
    const retries = isPatient ? Infinity : 0;
    return await pRetry(attempt, { retries, factor: 1, minTimeout: RETRY_MS, maxRetryTime: this.awayMs });
  }
}

function refusal(status: number, problem: unknown): CommandError {
  const said = jsonText(problem, 'detail') ?? jsonText(problem, 'title') ?? `the service answered ${status}`;
  return new CommandError(said, status === 401 || status === 403 ? EXIT.notAllowed : EXIT.failed);
}

async function* untilBroken<T>(stream: AsyncIterable<T> | undefined): AsyncGenerator<T> {
  try {
    yield* stream ?? [];
  } catch {
    // Only reading fails here, as the connection broke: what a consumer throws does not come back to a generator.
  }
}
