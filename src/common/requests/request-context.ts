import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';

/** A UUID with its dashes; no id in an address of ours is longer. */
const LONGEST_ID = 36;

/**
 * The path of a request as it may be logged: without its query, and without parts too long for an id of ours. A key or
 * token that somebody puts into an address by mistake is such a part.
 */
export function loggedPath(address: string): string {
  const [path = ''] = address.split('?', 1);
  return path
    .split('/')
    .map((part) => (part.length > LONGEST_ID ? `(${part.length} characters)` : part))
    .join('/');
}

/** What every log line and problem document of a request carries. */
interface RequestContext {
  requestId: string;
  /** Set once the key is known. */
  userId?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

/** Runs `work` as part of a request. */
export function runInRequestContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The current request, or undefined outside of one. */
export function currentRequest(): RequestContext | undefined {
  return storage.getStore();
}

const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Gives every request an id (the client's own if it is harmless text) and answers with it. */
export function requestContextMiddleware(request: Request, response: Response, next: NextFunction): void {
  const given = request.headers['x-request-id'];
  const context: RequestContext = {
    requestId: typeof given === 'string' && ACCEPTED_ID.test(given) ? given : randomUUID(),
  };
  response.setHeader('X-Request-Id', context.requestId);
  runInRequestContext(context, next);
}

const logger = new Logger('Request');

/** One line per answered request: method, path (never the query), status, duration. */
export function requestLogMiddleware(request: Request, response: Response, next: NextFunction): void {
  const startedAt = performance.now();
  const { method } = request;
  const path = loggedPath(request.originalUrl);
  const write = (): void => {
    logger.log('request', {
      method,
      path,
      status: response.statusCode,
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
      ...(!response.writableFinished && { aborted: true }),
    });
  };
  // Bound: a client that hangs up is noticed outside of its request's context, and the line would lack the id.
  response.once('close', AsyncLocalStorage.bind(write));
  next();
}
