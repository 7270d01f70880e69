import busboy from 'busboy';
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorCode } from '../../common/errors/error-message.js';
import { HttpError, InvalidRequestError } from '../http/http-error.js';

/**
 * Streams the part `file` of a multipart request to a path. An old file there stays until the new one is complete.
 *
 * @throws HttpError 413 when it is larger than allowed, InvalidRequestError without such a part
 */
export async function receiveUpload(
  request: IncomingMessage,
  target: string,
  maxBytes: number,
): Promise<void> {
  const parser = openParser(request, maxBytes);
  const writing: Promise<void>[] = [];
  parser.on('file', (name, part: Readable & { truncated?: boolean }) => {
    if (name === 'file' && writing.length === 0) {
      const stored = store(part, target);
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

async function store(part: Readable & { truncated?: boolean }, target: string): Promise<void> {
  const temporary = path.join(path.dirname(target), `.upload-${randomUUID()}`);
  try {
    await mkdir(path.dirname(target), { recursive: true });
    await pipeline(part, createWriteStream(temporary, { flags: 'wx' }));
    if (part.truncated) {
      throw new HttpError(413, 'The file is too large.');
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw toHttpError(error);
  }
}

function toHttpError(error: unknown): unknown {
  const code = errorCode(error) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new HttpError(507, 'No space is left for the file.');
  }
  return ['EISDIR', 'ENOTDIR', 'EACCES', 'EEXIST', 'EPERM', 'EROFS', 'ENAMETOOLONG'].includes(code)
    ? new HttpError(400, `The file cannot be written: ${code}.`)
    : error;
}
