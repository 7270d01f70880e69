import { ACCEPT_ENCODING } from './read-body.js';

/** What is sent, apart from where to. */
export interface HttpExchange {
  method: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string | null;
}

/**
 * Fills in what every request has. The caller's `host` is dropped (the address alone decides who is asked) and
 * so is its `accept-encoding` (the client decodes).
 */
export function createExchange(
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
export function redirectedExchange(exchange: HttpExchange, status: number): HttpExchange {
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
