import { type Span, SpanKind } from '@opentelemetry/api';
import type { Dispatcher, FormData } from 'undici';
import { SPANS_HEADER } from '@slipway/agent-protocol/server.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { JsonBoundsError } from '@slipway/common/json-outline.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { currentSpanBegunAt, currentTraceparent, type SpanStart, traced } from '@slipway/common/spans.js';
import { AgentServerConnections, type AgentServerTarget } from './agent-server.connections.js';
import { BoundedJson, type ResponseBounds, ResponseBoundsError } from './bounded-json.js';
import { agentServerSpans, recordAgentServerSpans } from './agent-server.spans.js';

const DEFAULT_TIMEOUT_MS = 20_000;
const MIB = 1024 * 1024;
/** Room for a conversation with its settings, its skills and the statistics of each model call. */
const USUAL_BOUNDS: ResponseBounds = { bytes: 4 * MIB, values: 100_000 };
/** Unread responses up to this size are drained, so that their connection can be used again. */
const MAX_DROPPED_BYTES = 64 * 1024;
const MAX_SHORT_BYTES = MIB / 4;
const MAX_DETAIL = 500;
const NO_REASON = 'no reason given';
const ID_IN_PATH = /\/[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}(?=\/|$)/gi;

type ResponseBody = Dispatcher.ResponseData['body'];

interface AgentServerResponse {
  body: ResponseBody;
  bytes: number | null;
}

export class AgentServerError extends Error {
  /** @param detail the server's own words, clipped; they may be shown to the conversation's owner */
  constructor(
    readonly status: number | null,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(
      status === null
        ? `The agent server did not answer: ${detail}`
        : `The agent server answered ${status}: ${detail}`,
      options,
    );
    this.name = 'AgentServerError';
  }
}

/** Returns null when the agent server refuses with one of the statuses. */
export async function unlessStatus<T>(statuses: readonly number[], answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof AgentServerError && error.status !== null && statuses.includes(error.status)) {
      return null;
    }
    throw error;
  }
}

/** An agent server sent more than any honest one does. */
export class ResponseTooLargeError extends AgentServerError {
  constructor(
    readonly excess: string,
    options?: ErrorOptions,
  ) {
    super(null, `it sent ${excess}`, options);
    this.name = 'ResponseTooLargeError';
  }
}

/** Reads a page, and a smaller one while it is too large; only the smallest must not be. */
export async function readShrinking<T>(
  [limit = 1, ...smaller]: readonly number[],
  read: (limit: number, mayExceed: boolean) => Promise<T>,
): Promise<T> {
  const mayExceed = smaller.length > 0;
  try {
    return await read(limit, mayExceed);
  } catch (error) {
    if (mayExceed && error instanceof ResponseTooLargeError) {
      return await readShrinking(smaller, read);
    }
    throw error;
  }
}

/** `detail` says what is wrong, in sentences for the sandbox's owner. */
type BreachListener = (target: AgentServerTarget, detail: string) => void;

const KEY_REFUSED =
  'Its agent server does not take its key, as after a restore of an older database, so the sandbox was stopped. ' +
  'Resuming starts it again.';

interface AgentServerCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  form?: FormData;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
  /** The call is repeated until it succeeds, so it gets no span of its own. */
  isPoll?: boolean;
}

interface JsonCall extends AgentServerCall {
  bounds?: ResponseBounds;
  /** The caller asks for less when the response is too large, so that this does not count as a breach. */
  mayExceed?: boolean;
}

/** Backends give the addresses, so the guard against private ones would only block them. Follows no redirects. */
export class AgentServerHttp {
  private readonly receiver = new BoundedJson();
  private readonly breachListeners: BreachListener[] = [];

  constructor(private readonly connections: AgentServerConnections) {}

  /** Calls the listener when the response of a sandbox exceeds its bounds, or refuses its key. */
  onBreach(listener: BreachListener): void {
    this.breachListeners.push(listener);
  }

  /** Reads a JSON response. Throws ResponseTooLargeError; AgentServerError unless 2xx with JSON. */
  async json(target: AgentServerTarget, path: string, call: JsonCall = {}): Promise<unknown> {
    const { bounds = USUAL_BOUNDS, mayExceed = false } = call;
    const { body } = await this.open(target, path, call);
    try {
      return await this.receiver.receive(body, bounds);
    } catch (error) {
      if (error instanceof ResponseBoundsError) {
        const tooLarge = new ResponseTooLargeError(error.message, { cause: error });
        if (!mayExceed) {
          this.noteBreach(target, `Its agent server sent ${error.message}, so the sandbox was stopped.`);
        }
        throw tooLarge;
      }
      throw error instanceof SyntaxError || error instanceof JsonBoundsError
        ? new AgentServerError(null, 'its response was not JSON', { cause: error })
        : failureOf(error);
    }
  }

