import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { json, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { type InputProblem, InvalidInputError, MalformedBodyError } from '../errors/domain-error.js';

/** No request needs deeper JSON, which costs stack in whatever walks it. */
const MAX_DEPTH = 64;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

interface JsonBodyOptions {
  /** Requests whose route reads the body itself, for example a larger one after checking the key. */
  skip?: (request: Request) => boolean;
  /** Accepts text that PostgreSQL cannot store, for bodies that are not stored. */
  anyText?: boolean;
}

/**
 * Reads JSON bodies: any JSON value (its rules come later), UTF-8 only, at most `limitBytes` after decompression. A body
 * of another type is 415, an unreadable one 422, a larger one 413. An empty body counts as none, whatever its headers
 * say.
 *
 * @param deadlineMs a client that has not sent its body by then is disconnected, since it would hold up a graceful stop
 */
export function jsonBodyMiddleware(
  limitBytes: number,
  deadlineMs: number,
  { skip = () => false, anyText = false }: JsonBodyOptions = {},
): RequestHandler {
  const empty = new WeakSet<object>();
  const parse = json({
    limit: limitBytes,
    strict: false,
    type: () => true,
    verify: (request, _response, bytes) => {
      if (bytes.length === 0) {
        empty.add(request);
      } else if (!isJson(request.headers)) {
        throw new MalformedBodyError('media_type');
      } else if (!isUtf8(bytes)) {
        throw new MalformedBodyError('encoding');
      }
    },
  });
  return (request: Request, response: Response, next: NextFunction) => {
    const { method } = request;
    if (method === 'GET' || method === 'HEAD' || !mayHaveBody(request.headers) || skip(request)) {
      next();
      return;
    }
    // Whether a chunked body is empty shows only in reading it.
    if (request.headers['transfer-encoding'] === undefined && !isJson(request.headers)) {
      next(new MalformedBodyError('media_type'));
      return;
    }
    const deadline = setTimeout(() => request.destroy(), deadlineMs);
    parse(request, response, (error?: unknown) => {
      clearTimeout(deadline);
      if (error !== undefined) {
        next(MalformedBodyError.from(error));
        return;
      }
      if (empty.has(request)) {
        // The parser turns an empty body into `{}`.
        request.body = undefined;
      }
      const problems = anyText ? [] : unsafeJsonProblems(request.body);
      next(problems.length > 0 ? new InvalidInputError(problems) : undefined);
    });
  };
}

function isJson(headers: IncomingHttpHeaders): boolean {
  const contentType = headers['content-type'] ?? '';
  const charset = CHARSET.exec(contentType)?.[1] ?? 'utf-8';
  return JSON_TYPE.test(contentType) && /^utf-?8$/i.test(charset);
}

function mayHaveBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Searches parsed JSON, without recursion, for what PostgreSQL text cannot hold (NUL, lone surrogates) and for nesting
 * that no request needs.
 *
 * @param origin where the value comes from: `body`, `query` or `path`
 * @returns the problems found, at most ten
 */
export function unsafeJsonProblems(given: unknown, origin = 'body'): InputProblem[] {
  const problems: InputProblem[] = [];
  const pending: { value: unknown; loc: string[] }[] = [{ value: given, loc: [origin] }];
  for (let next = pending.pop(); next && problems.length < 10; next = pending.pop()) {
    const { value, loc } = next;
    if (typeof value === 'string') {
      problems.push(...textProblems(value, loc));
    } else if (typeof value === 'object' && value !== null) {
      if (loc.length > MAX_DEPTH) {
        return [
          { loc: ['body'], msg: `Expected at most ${MAX_DEPTH} levels of nesting.`, type: 'json_invalid' },
        ];
      }
      const entries = Object.entries(value);
      for (let index = entries.length - 1; index >= 0; index -= 1) {
        const [key, child] = entries[index] ?? ['', undefined];
        problems.push(...textProblems(key, loc));
        if (typeof child === 'string' || typeof child === 'object') {
          pending.push({ value: child, loc: [...loc, key] });
        }
      }
    }
  }
  return problems;
}

function textProblems(text: string, loc: string[]): InputProblem[] {
  if (text.includes('\0')) {
    return [{ loc, msg: 'Expected text without NUL characters.', type: 'string_unicode' }];
  }
  return text.isWellFormed()
    ? []
    : [{ loc, msg: 'Expected well-formed Unicode text (a surrogate stands alone).', type: 'string_unicode' }];
}
