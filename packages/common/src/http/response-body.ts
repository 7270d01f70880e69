import { setImmediate } from 'node:timers/promises';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import pLimit from 'p-limit';
import type { Dispatcher } from 'undici';
import { type JsonBounds, JsonBoundsError, JsonOutline } from '../json-outline.js';
import { UpstreamError } from './upstream-error.js';

/** A response with any other `content-encoding` is refused. */
export const ACCEPT_ENCODING = 'gzip, br';
const decoders = { gzip: createGunzip, 'x-gzip': createGunzip, br: createBrotliDecompress };
/** Takes some milliseconds to parse. The largest pages of git hosts have about 40,000 values. */
const JSON_BOUNDS: JsonBounds = { depth: 64, values: 50_000, elements: 10_000 };
/** Larger bodies are parsed one in each turn of the event loop. */
const LARGE_BYTES = 64 * 1024;
const turns = pLimit(1);
/** How long a body that is discarded may take. */
const DISCARDED_MS = 1_000;
const BODYLESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/** The response, decoded and in memory. @throws UpstreamError `malformed`, or `too_large` also for slow JSON */
export async function bufferedResponse(
  response: Dispatcher.ResponseData,
  method: string,
  maxBytes: number,
  origin: string,
): Promise<Response> {
  const headers = toHeaders(response.headers);
  const isBodyless = method === 'HEAD' || BODYLESS_STATUSES.has(response.statusCode);
  if (!isBodyless && Number(headers.get('content-length') ?? 0) > maxBytes) {
    // `destroy` without an argument raises no error; the connection ends with the stream.
    response.body.destroy();
    throw new UpstreamError('too_large', origin);
  }
  const body = await readBody(response.body, headers.get('content-encoding') ?? '', maxBytes, origin);
  if (body.byteLength > LARGE_BYTES) {
    await turns(() => setImmediate());
  }
  // These two describe what was on the wire.
  headers.delete('content-encoding');
  headers.delete('content-length');
  return new Response(isBodyless ? null : body, { status: response.statusCode, headers });
}

/** The response with the last `tailBytes` of its body, of which no more is held. @throws UpstreamError `malformed` */
export async function tailResponse(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  tailBytes: number,
  origin: string,
): Promise<Response> {
  const encoding = toHeaders(headers).get('content-encoding')?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    body.destroy();
    throw new UpstreamError('malformed', origin);
  }
  let tail: Uint8Array = new Uint8Array();
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    tail = Buffer.concat([tail, chunk]).subarray(-tailBytes);
  }
  const isBodyless = BODYLESS_STATUSES.has(status);
  return new Response(isBodyless ? null : Buffer.from(tail), { status });
}

/** The response without its body. Some of that is read, as servers may stop their work when a client leaves. */
export async function bodylessResponse(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  maxBytes: number,
): Promise<Response> {
  const timer = setTimeout(() => body.destroy(), DISCARDED_MS);
  await body.dump({ limit: maxBytes });
  clearTimeout(timer);
  return new Response(null, { status, headers: toHeaders(headers) });
}

function toHeaders(raw: Dispatcher.ResponseData['headers']): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(raw)) {
    for (const item of [value ?? []].flat()) {
      headers.append(name, item);
    }
  }
  return headers;
}

/** Holds at most `maxBytes`, both of what arrives and of what it decodes to. */
async function readBody(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string,
  maxBytes: number,
  origin: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const encoding = contentEncoding.trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') {
    return await collect(body, maxBytes, origin, judgeOf(origin));
  }
  const raw = await collect(body, maxBytes, origin);
  if (raw.byteLength === 0) {
    return raw;
  }
  if (!isDecodable(encoding)) {
    throw new UpstreamError('malformed', origin);
  }
  const decoder = decoders[encoding]();
  decoder.end(raw);
  try {
    return await collect(decoder, maxBytes, origin, judgeOf(origin));
  } catch (error) {
    throw error instanceof UpstreamError ? error : new UpstreamError('malformed', origin);
  }
}

async function collect(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  origin: string,
  judge: (piece: Uint8Array) => void = () => undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      // Leaving the loop destroys the stream, and with it the connection.
      throw new UpstreamError('too_large', origin);
    }
    judge(chunk);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return whole;
}

/** Refuses slow JSON before its end, whatever its type: some callers parse any text. */
function judgeOf(origin: string): (piece: Uint8Array) => void {
  let outline: JsonOutline | null = new JsonOutline(JSON_BOUNDS);
  return (piece) => {
    try {
      outline?.push(piece);
    } catch (error) {
      if (!(error instanceof JsonBoundsError)) {
        throw error;
      }
      if (error.problem !== 'syntax') {
        throw new UpstreamError('too_large', origin);
      }
      // Not JSON: a parser stops here, if not before.
      outline = null;
    }
  };
}

function isDecodable(encoding: string): encoding is keyof typeof decoders {
  return Object.hasOwn(decoders, encoding);
}

/** @throws UpstreamError `malformed`, without any piece of the body */
export async function readJson(response: Response, origin: string): Promise<unknown> {
  const type = (response.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^(application|text)\/(.+\+)?json$/.test(type)) {
    throw new UpstreamError('malformed', origin);
  }
  const text = await response.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // A SyntaxError quotes the text, so it does not become the cause.
    throw new UpstreamError('malformed', origin);
  }
  return value;
}

/** Whole seconds until `Retry-After` (RFC 9110 section 10.2.3), at least 1; null without it. */
export function retryAfter(headers: Headers, nowMs: number): number | null {
  const given = headers.get('retry-after')?.trim() ?? '';
  const seconds = /^\d{1,9}$/.test(given) ? Number(given) : Math.ceil((Date.parse(given) - nowMs) / 1000);
  return Number.isNaN(seconds) ? null : Math.max(1, seconds);
}
