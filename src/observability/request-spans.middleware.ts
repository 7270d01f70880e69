import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { context, propagation, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import type { Middleware } from '@slipway/common/requests/json-body.js';
import { answeredRequestId, currentRequest } from '@slipway/api/requests/request-context.js';
import { failSpan, tracer } from '@slipway/common/spans.js';
import type { Metrics } from '@slipway/telemetry/metrics.js';

/** Counts finished requests by route. `nameOf` names requests without a route; null if they have no name. */
export function requestMetricsMiddleware(
  metrics: Metrics,
  nameOf: (request: IncomingMessage) => string | null,
): Middleware {
  return (request, response, next) => {
    const startedAt = performance.now();
    response.once('close', () => {
      const route = routePattern(request) ?? nameOf(request) ?? 'none';
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

/** Get no spans, as probes come every few seconds. */
const PROBES = /^\/health([/?]|$)/;
const USER_HASH_LENGTH = 16;

/**
 * A span for every request, named by its route. A caller's `traceparent` is the parent but does not decide sampling.
 * `nameOf` names requests without a route; null if they have no name.
 */
export function requestSpansMiddleware(nameOf: (request: IncomingMessage) => string | null): Middleware {
  return (request, response, next) => {
    if (PROBES.test(request.url ?? '')) {
      next();
      return;
    }
    const { method = '' } = request;
    const { traceparent } = request.headers;
    const asked = currentRequest();
    const parent = propagation.extract(ROOT_CONTEXT, { traceparent });
    const attributes = {
      'http.request.method': method,
      'slipway.request.id': asked === undefined ? '' : answeredRequestId(asked),
    };
    const span = tracer().startSpan(method, { kind: SpanKind.SERVER, attributes }, parent);
    response.once('close', () => {
      const route = routePattern(request) ?? nameOf(request);
      const { statusCode } = response;
      span.setAttributes({
        'http.response.status_code': statusCode,
        ...(route !== null && { 'http.route': route }),
        ...(asked?.userId !== undefined && { 'user.hash': userHash(asked.userId) }),
      });
      if (route !== null) {
        span.updateName(`${method} ${route}`);
      }
      if (statusCode >= 500) {
        failSpan(span, String(statusCode));
      }
      span.end();
    });
    context.with(trace.setSpan(parent, span), next);
  };
}

/** Distinguishes users in traces without identifying them. */
function userHash(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, USER_HASH_LENGTH);
}
