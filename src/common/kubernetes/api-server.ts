import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { delimiter } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeConfig } from '@kubernetes/client-node';
import type { WebSocket } from 'ws';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { parseJson } from '@slipway/common/json-access.js';
import { ApiServerError, ApiServerOutages, pauseBefore, refusal } from './api-server-error.js';

/** Applies until the headers of a response have arrived, and again until its end. */
const RESPONSE_TIMEOUT_MS = 15_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;
const MAX_IDLE_CONNECTIONS = 8;
const DEFAULT_PATIENCE_MS = 10_000;
/** Allows for a page of objects. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const MAX_REFUSAL_BYTES = 64 * 1024;
const CONTENT_TYPES = { json: 'application/json', merge: 'application/merge-patch+json' } as const;

interface ApiCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  query?: Record<string, string | number | boolean>;
  body?: unknown;
  as?: keyof typeof CONTENT_TYPES;
  signal?: AbortSignal;
  /** How long it is retried after temporary failures; all our requests can safely be sent twice. */
  patienceMs?: number;
}

interface ApiTarget {
  url: URL;
  options: RequestOptions;
  proxy: HttpAgent | null;
}

/** The official library only reads the credentials: its clients open a connection per request, without deadlines. */
export class ApiServer {
  #config: Promise<KubeConfig> | null = null;
  #agent: HttpAgent | null = null;
  readonly #outages = new ApiServerOutages();

  /** @param kubeconfig path of one or several files, as `kubectl` takes them; null: the pod's service account */
  constructor(private readonly kubeconfig: string | null) {}

  async ownNamespace(): Promise<string | null> {
    const config = await this.#loadConfig();
    return config.getContextObject(config.getCurrentContext())?.namespace ?? null;
  }

  /** In milliseconds of `performance.now()`; -Infinity: never. */
  get lastOutageAt(): number {
    return this.#outages.lastAt;
  }

