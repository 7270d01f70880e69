import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import type { CommandLineConfig } from '../config/command-line-config.js';

const TIMEOUT_MS = 60_000;
/** How long a restart or an update may take. */
const AWAY_MS = 60_000;
const RETRY_MS = 1_000;
/** A service that stops, and a proxy in front of none. */
const AWAY = new Set([502, 503, 504]);

/** Exit statuses of `slipway`; scripts depend on them. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, notAllowed: 4 } as const;

/** Ends a command with one line for people and a status for programs. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly status: number = EXIT.failed,
    readonly isPassing = status === EXIT.unreachable,
  ) {
    super(message);
    this.name = 'CommandError';
  }
}

interface ServiceRequest {
  method?: 'GET' | 'POST' | 'DELETE';
  /** Sent as JSON. */
  body?: unknown;
  /** Values that are null or undefined are left out. */
  query?: Readonly<Record<string, string | number | boolean | null | undefined>>;
}

export interface ServiceAnswer {
  body: unknown;
  headers: Headers;
}

/** The public API of a service, for the commands of `slipway`. */
export class ServiceClient {
  constructor(
    private readonly config: CommandLineConfig,
    private readonly awayMs = AWAY_MS,
  ) {}

  /** @throws CommandError unless the answer is a success */
  async request(path: string, request: ServiceRequest = {}): Promise<ServiceAnswer> {
    const response = await this.send(path, request, AbortSignal.timeout(TIMEOUT_MS));
    return { body: parseJson(await response.text()), headers: response.headers };
  }

  /** All items of a list that is answered in pages. */
  async list(path: string, query: ServiceRequest['query'] = {}): Promise<unknown[]> {
    const found: unknown[] = [];
    let pageId: string | null = null;
    do {
      const { body }: ServiceAnswer = await this.request(path, { query: { ...query, page_id: pageId } });
      found.push(...jsonList(body, 'items'));
      pageId = jsonText(body, 'next_page_id');
    } while (pageId !== null);
    return found;
  }

  /** Repeats what fails because the service is away. @throws CommandError when it stays away */
  async outlasting<T>(work: () => Promise<T>): Promise<T> {
    const begunAt = performance.now();
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const isPassing = error instanceof CommandError && error.isPassing;
        if (!isPassing || performance.now() - begunAt >= this.awayMs) {
          throw error;
        }
        await delay(RETRY_MS);
      }
    }
  }

  /** Server-sent events, until the service ends the stream or the connection breaks; then they can be continued. */
  async *events(path: string, lastEventId: string | null = null): AsyncGenerator<EventSourceMessage> {
    const headers: Record<string, string> = lastEventId === null ? {} : { 'Last-Event-ID': lastEventId };
    const open = async (): Promise<Response> => await this.send(path, {}, null, headers);
    const { body } = await (lastEventId === null ? open() : this.outlasting(open));
    const frames = body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
      .values();
    try {
      // Only a failure to read means that the connection broke; one of the consumer is a defect, and goes on to it.
      for (let next = await nextOrEnd(frames); next !== null; next = await nextOrEnd(frames)) {
        yield next;
      }
    } finally {
      await frames?.return?.().catch(() => undefined);
    }
  }

  private async send(
    path: string,
    { method = 'GET', body, query = {} }: ServiceRequest,
    signal: AbortSignal | null,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const url = new URL(`${this.config.url}${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== null && value !== undefined) {
        url.searchParams.set(name, String(value));
      }
    }
    let response: Response;
    try {
      response = await fetch(url, {
        method,
        headers: {
          ...headers,
          ...(this.config.key !== null && { 'X-Session-API-Key': this.config.key }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal,
        redirect: 'error',
      });
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw new CommandError(
        `cannot reach ${this.config.url}: ${errorMessage(cause)}; is the service running, and is SLIPWAY_URL right?`,
        EXIT.unreachable,
      );
    }
    if (!response.ok) {
      throw refused(response.status, parseJson(await response.text()));
    }
    return response;
  }
}

function refused(status: number, problem: unknown): CommandError {
  const detail =
    jsonText(problem, 'detail') ?? jsonText(problem, 'title') ?? `the service answered ${status}`;
  const exit = status === 401 || status === 403 ? EXIT.notAllowed : EXIT.failed;
  return new CommandError(detail, exit, AWAY.has(status));
}

async function nextOrEnd<T>(frames: AsyncIterator<T> | undefined): Promise<T | null> {
  const next = await frames?.next().catch(() => null);
  return next && next.done !== true ? next.value : null;
}
