import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { UpstreamError } from './upstream-error.js';

const decoders = { gzip: promisify(gunzip), 'x-gzip': promisify(gunzip), br: promisify(brotliDecompress) };

/** What the client asks for; anything else in an answer's `content-encoding` is refused. */
export const ACCEPT_ENCODING = 'gzip, br';

/**
 * Reads a body to its end and decodes it. Neither what arrives nor what it unpacks to is ever held beyond
 * `maxBytes`.
 *
 * @throws UpstreamError `too_large`, or `malformed` for an encoding that is unknown, stacked or broken.
 */
export async function readBody(
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
    // Buffer.from of a Buffer copies into an own ArrayBuffer, which is what Response accepts.
    return new Uint8Array(await decoders[encoding](raw, { maxOutputLength: maxBytes }));
  } catch (error) {
    throw new UpstreamError(codeOf(error) === 'ERR_BUFFER_TOO_LARGE' ? 'too_large' : 'malformed', origin);
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

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
