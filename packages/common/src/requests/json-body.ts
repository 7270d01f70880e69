import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import express from 'express';
import { JsonBoundsError, JsonOutline } from '../json-outline.js';

export type Next = (error?: unknown) => void;

export type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void;

/** Deeper JSON costs stack in whatever walks it. */
const MAX_BODY_DEPTH = 64;
/** A form's further fields are not read. */
const MAX_FIELDS = 100;
const PLUS = 0x2b;
const SPACE = 0x20;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

export type MalformedBodyReason =
  'media_type' | 'encoding' | 'syntax' | 'too_large' | 'too_deep' | 'too_many_values' | 'aborted';

export class MalformedBodyError extends Error {
  readonly limit: number | null;

  constructor(
    readonly reason: MalformedBodyReason,
    { limit = null, ...options }: { cause?: unknown; limit?: number | null } = {},
  ) {
    super(`The request body could not be read: ${reason}`, options);
    this.limit = limit;
    this.name = 'MalformedBodyError';
  }
}

export interface BodyBounds {
  bytes: number;
  values: number;
}

export type BodyKind = 'list' | 'object' | 'other';

export function mayHaveBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

export function isJson(headers: IncomingHttpHeaders): boolean {
  const contentType = headers['content-type'] ?? '';
  const charset = CHARSET.exec(contentType)?.[1] ?? 'utf-8';
  return JSON_TYPE.test(contentType) && /^utf-?8$/i.test(charset);
}

/** Reads JSON in UTF-8, bounded before it is parsed; an empty body is `undefined`. @throws MalformedBodyError */
export async function readJsonBody(
  request: IncomingMessage & { body?: unknown },
  response: ServerResponse,
  { bytes, values }: BodyBounds,
): Promise<unknown> {
  const isTyped = checkHeaders(request, bytes);
  let isEmpty = false;
  const parse = express.json({
    limit: bytes,
    strict: false,
    type: () => true,
    verify: (_request, _response, text) => {
      isEmpty = text.length === 0;
      if (!isTyped && !isEmpty) {
        throw new MalformedBodyError('media_type');
      }
      judge(new JsonOutline({ depth: MAX_BODY_DEPTH, values }), text, values);
      if (!isUtf8(text)) {
        throw new MalformedBodyError('encoding');
      }
    },
  });
  // Express knows fewer names of UTF-8 and of gzip.
  request.headers['content-type'] = 'application/json';
  if (request.headers['content-encoding']?.toLowerCase() === 'x-gzip') {
    request.headers['content-encoding'] = 'gzip';
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Express never sees the end of a packed body whose client left, nor a size if the body unpacks to nothing.
  request.once('close', () => (request.complete ? undefined : reject(new MalformedBodyError('aborted'))));
  let size = 0;
  request.on('data', ({ length }: Buffer) => {
    size += length;
    if (size > bytes) {
      reject(tooLarge(bytes));
      request.unpipe().resume();
    }
  });
  parse(request, response, (error) => (error === undefined ? resolve() : reject(refusal(error, bytes))));
  await promise;
  return isEmpty ? undefined : request.body;
}

/** Receives JSON without keeping it; null for an empty body. @throws MalformedBodyError as far as brackets show it */
export async function skimJsonBody(
  request: IncomingMessage,
  { bytes, values }: BodyBounds,
): Promise<BodyKind | null> {
  const { 'content-encoding': encoding = 'identity' } = request.headers;
  const isTyped = checkHeaders(request, bytes) && encoding === 'identity';
  const outline = new JsonOutline({ depth: MAX_BODY_DEPTH, values });
  for await (const chunk of boundedChunks(request, bytes)) {
    if (!isTyped) {
      throw new MalformedBodyError('media_type');
    }
    judge(outline, chunk, values);
  }
  if (!outline.isClosed) {
    throw new MalformedBodyError('syntax');
  }
  return outline.kind;
}

/** The bytes of a body, as they came. @throws MalformedBodyError `too_large` before more of it is kept, or `aborted` */
export async function readRawBody(request: IncomingMessage, bytes: number): Promise<Buffer> {
  checkLength(request, bytes);
  const { 'content-length': length } = request.headers;
  if (length === undefined) {
    const chunks: Buffer[] = [];
    for await (const chunk of boundedChunks(request, bytes)) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
  // Takes no memory before it is written to, and none twice.
  const body = Buffer.allocUnsafe(Number(length));
  let size = 0;
  for await (const chunk of boundedChunks(request, body.length)) {
    size += chunk.copy(body, size);
  }
  return body.subarray(0, size);
}

/** The value of a text in JSON, bounded before it is parsed. @throws MalformedBodyError */
export function parseJsonBody(text: string, values: number): unknown {
  judge(new JsonOutline({ depth: MAX_BODY_DEPTH, values }), Buffer.from(text), values);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedBodyError('syntax', { cause: error });
  }
}

/** The fields of a form, of equal ones the first. `URLSearchParams` of Node.js 24 takes quadratic time for `a&a&…`. */
export function parseForm(text: string): Record<string, string> {
  // The parser would take the text apart at each `+`, and leave much to the garbage collector.
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] === PLUS) {
      bytes[at] = SPACE;
    }
  }
  const fields = Object.entries(parseQuery(bytes.toString(), '&', '=', { maxKeys: MAX_FIELDS }));
  return Object.fromEntries(fields.map(([name, values]) => [name, [values].flat()[0] ?? '']));
}

