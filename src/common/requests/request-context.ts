import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import type { Next } from '@slipway/common/requests/middleware.js';

/** The length of a UUID with dashes: no id in our addresses is longer. */
const MAX_ID_LENGTH = 36;
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** What every log line and problem document of a request contains. */
interface RequestContext {
  /** Our own, which no other request has. */
  requestId: string;
  /** The id that the caller gave it in `X-Request-Id`. */
  callerRequestId?: string;
  /** Where the connection came from: the client, or the reverse proxy in front of the service. */
  address?: string | undefined;
  /** Set once the key is verified. */
  userId?: string;
  /** Whose key it is: a user's or a sandbox's, by its id. Set with `userId`. */
  caller?: string;
  /** Id of the API key; a sandbox has none. */
  keyId?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();
const logger = new Logger('Request');

/** Gives every request an id, and returns it in a header, or the client's own if that is harmless text. */
export function requestContextMiddleware(
  request: IncomingMessage,
  response: ServerResponse,
  next: Next,
): void {
  const given = request.headers['x-request-id'];
  const context: RequestContext = {
    requestId: randomUUID(),
    ...(typeof given === 'string' && ACCEPTED_ID.test(given) && { callerRequestId: given }),
    address: request.socket.remoteAddress,
  };
  response.setHeader('X-Request-Id', answeredRequestId(context));
  runInRequestContext(context, next);
}

/** Logs one line per request: method, path (never the query), status, duration. */
export function requestLogMiddleware(request: IncomingMessage, response: ServerResponse, next: Next): void {
  const startedAt = performance.now();
  const { method } = request;
  // Here, before any route has taken its prefix off.
  const path = loggedPath(request.url ?? '');
  const write = (): void => {
    logger.log('request', {
      method,
      path,
      status: response.statusCode,
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
      ...(!response.writableFinished && { aborted: true }),
    });
  };
  // Bound, because a client's hang-up is noticed outside the request's context, where the line would lack the id.
  response.once('close', AsyncLocalStorage.bind(write));
  next();
}

/** Runs `work` as part of a request. */
export function runInRequestContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The id by which the caller knows a request: theirs, else ours. */
export function answeredRequestId({ requestId, callerRequestId }: RequestContext): string {
  return callerRequestId ?? requestId;
}

/** The current request, or undefined outside of one. */
export function currentRequest(): RequestContext | undefined {
  return storage.getStore();
}

/**
 * Records whose key came with the current request.
 *
 * @param caller the user's id, or that of the sandbox whose key it is
 * @param keyId the id of the API key, unless it is a sandbox's
 */
export function noteCaller(userId: string, caller: string, keyId?: string): void {
  const current = storage.getStore();
  if (current) {
    current.userId = userId;
    current.caller = caller;
    if (keyId !== undefined) {
      current.keyId = keyId;
    }
  }
}

/**
 * The path of a request for the log: without its query, and without parts that are too long for an id. A key or token
 * that somebody puts into an address by mistake is such a part.
 */
export function loggedPath(address: string): string {
  const [path = ''] = address.split('?', 1);
  return path
    .split('/')
    .map((part) => (part.length > MAX_ID_LENGTH ? `(${part.length} characters)` : part))
    .join('/');
}
