import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { from, type Observable, switchMap } from 'rxjs';
import { jsonBodyMiddleware } from '../../common/requests/json-body.middleware.js';

/** Agent servers send several events at once, with pictures and the output of commands in them. */
const LIMIT_BYTES = 32 * 1024 * 1024;
const DEADLINE_MS = 20_000;

/** Reads the body of a webhook, after the guards: nobody without a key makes the service keep that much. */
@Injectable()
export class WebhookBodyInterceptor implements NestInterceptor {
  private readonly read = jsonBodyMiddleware(LIMIT_BYTES, DEADLINE_MS, { anyText: true });

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    void this.read(request, response, (error?: unknown) => {
      if (error === undefined) {
        resolve();
      } else {
        reject(error);
      }
    });
    return from(promise).pipe(switchMap(() => next.handle()));
  }
}
