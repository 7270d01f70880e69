import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { Logger } from '@nestjs/common';
import type { Next } from '@slipway/common/requests/json-body.js';

/** A UUID with dashes: no id in our addresses is longer. */
const MAX_ID_LENGTH = 36;
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Every log line and problem document of a request contains these. */
interface RequestContext {
  /** Our own, which no other request has. */
  requestId: string;
  callerRequestId?: string;
  /** The client's, as far as `TRUSTED_PROXIES` tell it, or that of the reverse proxy in front of the service. */
  address?: string | undefined;
  /** Sets a header of the response. */
  setHeader?: (name: string, value: string) => void;
  /** Takes the place of a request without a key, once its body is there. @throws DomainError */
  takePlace?: () => void;
  /** Set once the key is verified, with `caller`. */
  userId?: string;
  /** The id of the user, or of their program, whose key it is. */
  caller?: string;
  /** Keys of programs have none. */
  keyId?: string;
  /** What the key may do besides, in words of the service. */
  grants?: readonly string[];
}

const storage = new AsyncLocalStorage<RequestContext>();
const logger = new Logger('Request');

/** Gives every request an id, and returns it in a header, or the client's own if that is harmless text. */
export function requestContextMiddleware(
  request: IncomingMessage & { ip?: string | undefined },
  response: ServerResponse,
  next: Next,
): void {
  const given = request.headers['x-request-id'];
  const context: RequestContext = {
    requestId: randomUUID(),
    ...(typeof given === 'string' && ACCEPTED_ID.test(given) && { callerRequestId: given }),
    // Some proxies write more than an address.
    address: isIP(request.ip ?? '') > 0 ? request.ip : request.socket.remoteAddress,
    setHeader: (name, value) => {
      response.setHeader(name, value);
    },
  };
  response.setHeader('X-Request-Id', answeredRequestId(context));
  runInRequestContext(context, next);
}

/** Logs method, path (never the query), status and duration. */
export function requestLogMiddleware(request: IncomingMessage, response: ServerResponse, next: Next): void {
  const startedAt = performance.now();
  const { method } = request;
  // Read before any route takes its prefix off.
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

export function runInRequestContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** The id by which the caller knows a request: theirs, else ours. */
export function answeredRequestId({ requestId, callerRequestId }: RequestContext): string {
  return callerRequestId ?? requestId;
}

/** Undefined outside of a request. */
export function currentRequest(): RequestContext | undefined {
  return storage.getStore();
}

/** Records whose key came with the request. */
export function noteCaller(
  userId: string,
  caller: string,
  keyId?: string,
  grants: readonly string[] = [],
): void {
  const current = storage.getStore();
  if (current) {
    current.userId = userId;
    current.caller = caller;
    current.grants = grants;
    if (keyId !== undefined) {
      current.keyId = keyId;
    }
  }
}

/** Whether the key of the request is this user's, or of a program of theirs. */
export function isCaller(userId: string): boolean {
  return storage.getStore()?.userId === userId;
}

/** Whether the key of the request was noted with this grant. */
export function callerHas(grant: string): boolean {
  return storage.getStore()?.grants?.includes(grant) === true;
}

/** Leaves out the query, and parts that are too long for an id: they may be a misplaced key or token. */
export function loggedPath(address: string): string {
  const [path = ''] = address.split('?', 1);
  return path
    .split('/')
    .map((part) => (part.length > MAX_ID_LENGTH ? `(${part.length} characters)` : part))
    .join('/');
}
