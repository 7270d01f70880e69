import type { Dispatcher } from 'undici';
import { readBody } from './read-body.js';
import { UpstreamError } from './upstream-error.js';

const BODYLESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * The whole answer as a standard `Response` with its body decoded and in memory.
 *
 * @param method Method of the request: the answer to HEAD announces a body and has none.
 * @throws UpstreamError `too_large` (before reading on, if the server announces the size) or `malformed`.
 */
export async function bufferedResponse(
  answer: Dispatcher.ResponseData,
  method: string,
  maxBytes: number,
  origin: string,
): Promise<Response> {
  const headers = toHeaders(answer.headers);
  const isBodyless = method === 'HEAD' || BODYLESS_STATUSES.has(answer.statusCode);
  if (!isBodyless && Number(headers.get('content-length') ?? 0) > maxBytes) {
    // Without an argument this is not an error of the stream, only its end; the connection goes with it.
    answer.body.destroy();
    throw new UpstreamError('too_large', origin);
  }
  const body = await readBody(answer.body, headers.get('content-encoding') ?? '', maxBytes, origin);
  if (answer.statusCode > 599) {
    // `Response` cannot express it.
    throw new UpstreamError('malformed', origin);
  }
  // These two described what was on the wire.
  headers.delete('content-encoding');
  headers.delete('content-length');
  return new Response(isBodyless ? null : body, { status: answer.statusCode, headers });
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
