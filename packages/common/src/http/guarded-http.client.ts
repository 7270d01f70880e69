import { SpanKind } from '@opentelemetry/api';
import type { Dispatcher } from 'undici';
import { connectionProblem, errorCode } from '../errors/error-message.js';
import { AddressRefusedError, bypassesProxy, isPublicHostName, type ResolveHost } from './address-rules.js';
import type { HostAllowlist } from './host-allowlist.js';
import { type SpanStart, traced } from '../spans.js';
import type { GuardedAgents } from './guarded-agents.js';
import { OriginShares, type RequestOwner } from './origin-shares.js';
import { ACCEPT_ENCODING, bodylessResponse, bufferedResponse, tailResponse } from './response-body.js';
import { UpstreamError } from './upstream-error.js';

const MAX_REDIRECTS = 2;
/** A redirect with a larger body costs its connection. */
const MAX_REDIRECT_BYTES = 16 * 1024;
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface GuardedHttpOptions {
  /** Everything else must resolve to public addresses only. */
  allowlist: HostAllowlist;
  maxResponseBytes: number;
  timeoutMs: number;
  /** Proxy for https (CONNECT). It resolves names itself, so it has to check addresses. */
  proxy?: { url: string; noProxy?: string } | null;
  /** Set by callers that limit their requests in other ways. */
  connectionsPerOrigin?: number;
  lookup?: ResolveHost;
  /** Whose share a request takes its connection from that names no holder. */
  currentHolder?: () => string | undefined;
}

export interface GuardedRequestInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array | null;
  signal?: AbortSignal;
  /** Shorter than the client's own deadline. */
  timeoutMs?: number;
  /** Takes the connection from this user's share; by default the client's `currentHolder`. */
  holder?: string;
  /** Requests of one piece of work wait for each other where the share is used up. */
  work?: object;
  /** Keeps only the last bytes of a body of any size and follows redirects to storage without credentials, as for a log. */
  tailBytes?: number;
  /** The status is the answer, also that of a redirect, whatever becomes of the body. */
  statusOnly?: boolean;
}

interface HttpExchange {
  method: string;
  headers: Record<string, string>;
  body: string | Uint8Array | null;
  tailBytes: number | null;
  statusOnly: boolean;
}

/**
 * HTTP to addresses that users give: https to public names with public addresses only, unless allowlisted; the checked
 * address is dialled. Time and size are bounded, redirects but those of logs stay within the origin, and each user has a
 * share of its connections.
 */
export class GuardedHttpClient {
  private agents: Promise<GuardedAgents> | null = null;
  private readonly shares = new OriginShares();
  private closed = false;
  private readonly inFlight = new Set<Promise<Response>>();

  /** @throws Error when the proxy's address is not an http or https URL */
  constructor(private readonly options: GuardedHttpOptions) {
    const url = options.proxy?.url;
    if (url !== undefined && !(/^https?:\/\//i.test(url) && URL.canParse(url))) {
      // The address may hold the proxy's password, so it is not repeated.
      throw new Error('The proxy address is not an http or https URL.');
    }
  }

  /** The whole body is in memory, so `json()` cannot fail late. @throws UpstreamError without path, query or header */
  async fetch(url: string | URL, init: GuardedRequestInit = {}): Promise<Response> {
    const target = this.checkedTarget(url);
    const exchange = createExchange(init);
    return traced(requestSpan(exchange.method, target), async (span) => {
      const response = await this.send(target, exchange, init);
      span?.setAttribute('http.response.status_code', response.status);
      return response;
    });
  }

  private async send(target: URL, exchange: HttpExchange, init: GuardedRequestInit): Promise<Response> {
    const pending = runWithDeadline(
      Math.min(init.timeoutMs ?? Infinity, this.options.timeoutMs),
      init.signal,
      target.origin,
      (signal) =>
        this.shares.run(target.origin, this.ownerOf(init), signal, () =>
          this.followRedirects(target, exchange, signal),
        ),
    );
    this.inFlight.add(pending);
    try {
      return await pending;
    } catch (error) {
      throw toUpstreamError(error, target.origin);
    } finally {
      this.inFlight.delete(pending);
    }
  }

  /** Waits for requests in flight, then closes every connection; later requests fail with `network`. */
  async close(): Promise<void> {
    await Promise.allSettled(this.inFlight);
    this.closed = true;
    // Not `close`, which would also wait for connections that requests past their deadline left half open.
    await (await this.agents)?.destroy();
  }

  private ownerOf({ holder, work }: GuardedRequestInit): RequestOwner {
    return { holder: holder ?? this.options.currentHolder?.() ?? '', work: work ?? {} };
  }

  private checkedTarget(address: string | URL): URL {
    const text = String(address);
    if (!URL.canParse(text)) {
      throw new UpstreamError('refused', 'an invalid address');
    }
    const url = new URL(text);
    const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
    const isCallable =
      this.options.allowlist.allows(url) || (url.protocol === 'https:' && isPublicHostName(url.hostname));
    if (!isWeb || !isCallable || url.username !== '' || url.password !== '') {
      throw new UpstreamError('refused', url.origin);
    }
    return url;
  }

  private async followRedirects(start: URL, first: HttpExchange, signal: AbortSignal): Promise<Response> {
    let url = start;
    let exchange = first;
    for (let hops = 0; ; hops += 1) {
      const dispatcher = await this.dispatcherFor(url);
      const response = await dispatcher.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: exchange.method,
        headers: exchange.headers,
        body: exchange.body,
        signal,
        // A kept connection may be closing, and what is lost on it is not sent again here.
        reset: exchange.statusOnly,
      });
      if (response.statusCode > 599) {
        // `Response` has no such status.
        response.body.destroy();
        throw new UpstreamError('malformed', url.origin);
      }
      if (exchange.statusOnly) {
        return await bodylessResponse(response, this.options.maxResponseBytes);
      }
      const location = REDIRECT_STATUSES.has(response.statusCode) ? single(response.headers.location) : '';
      if (location === '') {
        return exchange.tailBytes === null
          ? await bufferedResponse(response, exchange.method, this.options.maxResponseBytes, url.origin)
          : await tailResponse(response, exchange.tailBytes, url.origin);
      }
      await response.body.dump({ limit: MAX_REDIRECT_BYTES, signal });
      const next = URL.canParse(location, url.href) ? new URL(location, url) : null;
      if (
        !next ||
        (next.origin !== start.origin && exchange.tailBytes === null) ||
        next.username !== '' ||
        next.password !== '' ||
        hops >= MAX_REDIRECTS
      ) {
        throw new UpstreamError('redirect', start.origin);
      }
      exchange = redirectedExchange(exchange, response.statusCode);
      if (next.origin !== start.origin) {
        exchange = { ...createExchange(), tailBytes: exchange.tailBytes };
      }
      url = this.checkedTarget(next);
    }
  }

  private async dispatcherFor(url: URL): Promise<Dispatcher> {
    if (this.closed) {
      throw new UpstreamError('network', url.origin);
    }
    this.agents ??= this.openAgents();
    const { direct, proxied } = await this.agents;
    const reach = this.options.allowlist.reachOf(url);
    const dispatcher = direct[reach];
    const isProxied = url.protocol === 'https:' && !bypassesProxy(url, this.options.proxy?.noProxy ?? '');
    return isProxied ? (proxied ?? dispatcher) : dispatcher;
  }

  private async openAgents(): Promise<GuardedAgents> {
    const { GuardedAgents: Agents } = await import('./guarded-agents.js');
    const { lookup, proxy, connectionsPerOrigin } = this.options;
    return new Agents(lookup, proxy?.url ?? null, connectionsPerOrigin);
  }
}

