import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import type { Next } from '@slipway/common/requests/json-body.js';

/** RFC 9110 section 13.1.2, weak comparison; other cache headers do not matter for a tag of this very response. */
export function ifNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) {
    return false;
  }
  const tags: string[] = header.match(/"[^"]*"/g) ?? [];
  return header.trim() === '*' || tags.includes(etag);
}

/** Answers 304 to a client that has this JSON already. */
export function answerJson({ headers }: Request, response: Response, json: string): void {
  const etag = `"${hash('sha256', json, 'base64url')}"`;
  response.setHeader('Cache-Control', 'private, no-cache');
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('ETag', etag);
  if (ifNoneMatch(headers['if-none-match'], etag)) {
    response.status(304).end();
    return;
  }
  response.end(json);
}

const HEADERS = new Map([
  // Caches take an answer to a key in a header of our own for one that all may have. What may be kept overrides this.
  ['Cache-Control', 'no-store'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Referrer-Policy', 'no-referrer'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
]);

/** Helmet's full set is for pages, and costs more than some of the responses. */
export function securityHeadersMiddleware(
  _request: IncomingMessage,
  response: ServerResponse,
  next: Next,
): void {
  response.setHeaders(HEADERS);
  next();
}

/** Whether `Accept` names a media type; wildcards do not, and neither does `q=0`. */
export function namesMediaType(accept: string | undefined, mediaType: string): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return type === mediaType && !parameters.some((text) => /^q\s*=\s*0(\.0*)?$/.test(text));
  });
}