  async address(): Promise<string> {
    return (await this.#loadConfig()).getCurrentCluster()?.server ?? '';
  }

  /** Retries after temporary failures. @throws ApiServerError; the signal's reason */
  async call(path: string, call: ApiCall = {}): Promise<unknown> {
    const endsAt = performance.now() + (call.patienceMs ?? DEFAULT_PATIENCE_MS);
    for (let attempt = 0; ; attempt++) {
      call.signal?.throwIfAborted();
      try {
        return parseResponse(await this.#send(path, call));
      } catch (error) {
        call.signal?.throwIfAborted();
        const failure = this.#outages.judge(error);
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
      if (error instanceof ApiServerError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  async text(path: string, query: ApiCall['query'] = {}): Promise<string> {
    const { body } = await this.#send(path, { query });
    return body;
  }

  /** Calls `onData` for each part of a response. @throws ApiServerError; the signal's reason */
  async stream(
    path: string,
    query: NonNullable<ApiCall['query']>,
    onData: (text: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const response = await this.#open(path, { query, signal });
      if (response.statusCode !== 200) {
        throw refusal(response, await readBody(response, MAX_REFUSAL_BYTES));
      }
      response.setEncoding('utf8');
      for await (const text of response) {
        onData(String(text));
      }
    } catch (error) {
      signal.throwIfAborted();
      throw this.#outages.judge(error);
    }
  }

  /** Opens a WebSocket, paused until the caller listens and calls `resume()`. @throws ApiServerError */
  async webSocket(
    path: string,
    protocols: string[],
    query: ApiCall['query'] = {},
    signal?: AbortSignal,
  ): Promise<WebSocket> {
    const { WebSocket: Socket } = await import('ws');
    const { url, options, proxy } = await this.#target(path, query);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
    const socket = new Socket(url, protocols, {
      ...options,
      // An upgraded connection cannot be reused, so an agent is needed only to connect through a proxy.
      agent: proxy ?? false,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      perMessageDeflate: false,
    });
    const abort = (): void => socket.terminate();
    signal?.addEventListener('abort', abort, { once: true });
    socket.once('open', () => {
      // Its first frames may have arrived with the response, before a listener exists.
      socket.pause();
      resolve(socket);
    });
    socket.once('unexpected-response', (_request, response) => {
      readBody(response, MAX_REFUSAL_BYTES).then((body) => reject(refusal(response, body)), reject);
    });
    socket.once('error', reject);
    try {
      return await promise;
    } catch (error) {
      socket.on('error', () => undefined);
      socket.terminate();
      signal?.throwIfAborted();
      throw this.#outages.judge(error);
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = null;
  }

  async #send(path: string, call: ApiCall): Promise<{ body: string; isJson: boolean }> {
    const response = await this.#open(path, call);
    const status = response.statusCode ?? 0;
    const isRefused = status < 200 || status > 299;
    const body = await readBody(response, isRefused ? MAX_REFUSAL_BYTES : MAX_RESPONSE_BYTES);
    if (isRefused) {
      throw refusal(response, body);
    }
    return { body, isJson: String(response.headers['content-type']).includes('json') };
  }

  async #open(path: string, { method = 'GET', query, body, as, signal }: ApiCall): Promise<IncomingMessage> {
    const { url, options } = await this.#target(path, query);
    const text = body === undefined ? null : JSON.stringify(body);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = send(url, {
      ...options,
      agent: this.#agent ?? undefined,
      method,
      ...(signal && { signal }),
      headers: {
        ...Object.fromEntries(Object.entries(options.headers ?? {})),
        accept: 'application/json',
        ...(text !== null && {
          'content-type': CONTENT_TYPES[as ?? 'json'],
          'content-length': Buffer.byteLength(text),
        }),
      },
    });
    const timer = setTimeout(() => outgoing.destroy(new Error('it timed out')), RESPONSE_TIMEOUT_MS);
    outgoing.once('response', (response) => {
      clearTimeout(timer);
      resolve(response);
    });
    outgoing.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    outgoing.end(text);
    return await promise;
  }

  async #target(path: string, query: ApiCall['query'] = {}): Promise<ApiTarget> {
    const config = await this.#loadConfig();
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const cluster = config.getCurrentCluster();
    const url = new URL(`${cluster?.server.replace(/\/+$/, '') ?? ''}${path}`);
    for (const [name, value] of Object.entries(query)) {
      url.searchParams.set(name, String(value));
    }
    const { agent, ...withoutAgent } = options;
    // The library's own agent keeps no connection; where there is a proxy, that agent knows the way.
    const proxy = cluster?.proxyUrl && agent instanceof HttpAgent ? agent : null;
    this.#agent ??= proxy ?? keepAliveAgent(url, withoutAgent);
    return { url, options: withoutAgent, proxy };
  }

  async #loadConfig(): Promise<KubeConfig> {
    this.#config ??= this.#readConfig();
    try {
      return await this.#config;
    } catch (error) {
      this.#config = null;
      throw error;
    }
  }

  async #readConfig(): Promise<KubeConfig> {
    // Loaded late: it takes a while, and only some installations need it.
    const { KubeConfig: Config } = await import('@kubernetes/client-node');
    const config = new Config();
    try {
      if (this.kubeconfig === null) {
        config.loadFromCluster();
      } else {
        const [first = '', ...others] = this.kubeconfig.split(delimiter).filter(Boolean);
        config.loadFromFile(first);
        for (const file of others) {
          const other = new Config();
          other.loadFromFile(file);
          config.mergeConfig(other, true);
        }
      }
    } catch (error) {
      throw new ApiServerError(
        `KUBECONFIG cannot be read: ${errorMessage(error)}`,
        0,
        'Configuration',
        null,
        {
          cause: error,
        },
      );
    }
    if (!URL.canParse(config.getCurrentCluster()?.server ?? '')) {
      const problem =
        this.kubeconfig === null
          ? 'there is no cluster: set KUBECONFIG, or run the service in a pod with a service account'
          : 'the current context of KUBECONFIG names no cluster';
      throw new ApiServerError(problem, 0, 'Configuration');
    }
    return config;
  }
}

/** Idle connections do not keep the process alive. */
function keepAliveAgent(
  { protocol }: URL,
  { ca, cert, key, rejectUnauthorized, servername }: RequestOptions,
): HttpAgent {
  const options = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS, maxFreeSockets: MAX_IDLE_CONNECTIONS };
  return protocol === 'https:'
    ? new HttpsAgent({
        ...options,
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
        ...(servername !== undefined && { servername }),
      })
    : new HttpAgent(options);
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<string> {
  const timer = setTimeout(() => response.destroy(new Error('it timed out')), RESPONSE_TIMEOUT_MS);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > maxBytes) {
        throw new ApiServerError('its response is too large', response.statusCode ?? 0, null);
      }
      chunks.push(bytes);
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseResponse({ body }: { body: string }): unknown {
  const parsed = parseJson(body);
  if (parsed === undefined) {
    // Half a response, or the page of a proxy.
    throw new ApiServerError('its response is not JSON', null, null);
  }
  return parsed;
}