/** Disconnects clients that have not sent all of a body after `deadlineMs`: they would hold up a graceful stop. */
export async function receiveByDeadline<T>(
  request: IncomingMessage,
  deadlineMs: number,
  receiveBody: () => Promise<T>,
): Promise<T> {
  const deadline = setTimeout(() => request.destroy(), deadlineMs);
  try {
    return await receiveBody();
  } finally {
    clearTimeout(deadline);
  }
}

/** Cuts off clients that still send the body of a request that was answered `deadlineMs` ago. */
export function cutUnreadBodies(deadlineMs: number): Middleware {
  return (request, response, next) => {
    if (mayHaveBody(request)) {
      response.once('finish', () => cutBody(request, deadlineMs));
    }
    next();
  };
}

function cutBody(request: IncomingMessage, deadlineMs: number): void {
  const { socket } = request;
  if (request.complete || socket.destroyed) {
    return;
  }
  // What still arrives is dropped; unread data would keep the connection open.
  request.resume();
  const timer = setTimeout(() => request.destroy(), deadlineMs);
  // Node.js closes the request of a client that leaves only as long as it has no response.
  const forget = (): void => {
    clearTimeout(timer);
    request.off('close', forget);
    socket.off('close', forget);
  };
  request.once('close', forget);
  socket.once('close', forget);
}

async function* boundedChunks(request: IncomingMessage, bytes: number): AsyncGenerator<Buffer, void> {
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bytes) {
        throw tooLarge(bytes);
      }
      yield chunk;
    }
  } catch (error) {
    throw error instanceof MalformedBodyError ? error : new MalformedBodyError('aborted', { cause: error });
  }
}

/** Tells whether the type is JSON; without a known length, only a body that is not empty needs a type. */
function checkHeaders(request: IncomingMessage, bytes: number): boolean {
  const { headers } = request;
  const isTyped = isJson(headers);
  if (request.destroyed) {
    throw new MalformedBodyError('aborted');
  }
  if (!isTyped && headers['transfer-encoding'] === undefined) {
    throw new MalformedBodyError('media_type');
  }
  checkLength(request, bytes);
  return isTyped;
}

/** Express would answer only once all of it has arrived. */
function checkLength({ headers }: IncomingMessage, bytes: number): void {
  if (Number(headers['content-length'] ?? 0) > bytes) {
    throw tooLarge(bytes);
  }
}

function tooLarge(limit: number): MalformedBodyError {
  return new MalformedBodyError('too_large', { limit });
}

function judge(outline: JsonOutline, text: Buffer, values: number): void {
  try {
    outline.push(text);
  } catch (error) {
    if (!(error instanceof JsonBoundsError)) {
      throw error;
    }
    switch (error.problem) {
      case 'depth':
        throw new MalformedBodyError('too_deep', { cause: error, limit: MAX_BODY_DEPTH });
      case 'values':
      case 'elements':
        throw new MalformedBodyError('too_many_values', { cause: error, limit: values });
      case 'syntax':
        throw new MalformedBodyError('syntax', { cause: error });
    }
  }
}

/** The text of an Express error may quote the body, so it is not used. */
function refusal(error: unknown, limit: number): MalformedBodyError {
  if (error instanceof MalformedBodyError) {
    return error;
  }
  switch (Reflect.get(Object(error), 'type')) {
    case 'entity.too.large':
      return tooLarge(limit);
    case 'encoding.unsupported':
      return new MalformedBodyError('media_type');
    default:
      return new MalformedBodyError('syntax');
  }
}