  /** Ignores the body of the response. Throws AgentServerError unless 2xx. */
  async send(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<void> {
    const { body } = await this.open(target, path, call);
    try {
      await body.dump({ limit: MAX_DROPPED_BYTES });
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Reads a short text; empty when the response is longer than any honest one. Throws AgentServerError unless 2xx. */
  async text(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<string> {
    const { body } = await this.open(target, path, call);
    try {
      return await readShortText(body);
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** Writes a file inside the sandbox, at an absolute path. Throws AgentServerError. */
  async upload(
    target: AgentServerTarget,
    path: string,
    content: string,
    signal?: AbortSignal,
  ): Promise<void> {
    const { FormData: Form } = await import('undici');
    const form = new Form();
    form.set('file', new Blob([content]), 'file');
    await this.send(target, '/api/file/upload', { method: 'POST', query: { path }, form, signal });
  }

  /** The caller reads the body or destroys it; the timeout covers the body too. Throws AgentServerError unless 2xx. */
  async open(
    target: AgentServerTarget,
    path: string,
    call: AgentServerCall = {},
  ): Promise<AgentServerResponse> {
    if (call.isPoll === true) {
      return this.request(target, path, call);
    }
    return traced(callSpan(path, call), (span) => this.request(target, path, call, span));
  }

  private noteBreach(target: AgentServerTarget, detail: string): void {
    this.breachListeners.forEach((listener) => listener(target, detail));
  }

  private async request(
    target: AgentServerTarget,
    path: string,
    call: AgentServerCall,
    span?: Span,
  ): Promise<AgentServerResponse> {
    const { method = 'GET', query = {}, body, form, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = call;
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        parameters.set(name, String(value));
      }
    }
    const deadline = AbortSignal.timeout(timeoutMs);
    const signals = signal ? AbortSignal.any([signal, deadline]) : deadline;
    const startedAt = Date.now();
    const traceparent = currentTraceparent();
    try {
      const { pool, origin } = await this.connections.dispatcher(target);
      const response = await pool.request({
        origin,
        path: parameters.size === 0 ? path : `${path}?${parameters.toString()}`,
        method,
        headers: {
          accept: 'application/json',
          'x-session-api-key': target.sessionKey,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(traceparent !== null && { traceparent }),
        },
        body: form ?? (body === undefined ? null : JSON.stringify(body)),
        signal: signals,
      });
      span?.setAttribute('http.response.status_code', response.statusCode);
      if (traceparent !== null) {
        recordSpans(response.headers[SPANS_HEADER], { startedAt, path, call });
      }
      if (response.statusCode === 401) {
        this.noteBreach(target, KEY_REFUSED);
      }
      if (response.statusCode < 200 || response.statusCode > 299) {
        throw new AgentServerError(response.statusCode, failureDetail(await readShortText(response.body)));
      }
      return { body: response.body, bytes: lengthOf(response.headers['content-length']) };
    } catch (error) {
      throw failureOf(error);
    }
  }
}

function recordSpans(
  header: unknown,
  { startedAt, path, call }: { startedAt: number; path: string; call: AgentServerCall },
): void {
  const measured = agentServerSpans(header, {
    earliest: currentSpanBegunAt() ?? startedAt,
    startedAt,
    endedAt: Date.now(),
    name: callName(path, call),
  });
  // What happened before a poll counts as well.
  recordAgentServerSpans(
    call.isPoll === true
      ? measured.filter(({ kind, parent }) => kind !== 'server' && parent === null)
      : measured,
  );
}

function callSpan(path: string, call: AgentServerCall): SpanStart {
  const { method = 'GET' } = call;
  return { name: callName(path, call), kind: SpanKind.CLIENT, attributes: { 'http.request.method': method } };
}

/** `POST /api/conversations/:id/run`: ids are replaced, to keep the number of names small. */
function callName(path: string, { method = 'GET' }: AgentServerCall): string {
  return `${method} ${path.replaceAll(ID_IN_PATH, '/:id')}`;
}

function lengthOf(header: string | string[] | undefined): number | null {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

async function readShortText(body: ResponseBody): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_SHORT_BYTES) {
      return '';
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function failureOf(error: unknown): AgentServerError {
  return error instanceof AgentServerError
    ? error
    : new AgentServerError(null, reasonOf(error), { cause: error });
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return 'the request timed out';
  }
  return textHead(errorWithCauses(error), MAX_DETAIL);
}

/**
 * Clipped. The stock server repeats requests that it does not understand, keys included, so only locations and
 * messages are taken from such a response.
 */
export function failureDetail(text: string): string {
  const parsed = parseJson(text);
  if (parsed === undefined) {
    // Not every failure is JSON; then the text is the only detail.
    return textHead(text, MAX_DETAIL) || NO_REASON;
  }
  const detail = jsonText(parsed, 'detail') ?? jsonList(parsed, 'detail').map(describeProblem).join('; ');
  return textHead(detail, MAX_DETAIL) || NO_REASON;
}

function describeProblem(problem: unknown): string {
  const location = jsonList(problem, 'loc').filter(
    (part) => typeof part === 'string' || typeof part === 'number',
  );
  return `${location.join('.') || 'request'}: ${jsonText(problem, 'msg') ?? NO_REASON}`;
}
