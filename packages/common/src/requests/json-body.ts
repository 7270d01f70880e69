import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import { JsonBoundsError, JsonOutline } from '../json-outline.js';

/** No request needs deeper JSON, which costs stack in whatever walks it. */
const MAX_BODY_DEPTH = 64;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
/** RFC 8878 (3.1.1.1.2) asks no more of a receiver; a sender may claim windows of gigabytes. */
const ZSTD_WINDOW_LOG = 23;

/** Why a body could not be read as JSON. */
export type MalformedBodyReason =
  'media_type' | 'encoding' | 'syntax' | 'too_large' | 'too_deep' | 'too_many_values' | 'aborted';

/** A request body that could not be read as JSON. */
export class MalformedBodyError extends Error {
  /** The limit that a body exceeded: bytes, levels or values, as the reason says. */
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

/** The bounds of a body. */
export interface BodyBounds {
  /** Bytes, both as they are sent and unpacked. */
  bytes: number;
  /** Values and keys. */
  values: number;
}

/** The kind of value that a body holds. */
export type BodyKind = 'list' | 'object' | 'other';

/** A body that was read. */
export interface JsonBody {
  value: unknown;
  /** Whether texts in it may hold what PostgreSQL text cannot (NUL, lone surrogates); if not, nobody needs to search. */
  mayHaveUnsafeText: boolean;
}

/** Whether a request comes with a body, as far as its headers say. */
export function mayHaveBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Reads a JSON body: any JSON value (its rules come later), UTF-8 only. Size, depth and number of values are judged while
 * it arrives, so that what is parsed is small. An empty body is `undefined`, whatever its headers say.
 *
 * @throws MalformedBodyError what of it is wrong
 */
export async function readJsonBody(request: IncomingMessage, bounds: BodyBounds): Promise<JsonBody> {
  const chunks: Buffer[] = [];
  const outline = await followBody(request, bounds, (chunk) => chunks.push(chunk));
  if (outline.kind === null && chunks.length === 0) {
    return { value: undefined, mayHaveUnsafeText: false };
  }
  const [only] = chunks;
  const bytes = only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
  if (!isUtf8(bytes)) {
    throw new MalformedBodyError('encoding');
  }
  const start = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    ? BYTE_ORDER_MARK.length
    : 0;
  try {
    return {
      value: JSON.parse(bytes.toString('utf8', start)),
      mayHaveUnsafeText: outline.hasUnicodeEscapes,
    };
  } catch (cause) {
    throw new MalformedBodyError('syntax', { cause });
  }
}

/**
 * Receives a JSON body under the same bounds without keeping it, for bodies that are only a signal.
 *
 * @returns what it holds; null for an empty one
 * @throws MalformedBodyError as far as brackets show that it is malformed
 */
export async function skimJsonBody(request: IncomingMessage, bounds: BodyBounds): Promise<BodyKind | null> {
  const outline = await followBody(request, bounds, () => undefined);
  if (!outline.isClosed) {
    throw new MalformedBodyError('syntax');
  }
  return outline.kind;
}

/**
 * Receives a body, and disconnects a client that has not sent all of it after `deadlineMs`, also while it waits for its
 * turn: it would hold up a graceful stop.
 */
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

/** Cuts a client off that still sends the body of a request that was answered `deadlineMs` ago. */
export function cutUnreadBody(request: IncomingMessage, response: ServerResponse, deadlineMs: number): void {
  if (!mayHaveBody(request)) {
    return;
  }
  response.once('finish', () => {
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
  });
}

/** Passes the bytes of a body on, unpacked, until one of its bounds is exceeded. */
async function followBody(
  request: IncomingMessage,
  bounds: BodyBounds,
  onChunk: (chunk: Buffer) => void,
): Promise<JsonOutline> {
  const outline = new JsonOutline({ depth: MAX_BODY_DEPTH, values: bounds.values });
  const isTyped = checkHeaders(request.headers, bounds);
  const size = new ByteCount(bounds.bytes);
  await receive(request, bounds, (chunk) => {
    size.add(chunk);
    if (!isTyped) {
      throw new MalformedBodyError('media_type');
    }
    try {
      outline.push(chunk);
    } catch (error) {
      throw refusal(error, bounds.values);
    }
    onChunk(chunk);
  });
  return outline;
}

/**
 * Judges a body before its first byte.
 *
 * @returns whether its type is said to be JSON; where its length is not known, only a body that is not empty needs that
 */
function checkHeaders(headers: IncomingHttpHeaders, { bytes }: BodyBounds): boolean {
  const isTyped = isJson(headers);
  if (!isTyped && headers['transfer-encoding'] === undefined) {
    throw new MalformedBodyError('media_type');
  }
  if (Number(headers['content-length'] ?? 0) > bytes) {
    throw new MalformedBodyError('too_large', { limit: bytes });
  }
  return isTyped;
}

/** Counts the bytes of a stream up to a limit. */
class ByteCount {
  #count = 0;

