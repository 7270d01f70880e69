import type { NextFunction, Request, Response } from 'express';

/** What an answer that is data, never a page, has to say to a browser. */
const HEADERS = new Map([
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Referrer-Policy', 'no-referrer'],
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
]);

/** Security headers of JSON answers; helmet's full set costs more than some of the answers and is for pages. */
export function securityHeadersMiddleware(_request: Request, response: Response, next: NextFunction): void {
  response.setHeaders(HEADERS);
  next();
}
