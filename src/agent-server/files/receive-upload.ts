import busboy from 'busboy';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { HttpError, InvalidRequestError } from '../http/http-error.js';

/** A file as it comes. It throws when there is more of it than allowed. */
type UploadedFile = AsyncIterable<Uint8Array>;

/**
 * Streams the part `file` of a multipart request.
 *
 * @param store throws what the content throws
 * @throws HttpError 413 when it is larger than allowed, InvalidRequestError without such a part, whatever `store` throws
 */
export async function receiveUpload(
  request: IncomingMessage,
  maxBytes: number,
  store: (content: UploadedFile) => Promise<void>,
): Promise<void> {
  const parser = openParser(request, maxBytes);
  const writing: Promise<void>[] = [];
  parser.on('file', (name, part: Readable & { truncated?: boolean }) => {
    if (name === 'file' && writing.length === 0) {
      const stored = store(wholeFile(part));
      // The failure is handled below; until then it must not count as an unhandled rejection.
      stored.catch(() => part.resume());
      writing.push(stored);
    } else {
      part.resume();
    }
  });
  try {
    await pipeline(request, parser);
  } catch {
    await Promise.allSettled(writing);
    throw new HttpError(400, 'The multipart body is not whole.');
  }
  if (writing.length === 0) {
    throw new InvalidRequestError([{ type: 'missing', loc: ['body', 'file'], msg: 'Field required' }]);
  }
  await Promise.all(writing);
}

function openParser(request: IncomingMessage, maxBytes: number): busboy.Busboy {
  try {
    return busboy({ headers: request.headers, limits: { fileSize: maxBytes, files: 10, fields: 100 } });
  } catch {
    throw new InvalidRequestError([
      { type: 'missing', loc: ['body', 'file'], msg: 'A multipart body with the part "file" is required' },
    ]);
  }
}

async function* wholeFile(part: Readable & { truncated?: boolean }): UploadedFile {
  // A part that is destroyed would hold up the parser: what nobody wants is read and dropped.
  yield* part.iterator({ destroyOnReturn: false });
  if (part.truncated) {
    throw new HttpError(413, 'The file is too large.');
  }
}