  constructor(private readonly limit: number) {}

  /** @throws MalformedBodyError with the first piece that is too much */
  add(chunk: Buffer): void {
    this.#count += chunk.length;
    if (this.#count > this.limit) {
      throw new MalformedBodyError('too_large', { limit: this.limit });
    }
  }
}

/** Receives a body, unpacked, to its end or until `onChunk` throws; what is left of it then is dropped. */
async function receive(
  request: IncomingMessage,
  { bytes }: BodyBounds,
  onChunk: (chunk: Buffer) => void,
): Promise<void> {
  const unpacked = unpack(request.headers);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const orReject =
    (work: (chunk: Buffer) => void) =>
    (chunk: Buffer): void => {
      try {
        work(chunk);
      } catch (error) {
        reject(error);
      }
    };
  const onData = orReject(onChunk);
  const packedSize = new ByteCount(bytes);
  const onPackedData = orReject((chunk) => packedSize.add(chunk));
  const onLeave = (): void => reject(new MalformedBodyError('aborted'));
  // A request also closes once all of it has arrived.
  const onClose = (): void => (request.complete ? undefined : onLeave());
  if (request.destroyed) {
    // The client left before this began.
    onLeave();
  }
  request.on('close', onClose).on('error', onLeave);
  const source = unpacked ?? request;
  source.on('data', onData).on('end', resolve);
  if (unpacked !== null) {
    unpacked.on('error', (cause) => reject(new MalformedBodyError('syntax', { cause })));
    request.on('data', onPackedData).pipe(unpacked);
  }
  try {
    await promise;
  } finally {
    source.off('data', onData).off('end', resolve);
    request.off('close', onClose).off('data', onPackedData).unpipe();
    unpacked?.destroy();
    // `onLeave` stays as the error listener while the rest of the body is dropped.
    request.resume();
  }
}

function refusal(error: unknown, values: number): unknown {
  if (!(error instanceof JsonBoundsError)) {
    return error;
  }
  switch (error.problem) {
    case 'depth':
      return new MalformedBodyError('too_deep', { cause: error, limit: MAX_BODY_DEPTH });
    case 'values':
    case 'elements':
      return new MalformedBodyError('too_many_values', { cause: error, limit: values });
    case 'syntax':
      return new MalformedBodyError('syntax', { cause: error });
  }
}

/** Whether the headers say that the body is JSON in UTF-8. */
export function isJson(headers: IncomingHttpHeaders): boolean {
  const contentType = headers['content-type'] ?? '';
  const charset = CHARSET.exec(contentType)?.[1] ?? 'utf-8';
  return JSON_TYPE.test(contentType) && /^utf-?8$/i.test(charset);
}

/** What takes the content encoding off a body (RFC 9110, 8.4.1); null for one that has none. */
function unpack(headers: IncomingHttpHeaders): Transform | null {
  switch (headers['content-encoding']?.toLowerCase() ?? '') {
    case 'identity':
    case '':
      return null;
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
    default:
      throw new MalformedBodyError('media_type');
  }
}
