import { delimiter } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { HttpMethod, KubeConfig, RequestContext } from '@kubernetes/client-node';
import pLimit from 'p-limit';
import { Agent, type Dispatcher, request } from 'undici';
import { type ClientOptions, WebSocket } from 'ws';
import { inTime } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonLines, parseJson, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
const MAX_RETRY_AFTER_MS = 30_000;
const TEMPORARY_STATUSES = new Set([408, 429, 500, 502, 503, 504]);
/** An API server reads its accounts and roles within a few seconds of its start. */
const SETTLING_MS = 30_000;

/** A null status means that there was no usable response. */
export class ApiServerError extends Error {
  constructor(
    message: string,
    readonly status: number | null,
    /** Kubernetes' reason, such as `NotFound` or `AlreadyExists`. */
    readonly reason: string | null,
    readonly retryAfterMs: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ApiServerError';
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    // Another client changed the object; an object that already exists has another reason.
    const isConflict = this.status === 409 && this.reason === 'Conflict';
    return this.status === null || TEMPORARY_STATUSES.has(this.status) || isConflict;
  }
}

/** Remembers outages: an API server that has just started answers 401 and 403 until it has read accounts and roles. */
export class ApiServerOutages {
  private outageAt = -Infinity;

  get lastAt(): number {
    return this.outageAt;
  }

  /** @param now milliseconds of a clock that never jumps */
  judge(error: unknown, now: number = performance.now()): ApiServerError {
    const failure = asApiServerError(error);
    const { status, message, reason, retryAfterMs } = failure;
    if ((status === 401 || status === 403) && now < this.outageAt + SETTLING_MS) {
      const detail = `it has just started, and does not know its accounts and roles yet: ${message}`;
      return new ApiServerError(detail, null, reason, retryAfterMs, { cause: failure });
    }
    if (status === null || status >= 500) {
      this.outageAt = now;
    }
    return failure;
  }
}

export function refusal(status: number, headers: IncomingHttpHeaders, body: string): ApiServerError {
  const parsed = parseJson(body);
  const seconds = Number(headers['retry-after'] ?? jsonNumber(parsed, 'details', 'retryAfterSeconds') ?? NaN);
  return new ApiServerError(
    jsonText(parsed, 'message') ?? (textHead(body.trim(), 500) || `it answered ${status}`),
    status,
    jsonText(parsed, 'reason'),
    Number.isFinite(seconds) ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : null,
  );
}

/** Differs between callers that failed together. */
export function pauseBefore(attempt: number, failure: ApiServerError | null): number {
  const grown = Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS);
  return failure?.retryAfterMs ?? randomInt(Math.floor(grown / 2), grown + 1);
}

function asApiServerError(error: unknown): ApiServerError {
  return error instanceof ApiServerError
    ? error
    : new ApiServerError(errorMessage(error), null, null, null, { cause: error });
}

/** Applies until the headers of a response have arrived, and to each pause in its body. */
const RESPONSE_TIMEOUT_MS = 15_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const DEFAULT_PATIENCE_MS = 10_000;
/** Allows for a page of objects. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const CONTENT_TYPES = {
  json: 'application/json',
  merge: 'application/merge-patch+json',
  patch: 'application/json-patch+json',
} as const;

export interface ApiCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | boolean> | undefined;
  body?: unknown;
  as?: keyof typeof CONTENT_TYPES;
  signal?: AbortSignal | undefined;
  /** How long it is retried after temporary failures; all our requests can safely be sent twice. */
  patienceMs?: number | undefined;
}

function withoutCredentials(): Error {
  return new Error(`they were not there after ${RESPONSE_TIMEOUT_MS / 1000} s`);
}