/** Does not wait for aborted work: a connection that is being opened may not react at once. */
async function runWithDeadline<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  origin: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interruption = Promise.withResolvers<never>();
  const interrupt = (): void => {
    const error = new UpstreamError('timeout', origin);
    controller.abort(error);
    interruption.reject(error);
  };
  if (caller?.aborted) {
    throw new UpstreamError('timeout', origin);
  }
  const timer = setTimeout(interrupt, timeoutMs);
  caller?.addEventListener('abort', interrupt, { once: true });
  try {
    return await Promise.race([work(controller.signal), interruption.promise]);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener('abort', interrupt);
  }
}

/** Drops `host`, since the address alone decides who is called, and `accept-encoding`, since the client decodes. */
function createExchange(init: GuardedRequestInit = {}): HttpExchange {
  const headers: Record<string, string> = { 'user-agent': 'slipway', accept: '*/*' };
  for (const [name, value] of Object.entries(init.headers ?? {})) {
    headers[name.toLowerCase()] = value;
  }
  delete headers.host;
  const { method = 'GET', body = null, tailBytes = null, statusOnly = false } = init;
  headers['accept-encoding'] = tailBytes === null ? ACCEPT_ENCODING : 'identity';
  return { method: method.toUpperCase(), headers, body, tailBytes, statusOnly };
}

/** 303, and 301 or 302 after a POST, continue as a GET (https://fetch.spec.whatwg.org/#http-redirect-fetch). */
function redirectedExchange(exchange: HttpExchange, status: number): HttpExchange {
  const isPostMoved = (status === 301 || status === 302) && exchange.method === 'POST';
  const isSeeOther = status === 303 && exchange.method !== 'GET' && exchange.method !== 'HEAD';
  if (!isPostMoved && !isSeeOther) {
    return exchange;
  }
  const headers = Object.fromEntries(
    Object.entries(exchange.headers).filter(([name]) => !name.startsWith('content-')),
  );
  return { ...exchange, method: 'GET', headers, body: null };
}

/** Keeps only the code, or our own words: message and fields of transport errors can hold parts of the request. */
function toUpstreamError(error: unknown, origin: string): UpstreamError {
  if (error instanceof UpstreamError) {
    return error;
  }
  if (error instanceof AddressRefusedError) {
    return new UpstreamError('refused', origin);
  }
  const advice = connectionProblem(error);
  return new UpstreamError('network', origin, {
    cause: new Error(advice ?? errorCode(error) ?? 'connection failed'),
    advice,
  });
}

/** Leaves out the path, which may hold keys, and does not pass the trace on to a foreign host. */
function requestSpan(method: string, { hostname, port, protocol }: URL): SpanStart {
  return {
    name: method,
    kind: SpanKind.CLIENT,
    attributes: {
      'http.request.method': method,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    },
  };
}

function single(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}
