import type { IncomingMessage } from 'node:http';
import type { Middleware } from '@slipway/common/requests/json-body.js';
import type { Metrics } from './metrics.js';

/** Counts finished requests by route. `unroutedName` names requests without a route; null if they have no name. */
export function requestMetricsMiddleware(
  metrics: Metrics,
  unroutedName: (request: IncomingMessage) => string | null,
): Middleware {
  return (request, response, next) => {
    const startedAt = performance.now();
    response.once('close', () => {
      const route = routePattern(request) ?? unroutedName(request) ?? 'none';
      const seconds = (performance.now() - startedAt) / 1000;
      metrics.countRequest(request.method ?? '', route, response.statusCode, seconds);
    });
    next();
  };
}

/** The pattern of the route, which Express sets on the request. */
export function routePattern(request: IncomingMessage): string | null {
  const route: unknown = 'route' in request ? request.route : null;
  const pattern: unknown = typeof route === 'object' && route !== null && 'path' in route ? route.path : null;
  return typeof pattern === 'string' ? pattern : null;
}
