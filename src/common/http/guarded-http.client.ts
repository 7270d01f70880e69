import { lookup } from 'node:dns/promises';
import type { Dispatcher } from 'undici';
import { AddressRefusedError, bypassesProxy, isPublicHostName, type ResolveHost } from './address-rules.js';
import type { GuardedAgents } from './guarded-agents.js';
import type { HostAllowlist } from './host-allowlist.js';
import { ACCEPT_ENCODING, bufferedResponse } from './response-body.js';
import { UpstreamError } from './upstream-error.js';

interface GuardedHttpOptions {
  /** Hosts and origins the operator trusts; everything else must resolve to public addresses only. */
  allowlist: HostAllowlist;
  /** Largest accepted answer in bytes, both on the wire and unpacked. */
  maxResponseBytes: number;
  /** Deadline of every request in milliseconds. */
  timeoutMs: number;
  /**
   * Proxy for https addresses (`HTTPS_PROXY`), reached with CONNECT; `noProxy` has the form of `NO_PROXY`.
   * The proxy resolves names, so the address check is the proxy's. Allowlisted loopback is never proxied.
   */
  proxy?: { url: string; noProxy?: string };
  /** Name resolution; the operating system's by default. */
  lookup?: ResolveHost;
}

export interface GuardedRequestInit {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  /** An earlier deadline than the client's own, in milliseconds. */
  timeoutMs?: number;
}

const MAX_REDIRECTS = 2;
const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * HTTP to servers whose address comes from users. Unless an address is allowlisted it must be https, a public
 * host name (no IP literal), and resolve to public addresses only; the checked address is the one dialled.
 * Answers are read completely within the deadline and the size cap; at most two redirects are followed, to the
 * same origin. Connections are kept alive and shared by all callers, one request at a time on each.
 */
export class GuardedHttpClient {
  private agents: Promise<GuardedAgents> | null = null;
  private closed = false;
  private readonly underWay = new Set<Promise<Response>>();

  /** @throws Error for the address of a proxy that is none */
  constructor(private readonly options: GuardedHttpOptions) {
    const url = options.proxy?.url;
    if (url !== undefined && !(/^https?:\/\//i.test(url) && URL.canParse(url))) {
      // The address may hold the proxy's password, so it is not repeated.
      throw new Error('The proxy address is not an http or https URL.');
    }
  }

  /**
   * Sends a request and answers with the whole body in memory, so `text()` and `json()` cannot fail late.
   * Any status is an answer. Members of `init` that are not listed in its type are ignored.
   *
   * @throws UpstreamError whose message and cause hold no path, query or header.
   */
  async fetch(url: string | URL, init: GuardedRequestInit = {}): Promise<Response> {
    const target = this.checkedTarget(url);
    const exchange = createExchange(init);
    const answer = runWithDeadline(
      Math.min(init.timeoutMs ?? Infinity, this.options.timeoutMs),
      init.signal,
      target.origin,
      (signal) => this.followRedirects(target, exchange, signal),
    );
    this.underWay.add(answer);
    try {
      return await answer;
    } catch (error) {
      throw toUpstreamError(error, target.origin);
    } finally {
      this.underWay.delete(answer);
    }
  }

  /**
   * Waits for requests under way (their deadlines bound it), then cuts every connection. Requests sent from
   * then on fail with `network`.
   */
  async close(): Promise<void> {
    await Promise.allSettled(this.underWay);
    this.closed = true;
    // Not `close`: it would also wait for connections that requests past their deadline have left half open.
    await (await this.agents)?.destroy();
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
      const answer = await dispatcher.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method: exchange.method,
        headers: exchange.headers,
        body: exchange.body,
        signal,
      });
      const location = REDIRECT_STATUSES.has(answer.statusCode) ? single(answer.headers.location) : '';
      if (location === '') {
        return await bufferedResponse(answer, exchange.method, this.options.maxResponseBytes, url.origin);
      }
      await answer.body.dump({ limit: this.options.maxResponseBytes, signal });
      const next = URL.canParse(location, url.href) ? new URL(location, url) : null;
      if (
        !next ||
        next.origin !== start.origin ||
        next.username !== '' ||
        next.password !== '' ||
        hops >= MAX_REDIRECTS
      ) {
        throw new UpstreamError('redirect', start.origin);
      }
      exchange = redirectedExchange(exchange, answer.statusCode);
      url = next;
    }
  }

  private async dispatcherFor(url: URL): Promise<Dispatcher> {
    if (this.closed) {
      throw new UpstreamError('network', url.origin);
    }
    this.agents ??= this.openAgents();
    const { open, trusted, proxied } = await this.agents;
    const isTrusted = this.options.allowlist.allows(url);
    const direct = isTrusted ? trusted : open;
    if (!proxied || url.protocol !== 'https:' || (isTrusted && isLoopbackName(url.hostname))) {
      return direct;
    }
    return bypassesProxy(url, this.options.proxy?.noProxy ?? '') ? direct : proxied;
  }

  private async openAgents(): Promise<GuardedAgents> {
    const { GuardedAgents: Agents } = await import('./guarded-agents.js');
    return new Agents(this.options.lookup ?? resolveHost, this.options.proxy?.url ?? null);
  }
}

async function resolveHost(hostname: string): ReturnType<ResolveHost> {
  return await lookup(hostname, { all: true });
}

function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function single(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** Keeps name and code of what went wrong; the message and fields of transport errors can hold parts of the exchange. */
function toUpstreamError(error: unknown, origin: string): UpstreamError {
  if (error instanceof UpstreamError) {
    return error;
  }
  if (error instanceof AddressRefusedError) {
    return new UpstreamError('refused', origin);
  }
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return new UpstreamError('network', origin, {
    cause: new Error(typeof code === 'string' ? code : 'connection failed'),
  });
}

/** What is sent, apart from where to. */
interface HttpExchange {
  method: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string | null;
}

/**
 * Fills in what every request has. The caller's `host` is dropped (the address alone decides who is asked) and
 * so is its `accept-encoding` (the client decodes).
 */
function createExchange(
  init: { method?: string; headers?: Record<string, string>; body?: string | null } = {},
): HttpExchange {
  const headers: Record<string, string> = { 'user-agent': 'slipway', accept: '*/*' };
  for (const [name, value] of Object.entries(init.headers ?? {})) {
    headers[name.toLowerCase()] = value;
  }
  delete headers.host;
  headers['accept-encoding'] = ACCEPT_ENCODING;
  return { method: (init.method ?? 'GET').toUpperCase(), headers, body: init.body ?? null };
}

/**
 * What to send after a redirect to the same origin: 303, and 301 or 302 after a POST, go on as a GET without
 * a body (https://fetch.spec.whatwg.org/#http-redirect-fetch).
 */
function redirectedExchange(exchange: HttpExchange, status: number): HttpExchange {
  const isPostMoved = (status === 301 || status === 302) && exchange.method === 'POST';
  const isSeeOther = status === 303 && exchange.method !== 'GET' && exchange.method !== 'HEAD';
  if (!isPostMoved && !isSeeOther) {
    return exchange;
  }
  const headers = Object.fromEntries(
    Object.entries(exchange.headers).filter(([name]) => !name.startsWith('content-')),
  );
  return { method: 'GET', headers, body: null };
}

/**
 * Runs work until it settles, `timeoutMs` have passed or the caller's signal aborts, whichever is first. The
 * work gets a signal that aborts in the latter cases, and is not waited for then: a connection that is still
 * being opened may not react to it at once.
 *
 * @throws UpstreamError `timeout`, or what the work throws.
 */
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