/** The library makes a dispatcher for each request; the first one is kept for all, and with it its connections. */
class ClusterConfig extends KubeConfig {
  private kept: Dispatcher | null = null;
  /** Else each of the requests that wait for credentials would run the plugin of a kubeconfig. */
  private readonly oneByOne = pLimit(1);

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await this.authenticate(() => super.applySecurityAuthentication(context));
    this.kept ??= context.getDispatcher() ?? new Agent();
    context.setDispatcher(this.kept);
  }

  override async applyToHTTPSOptions(options: ClientOptions): Promise<void> {
    await this.authenticate(() => super.applyToHTTPSOptions(options));
  }

  /** A plugin may ask the operator to log in, and wait for that. */
  private async authenticate(apply: () => Promise<void>): Promise<void> {
    try {
      await inTime(RESPONSE_TIMEOUT_MS, this.oneByOne(apply), withoutCredentials);
    } catch (cause) {
      const problem = `no credentials for it can be had: ${errorMessage(cause).trim()}`;
      throw new ApiServerError(problem, null, null, null, { cause });
    }
  }

  /** Closes once its open requests have ended. */
  async retire(): Promise<void> {
    await this.kept?.close();
  }

  async close(): Promise<void> {
    await this.kept?.destroy();
  }
}

/** Requests with the credentials and the connections of the official client; deadlines and repetitions are ours. */
export class ApiServer {
  private loaded: ClusterConfig | null = null;
  private readonly outages = new ApiServerOutages();

  /** @param kubeconfig path of one or several files, as `kubectl` takes them; null: the pod's service account */
  constructor(private readonly kubeconfig: string | null) {}

  /** @throws ApiServerError where there is no cluster */
  private get config(): ClusterConfig {
    this.loaded ??= readConfig(this.kubeconfig);
    return this.loaded;
  }

  get ownNamespace(): string | null {
    return this.config.getContextObject(this.config.getCurrentContext())?.namespace ?? null;
  }

  /** Time of `performance.now()` in milliseconds; -Infinity when there was no outage. */
  get lastOutageAt(): number {
    return this.outages.lastAt;
  }

  get address(): string {
    return this.config.getCurrentCluster()?.server ?? '';
  }

  /** Retries after temporary failures. @throws ApiServerError; the signal's reason */
  async call(path: string, call: ApiCall = {}): Promise<unknown> {
    const endsAt = performance.now() + (call.patienceMs ?? DEFAULT_PATIENCE_MS);
    for (let attempt = 0; ; attempt++) {
      call.signal?.throwIfAborted();
      try {
        return parseResponse(await this.text(path, call));
      } catch (error) {
        call.signal?.throwIfAborted();
        const failure = this.outages.judge(error);
        const pauseMs = pauseBefore(attempt, failure);
        if (!failure.isTemporary || performance.now() + pauseMs > endsAt) {
          throw failure;
        }
        await delay(pauseMs, undefined, call.signal && { signal: call.signal });
      }
    }
  }

  /** Like `call`, but null when there is no such object. */
  async find(path: string, call: ApiCall = {}): Promise<unknown> {
    try {
      return await this.call(path, call);
    } catch (error) {
      if (error instanceof ApiServerError && error.status === 404 && error.reason === 'NotFound') {
        return null;
      }
      throw error;
    }
  }

  async text(path: string, call: ApiCall = {}): Promise<string> {
    return await readText(await this.open(path, call));
  }

  /** The values of a response that has one in each line. @throws ApiServerError; the signal's reason */
  async *stream(path: string, query: ApiCall['query'], signal: AbortSignal): AsyncGenerator<unknown, void> {
    try {
      yield* jsonLines(await this.open(path, { query, signal }, 0));
    } catch (error) {
      signal.throwIfAborted();
      throw this.outages.judge(error);
    }
  }

  /** Opens a WebSocket, paused until the caller listens and calls `resume()`. @throws ApiServerError */
  async webSocket(
    path: string,
    protocols: string[],
    query: ApiCall['query'] = {},
    signal?: AbortSignal,
  ): Promise<WebSocket> {
    try {
      return await this.withCredentials((config) => this.connect(config, path, protocols, query, signal));
    } catch (error) {
      signal?.throwIfAborted();
      throw this.outages.judge(error);
    }
  }

  async close(): Promise<void> {
    await this.loaded?.close();
    this.loaded = null;
  }

