import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type AgentSpanEntry,
  type AgentSpanName,
  MAX_AGENT_SPANS,
  SPANS_HEADER,
} from '@slipway/agent-protocol/server.js';

const NO_PARENT = -1;
const REQUEST = 0;

interface ActiveRequest {
  traceId: string;
  arrivedAt: number;
  entries: AgentSpanEntry[];
}

const places = new AsyncLocalStorage<{ request: ActiveRequest; index: number }>();
/** The start of the process belongs to the first trace that asks. */
let isStartReported = false;

/** A request with a `traceparent` gets a response header that says how long each part took. Others cost nothing. */
export function handleTraced(
  request: IncomingMessage,
  response: ServerResponse,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): void {
  const traceId = parseTraceparent(request.headers[TRACEPARENT_HEADER]);
  if (traceId === null) {
    handle(request, response);
    return;
  }
  const active: ActiveRequest = {
    traceId,
    arrivedAt: performance.now(),
    entries: [['request', NO_PARENT, 0, 0, 0]],
  };
  if (!isStartReported) {
    isStartReported = true;
    const lastedUs = microseconds(active.arrivedAt);
    active.entries.push(['agent server start', NO_PARENT, -lastedUs, lastedUs, 0]);
  }
  addSpansHeader(response, active);
  places.run({ request: active, index: REQUEST }, handle, request, response);
}

export async function agentSpan<T>(name: AgentSpanName, work: () => Promise<T>): Promise<T> {
  const place = places.getStore();
  if (place === undefined || place.request.entries.length >= MAX_AGENT_SPANS) {
    return await work();
  }
  const { request, index } = place;
  const startedAt = performance.now();
  const entry: AgentSpanEntry = [name, index, microseconds(startedAt - request.arrivedAt), 0, 0];
  const ownIndex = request.entries.push(entry) - 1;
  try {
    return await places.run({ request, index: ownIndex }, work);
  } catch (error) {
    entry[4] = 1;
    throw error;
  } finally {
    entry[3] = microseconds(performance.now() - startedAt);
  }
}

/** Adds the header in `writeHead`, through which all code that responds writes its headers. */
function addSpansHeader(response: ServerResponse, { arrivedAt, entries }: ActiveRequest): void {
  const writeHead = response.writeHead.bind(response);
  const told = (...args: Parameters<typeof writeHead>): ServerResponse => {
    const [request] = entries;
    if (request !== undefined && !response.headersSent) {
      request[3] = microseconds(performance.now() - arrivedAt);
      request[4] = args[0] >= 500 ? 1 : 0;
      response.setHeader(SPANS_HEADER, JSON.stringify(entries));
    }
    return writeHead(...args);
  };
  Object.defineProperty(response, 'writeHead', { value: told, configurable: true, writable: true });
}

function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000);
}

const TRACEPARENT_HEADER = 'traceparent';
/** Later versions may append fields, which are not read; a longer header is ignored. */
const MAX_LENGTH = 256;
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** https://www.w3.org/TR/trace-context/; null for an invalid header, which continues no trace. */
export function parseTraceparent(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) {
    return null;
  }
  const [, version, traceId = null, more] = FORM.exec(value) ?? [];
  return version === '00' && more !== undefined ? null : traceId;
}

/** Writes one line of JSON to standard error. Fields never hold a secret, a user's text or an address with a query. */
export function log(
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Record<string, unknown> = {},
): void {
  const traceId = places.getStore()?.request.traceId;
  const line = {
    time: new Date().toISOString(),
    level,
    message,
    ...fields,
    ...(traceId !== undefined && { trace_id: traceId }),
  };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

/** `TypeError`, `AbortError`, …: for places where the message of an error may hold a secret. */
export function errorName(error: unknown): string {
  return typeof error === 'object' && error !== null && 'name' in error ? String(error.name) : 'Error';
}

/** Measures how long the server has been idle. Requests that only read state do not count as activity. */
export class ActivityTracker {
  readonly #startedAt = performance.now();
  readonly #isBusy: () => boolean;
  #last = this.#startedAt;

  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy;
  }

  touch(): void {
    this.#last = performance.now();
  }

  uptimeSeconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  idleSeconds(): number {
    if (this.#isBusy()) {
      this.touch();
    }
    return (performance.now() - this.#last) / 1000;
  }
}
