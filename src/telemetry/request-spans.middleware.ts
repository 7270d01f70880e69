import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { parseTraceparent, TRACEPARENT_HEADER } from '@slipway/common/tracing/trace-context.js';
import type { Middleware } from '../common/requests/middleware.js';
import { answeredRequestId, currentRequest } from '../common/requests/request-context.js';
import { currentTracer, runInSpan } from '../common/tracing/tracing.js';
import { routePattern } from '../metrics/request-metrics.middleware.js';

/** Paths without spans: probes come every few seconds and are of no interest. */
const PROBES = /^\/health([/?]|$)/;
const USER_HASH_LENGTH = 16;

/**
 * Measures every request as a span, named by its route. A caller's `traceparent` is its parent, but does not decide
 * whether it is kept; nothing else of what callers say about traces is read.
 *
 * @param unroutedName names requests that are handled without a route; null for one without a name
 */
export function requestSpansMiddleware(
  unroutedName: (request: IncomingMessage) => string | null,
): Middleware {
  return (request, response, next) => {
    const tracer = currentTracer();
    if (tracer === null || PROBES.test(request.url ?? '')) {
      next();
      return;
    }
    const { method = '' } = request;
    const context = currentRequest();
    const caller = parseTraceparent(request.headers[TRACEPARENT_HEADER]);
    const span = tracer.start(
      {
        name: method,
        kind: 'server',
        attributes: {
          'http.request.method': method,
          'slipway.request.id': context === undefined ? '' : answeredRequestId(context),
        },
      },
      caller === null ? null : tracer.adopt(caller),
    );
    response.once('close', () => {
      const route = routePattern(request) ?? unroutedName(request);
      const { statusCode } = response;
      span.set({
        'http.response.status_code': statusCode,
        ...(route !== null && { 'http.route': route }),
        ...(context?.userId !== undefined && { 'user.hash': userHash(context.userId) }),
      });
      if (route !== null) {
        span.rename(`${method} ${route}`);
      }
      if (statusCode >= 500) {
        span.fail(String(statusCode));
      }
      span.end();
    });
    runInSpan(span, next);
  };
}

/** Distinguishes users in traces without identifying them. */
function userHash(userId: string): string {
  return createHash('sha256').update(userId).digest('hex').slice(0, USER_HASH_LENGTH);
}