  /** Sends it again where credentials are refused: they expire, and other programs replace their file. */
  private async withCredentials<T>(send: (config: ClusterConfig) => Promise<T>): Promise<T> {
    const { config } = this;
    try {
      return await send(config);
    } catch (error) {
      if (!(error instanceof ApiServerError) || error.status !== 401) {
        throw error;
      }
      // Another request that was refused may have read them by now.
      if (this.loaded === config) {
        this.loaded = null;
        void config.retire();
      }
      return await send(this.config);
    }
  }

  private async open(
    path: string,
    call: ApiCall,
    bodyTimeout?: number,
  ): Promise<Dispatcher.ResponseData['body']> {
    return await this.withCredentials((config) => this.send(config, path, call, bodyTimeout));
  }

  private async send(
    config: ClusterConfig,
    path: string,
    { method = 'GET', query, body, as = 'json', signal }: ApiCall,
    bodyTimeout = RESPONSE_TIMEOUT_MS,
  ): Promise<Dispatcher.ResponseData['body']> {
    const context = new RequestContext(this.url(path, query).href, HttpMethod[method]);
    await config.applySecurityAuthentication(context);
    const response = await request(context.getUrl(), {
      method,
      dispatcher: context.getDispatcher(),
      signal,
      headers: {
        ...context.getHeaders(),
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': CONTENT_TYPES[as] }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      headersTimeout: RESPONSE_TIMEOUT_MS,
      bodyTimeout,
    });
    const { statusCode, headers } = response;
    if (statusCode < 200 || statusCode > 299) {
      throw refusal(statusCode, headers, await readText(response.body));
    }
    return response.body;
  }

  private async connect(
    config: ClusterConfig,
    path: string,
    protocols: string[],
    query: ApiCall['query'],
    signal: AbortSignal | undefined,
  ): Promise<WebSocket> {
    const options: ClientOptions = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, perMessageDeflate: false };
    await config.applyToHTTPSOptions(options);
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
    const socket = new WebSocket(this.url(path, query).href.replace(/^http/, 'ws'), protocols, options);
    const abort = (): void => socket.terminate();
    signal?.addEventListener('abort', abort, { once: true });
    socket.once('open', () => {
      // The first frames may have arrived with the response, before a listener exists.
      socket.pause();
      resolve(socket);
    });
    socket.once('unexpected-response', (_request, response) => {
      const { statusCode = 0, headers } = response;
      text(response).then((body) => reject(refusal(statusCode, headers, body)), reject);
    });
    socket.once('error', reject);
    try {
      return await promise;
    } catch (error) {
      socket.on('error', () => undefined);
      socket.terminate();
      throw error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  private url(path: string, query: ApiCall['query'] = {}): URL {
    const url = new URL(`${this.address.replace(/\/+$/, '')}${path}`);
    Object.entries(query).forEach(([name, value]) => url.searchParams.set(name, String(value)));
    return url;
  }
}

function readConfig(kubeconfig: string | null): ClusterConfig {
  const config = new ClusterConfig();
  try {
    if (kubeconfig === null) {
      config.loadFromCluster();
    } else {
      const [first = '', ...others] = kubeconfig.split(delimiter).filter(Boolean);
      config.loadFromFile(first);
      for (const file of others) {
        const other = new KubeConfig();
        other.loadFromFile(file);
        config.mergeConfig(other, true);
      }
    }
  } catch (cause) {
    const problem = `KUBECONFIG cannot be read: ${errorMessage(cause)}`;
    throw new ApiServerError(problem, 0, 'Configuration', null, { cause });
  }
  if (!URL.canParse(config.getCurrentCluster()?.server ?? '')) {
    const problem =
      kubeconfig === null
        ? 'there is no cluster: set KUBECONFIG, or run the service in a pod with a service account'
        : 'the current context of KUBECONFIG names no cluster';
    throw new ApiServerError(problem, 0, 'Configuration');
  }
  return config;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) {
      throw new ApiServerError('its response is too large', 0, null);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseResponse(body: string): unknown {
  const parsed = parseJson(body);
  if (parsed === undefined) {
    // Half a response, or the page of a proxy.
    throw new ApiServerError('its response is not JSON', null, null);
  }
  return parsed;
}
