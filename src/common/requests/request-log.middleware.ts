import { Logger } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';

const logger = new Logger('Request');

/** One line per answered request: method, path (never the query), status, duration. */
export function requestLogMiddleware(request: Request, response: Response, next: NextFunction): void {
  const startedAt = performance.now();
  const { method } = request;
  const [path] = request.originalUrl.split('?', 1);
  response.once('close', () => {
    logger.log('request', {
      method,
      path,
      status: response.statusCode,
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
      ...(!response.writableFinished && { aborted: true }),
    });
  });
  next();
}
