import { isUtf8 } from 'node:buffer';
import { json, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { InvalidInputError } from '../errors/invalid-input.error.js';
import { MalformedBodyError } from '../errors/malformed-body.error.js';
import { unsafeJsonProblems } from './safe-json.js';

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * Reads JSON bodies: any JSON value (rules on it come later), UTF-8 only, at most `limitBytes` after decompression.
 * A body of another type is 415, an unreadable one 422, a larger one 413.
 */
export function jsonBodyMiddleware(limitBytes: number): RequestHandler {
  const parse = json({
    limit: limitBytes,
    strict: false,
    type: () => true,
    verify: (_request, _response, bytes) => {
      if (!isUtf8(bytes)) {
        throw new MalformedBodyError('encoding');
      }
    },
  });
  return (request: Request, response: Response, next: NextFunction) => {
    if (request.method === 'GET' || request.method === 'HEAD' || !hasBody(request)) {
      next();
      return;
    }
    const contentType = request.headers['content-type'] ?? '';
    const charset = CHARSET.exec(contentType)?.[1] ?? 'utf-8';
    if (!JSON_TYPE.test(contentType) || !/^utf-?8$/i.test(charset)) {
      next(new MalformedBodyError('media_type'));
      return;
    }
    parse(request, response, (error?: unknown) => {
      if (error !== undefined) {
        next(MalformedBodyError.from(error));
        return;
      }
      const problems = unsafeJsonProblems(request.body);
      next(problems.length > 0 ? new InvalidInputError(problems) : undefined);
    });
  };
}

function hasBody(request: Request): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}
