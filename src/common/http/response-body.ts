import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { errorCode } from '../errors/error-message.js';
import { UpstreamError } from './upstream-error.js';

/** The encodings that the client asks for. A response with any other `content-encoding` is refused. */
export const ACCEPT_ENCODING = 'gzip, br';
const decoders = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), br: promisify(brotliDecompress) };
const BODYLESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * The response as a standard `Response` with its body decoded and in memory.
 *
 * @param method method of the request: a response to HEAD announces a body and has none
 * @throws UpstreamError `too_large` (before reading on, if the server announces the size) or `malformed`.
 */
export async function bufferedResponse(
  response: Dispatcher.ResponseData,
  method: string,
  maxBytes: number,
  origin: string,
): Promise<Response> {
  const headers = toHeaders(response.headers);
  const isBodyless = method === 'HEAD' || BODYLESS_STATUSES.has(response.statusCode);
  if (!isBodyless && Number(headers.get('content-length') ?? 0) > maxBytes) {
    // Without an argument the stream ends without an error, and the connection with it.
    response.body.destroy();
    throw new UpstreamError('too_large', origin);
  }
  const body = await readBody(response.body, headers.get('content-encoding') ?? '', maxBytes, origin);
  if (response.statusCode > 599) {
    // `Response` has no such status.
    throw new UpstreamError('malformed', origin);
  }
  // These two describe what was on the wire.
  headers.delete('content-encoding');
  headers.delete('content-length');
  return new Response(isBodyless ? null : body, { status: response.statusCode, headers });
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

/**
 * Reads a body to its end and decodes it. Holds at most `maxBytes`, both of what arrives and of what it decodes to.
 *
 * @throws UpstreamError `too_large`, or `malformed` for an encoding that is unknown, stacked or broken.
 */
async function readBody(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string,
  maxBytes: number,
  origin: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const raw = await collect(body, maxBytes, origin);
  const encoding = contentEncoding.trim().toLowerCase();
  if (raw.byteLength === 0 || encoding === '' || encoding === 'identity') {
    return raw;
  }
  if (!isDecodable(encoding)) {
    throw new UpstreamError('malformed', origin);
  }
  try {
    // The copy has an ArrayBuffer of its own, which is what Response accepts.
    return new Uint8Array(await decoders[encoding](raw, { maxOutputLength: maxBytes }));
  } catch (error) {
    throw new UpstreamError(errorCode(error) === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'malformed', origin);
  }
}

async function collect(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  origin: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      // Leaving the loop destroys the stream, and with it the connection.
      throw new UpstreamError('too_large', origin);
    }
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

function isDecodable(encoding: string): encoding is keyof typeof decoders {
  return Object.hasOwn(decoders, encoding);
}

/**
 * The JSON value of a buffered response (`application/json` or any `+json` type).
 *
 * @param origin origin for the error; the address itself may carry secrets
 * @throws UpstreamError `malformed` for another content type or broken JSON; the error holds no piece of the body
 */
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
