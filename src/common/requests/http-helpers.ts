import type { Server } from 'node:http';
import type { NextFunction, Request, Response } from 'express';

/** The part of Express 5's router layers that describes routes. */
interface RouteLayer {
  match(path: string): boolean;
  route: { methods: Record<string, boolean | undefined> };
}

/** The methods that routes have at the request's path (`GET` implies `HEAD`); empty when there is no route. */
export function allowedMethods(request: Request): string[] {
  const layers: readonly object[] = request.app.router.stack;
  const methods = new Set<string>();
  for (const layer of layers) {
    if (isRouteLayer(layer) && layer.match(request.path)) {
      for (const [method, present] of Object.entries(layer.route.methods)) {
        if (present === true && method !== '_all') {
          methods.add(method.toUpperCase());
        }
      }
    }
  }
  if (methods.has('GET')) {
    methods.add('HEAD');
  }
  return [...methods].toSorted();
}

function isRouteLayer(layer: object): layer is RouteLayer {
  return 'route' in layer && layer.route !== undefined && 'match' in layer;
}

/**
 * Ends a keep-alive connection with its next response once the server is closing. Node ends only those that are idle at
 * that moment; one on which request follows request would hold up the close for ever.
 */
export function endConnectionsOnClose(server: Server): void {
  server.prependListener('request', (_request, response) => {
    if (!server.listening) {
      response.shouldKeepAlive = false;
    }
  });
}

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
export function securityHeadersMiddleware(_request: Request, response: Response, next: NextFunction): void {
  response.setHeaders(HEADERS);
  next();
}
