import type { RequestHandler } from 'express';

const LOCAL_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

/** Lets pages of this machine and of the given origins call us (`*`: of any origin). */
export function cors(origins: readonly string[]): RequestHandler {
  const allowed = new Set(origins.map((origin) => origin.replace(/\/$/, '')));
  return (request, response, next) => {
    const origin = request.get('origin');
    response.vary('Origin');
    if (origin !== undefined && (LOCAL_ORIGIN.test(origin) || allowed.has(origin) || allowed.has('*'))) {
      response.set('Access-Control-Allow-Origin', origin);
      response.set('Access-Control-Allow-Credentials', 'true');
      if (request.method === 'OPTIONS' && request.get('access-control-request-method')) {
        response.set('Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE, OPTIONS');
        response.set('Access-Control-Allow-Headers', request.get('access-control-request-headers') ?? '*');
        response.set('Access-Control-Max-Age', '600');
        response.status(204).end();
        return;
      }
    }
    next();
  };
}
