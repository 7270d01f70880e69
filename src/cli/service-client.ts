import { setTimeout as delay } from 'node:timers/promises';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import ky, { isHTTPError, isNetworkError, isTimeoutError, type KyInstance } from 'ky';
import type { CommandLineConfig } from '../config/command-line-config.js';
import { CommandError, type CommandOutput } from './command-output.js';

/** How long an answer may take, or a restart. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 1_000;
const POLL_MS = 250;

/** What a command over the API works with. */
export interface Invocation {
  client: ServiceClient;
  output: CommandOutput;
  json: boolean;
}

export type Invoke = (json?: boolean) => Invocation;
type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The public API of a service, for the commands of `slipway`. A failure is a CommandError. */
export class ServiceClient {
  readonly http: KyInstance;
  /** Repeats requests while the service is away. */
  readonly patient: KyInstance;

  constructor(readonly config: CommandLineConfig & { awayMs?: number }) {
    const { url, key, awayMs = PATIENCE_MS } = config;
    this.http = ky.create({
      prefix: url,
      headers: { 'X-Session-API-Key': key ?? undefined },
      redirect: 'error',
      timeout: PATIENCE_MS,
      retry: 0,
      parseJson: (text) => {
        const body = parseJson(text);
        if (body === undefined) {
          throw new CommandError(`${url} does not answer as Slipway does; is SLIPWAY_URL right?`);
        }
        return body;
      },
      hooks: { beforeError: [({ error }) => toCommandError(error, url, key)] },
    });
    // A service that stops answers so, and a proxy in front of none.
    const when = { methods: ['get'], statusCodes: [502, 503, 504], afterStatusCodes: [] };
    this.patient = this.http.extend({ retry: { limit: awayMs / RETRY_MS, delay: () => RETRY_MS, ...when } });
  }

  /** All items of a list that is answered in pages. */
  async list<T>(path: string, query: Query): Promise<T[]> {
    const { items, next_page_id: page_id } = await this.http
      .get(path, { searchParams: query })
      .json<{ items: T[]; next_page_id: string | null }>();
    return page_id === null ? items : [...items, ...(await this.list<T>(path, { ...query, page_id }))];
  }

  /** Looks something up until it is as wanted; null where it does not exist. */
  async poll<T>(path: string, query: Query, isWanted: (found: T | null) => boolean): Promise<T | null> {
    for (; ; await delay(POLL_MS)) {
      const [found = null] = await this.patient.get(path, { searchParams: query }).json<(T | null)[]>();
      if (isWanted(found)) {
        return found;
      }
    }
  }

  /** Server-sent events without an end: a stream that ends or breaks is continued after its last event. */
  async *events(path: string): AsyncGenerator<EventSourceMessage> {
    for (let lastId: string | undefined; ; await delay(RETRY_MS)) {
      const client = lastId === undefined ? this.http : this.patient;
      const { body } = await client.get(path, { headers: { 'Last-Event-ID': lastId } });
      const frames = body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      try {
        for await (const frame of frames ?? []) {
          lastId = frame.id ?? lastId;
          yield frame;
        }
      } catch {
        // The connection broke; what the consumer of a generator throws does not arrive here.
      }
    }
  }
}

function toCommandError(error: Error, url: string, key: string | null): Error {
  if (isHTTPError(error)) {
    const { status } = error.response;
    const problems = jsonList(error.data, 'detail').map(
      (problem) => `${jsonList(problem, 'loc').slice(1).join('.')}: ${jsonText(problem, 'msg')}`,
    );
    const texts = [
      refusedByHosts(error.data),
      jsonText(error.data, 'detail'),
      ...problems,
      jsonText(error.data, 'title'),
    ];
    const refused = `${url} ${key === null ? 'needs a key' : 'does not accept the key'}: set SLIPWAY_KEY`;
    const isRefused = status === 401 && (jsonText(error.data, 'code') ?? 'unauthorized') === 'unauthorized';
    const said = isRefused ? refused : (texts.find(Boolean) ?? `the service answered ${status}`);
    const codes = { 403: 'notAllowed', 422: 'usage' } as const;
    const code = codes[status as keyof typeof codes] ?? 'failed';
    return new CommandError(said, isRefused ? 'notAllowed' : code);
  }
  const advice = 'is the service running, and is SLIPWAY_URL right?';
  return isNetworkError(error) || isTimeoutError(error)
    ? new CommandError(`cannot reach ${url}: ${errorWithCauses(rootOf(error))}; ${advice}`, 'unreachable')
    : error;
}

/** What is said of a refusal that names git hosts, each with its reason; null for others. */
function refusedByHosts(body: unknown): string | null {
  if (jsonText(body, 'code') !== 'git_providers_failed') {
    return null;
  }
  const hosts = jsonList(body, 'errors').map((host) => {
    const [code, detail] = [jsonText(host, 'code'), jsonText(host, 'detail')];
    return hostReasons(jsonText(host, 'provider') ?? '', [code, detail], jsonNumber(host, 'retry_after'));
  });
  // After that, it says what a program reads and does.
  return [jsonText(body, 'detail')?.split(';')[0], ...hosts].join('; ');
}

/** `gitlab: rate_limited, try again in 41 s`. @param wait seconds, where there are some */
export function hostReasons(provider: string, reasons: readonly unknown[], wait: number | null): string {
  const said = [...reasons, wait !== null && `try again in ${wait} s`].filter(Boolean);
  return `${provider}: ${said.join(', ')}`;
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}
