import { AsyncLocalStorage } from 'node:async_hooks';
import { Logger } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { loggedPath } from './logged-path.js';

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
