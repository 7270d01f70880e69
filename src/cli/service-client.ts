import { setTimeout as delay } from 'node:timers/promises';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import ky, { isHTTPError, isNetworkError, isTimeoutError, type KyInstance } from 'ky';
import type { CommandLineConfig } from '../config/command-line-config.js';
import { CommandError, type CommandOutput, EXIT } from './command-output.js';

const TIMEOUT_MS = 60_000;
/** How long a restart or an update may take. */
const AWAY_MS = 60_000;
const RETRY_MS = 1_000;
/** A service that stops, and a proxy in front of none. */
const AWAY = [502, 503, 504];

/** What a command over the API works with. */
export interface Invocation {
  client: ServiceClient;
  output: CommandOutput;
  json: boolean;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The public API of a service, for the commands of `slipway`. A failure is a CommandError. */
export class ServiceClient {
  readonly http: KyInstance;
  /** Repeats requests while the service is away. */
  readonly patient: KyInstance;

  constructor({ url, key }: Pick<CommandLineConfig, 'url' | 'key'>, awayMs = AWAY_MS) {
    this.http = ky.create({
      prefix: url,
      headers: { 'X-Session-API-Key': key ?? undefined },
      redirect: 'error',
      timeout: TIMEOUT_MS,
      retry: 0,
      parseJson: (text) => {
        const body = parseJson(text);
        if (body === undefined) {
          throw new CommandError(`${url} does not answer as Slipway does; is SLIPWAY_URL right?`);
        }
        return body;
      },
      hooks: { beforeError: [({ error }) => toCommandError(error, url)] },
    });
    const limit = awayMs / RETRY_MS;
    const when = { methods: ['get'], statusCodes: AWAY, afterStatusCodes: [] };
    this.patient = this.http.extend({ retry: { limit, delay: () => RETRY_MS, ...when } });
  }

  /** All items of a list that is answered in pages. */
  async list<T>(path: string, query: Query): Promise<T[]> {
    const { items, next_page_id: page_id } = await this.http
      .get(path, { searchParams: query })
      .json<{ items: T[]; next_page_id: string | null }>();
    return page_id === null ? items : [...items, ...(await this.list<T>(path, { ...query, page_id }))];
  }

  /** Server-sent events without an end: a stream that ends or breaks is continued after its last event. */
  async *events(path: string): AsyncGenerator<EventSourceMessage> {
    for (let lastId: string | undefined; ; await delay(RETRY_MS)) {
      const client = lastId === undefined ? this.http : this.patient;
      const { body } = await client.get(path, { headers: { 'Last-Event-ID': lastId } });
      const frames = body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      for await (const frame of untilBroken(frames)) {
        lastId = frame.id ?? lastId;
        yield frame;
      }
    }
  }
}

function toCommandError(error: Error, url: string): Error {
  if (isHTTPError(error)) {
    const { data, response } = error;
    const wrong = jsonList(data, 'detail').map(
      (problem) => `${jsonList(problem, 'loc').slice(1).join('.')}: ${jsonText(problem, 'msg')}`,
    );
    const words = [jsonText(data, 'detail'), wrong.join(' '), jsonText(data, 'title')];
    const said =
      response.status === 401
        ? `${url} does not accept the key: SLIPWAY_KEY names one, and slipway keys create makes one`
        : (words.find(Boolean) ?? `the service answered ${response.status}`);
    return new CommandError(said, [401, 403].includes(response.status) ? EXIT.notAllowed : EXIT.failed);
  }
  const advice = 'is the service running, and is SLIPWAY_URL right?';
  return isNetworkError(error) || isTimeoutError(error)
    ? new CommandError(`cannot reach ${url}: ${errorWithCauses(rootOf(error))}; ${advice}`, EXIT.unreachable)
    : error;
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}

async function* untilBroken<T>(stream: AsyncIterable<T> | undefined): AsyncGenerator<T> {
  try {
    yield* stream ?? [];
  } catch {
    // Only reading fails here, as the connection broke: what a consumer throws does not come back to a generator.
  }
}
