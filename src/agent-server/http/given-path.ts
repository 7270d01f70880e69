import type { Request } from 'express';
import { InvalidRequestError } from './invalid-request.error.js';

/**
 * The path that a request names, as `?path=` or as `*path` behind the route (there with its own slash, or with the
 * slashes escaped).
 */
export function givenPath(request: Request): string {
  const params: Record<string, unknown> = request.params;
  const behind = params['path'];
  if (Array.isArray(behind)) {
    return behind.join('/');
  }
  const { path } = request.query;
  if (typeof path !== 'string') {
    throw new InvalidRequestError([{ type: 'missing', loc: ['query', 'path'], msg: 'Field required' }]);
  }
  return path;
}
