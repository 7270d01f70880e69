import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Next } from '@slipway/common/requests/middleware.js';

/**
 * Whether an `If-None-Match` header names this entity tag (RFC 9110 section 13.1.2; weak comparison). Other cache headers
 * of the request do not matter, since the tag was computed for this very response.
 */
export function ifNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) {
    return false;
  }
  const tags: string[] = header.match(/"[^"]*"/g) ?? [];
  return header.trim() === '*' || tags.includes(etag);
}

/** What browsers are told about responses that are data and never pages. */
const HEADERS = new Map([
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Referrer-Policy', 'no-referrer'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
]);

/** Security headers of JSON responses. Helmet's full set is for pages, and costs more than some of the responses. */
export function securityHeadersMiddleware(
  _request: IncomingMessage,
  response: ServerResponse,
  next: Next,
): void {
  response.setHeaders(HEADERS);
  next();
}
