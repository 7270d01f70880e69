import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { runInRequestContext, type RequestContext } from './request-context.js';

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
