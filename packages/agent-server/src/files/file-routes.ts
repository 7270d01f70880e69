import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import busboy from 'busboy';
import { type Request, Router } from 'express';
import { zip, type ZipEntry } from '@slipway/common/zip.js';
import type { Conversation } from '../conversations/conversation.js';
import type { Conversations } from '../conversations/conversations.js';
import { HttpError, InvalidRequestError } from '../http/http-error.js';
import { requestedPath, requireConversationId, type BaseFolder } from '../http/request-parsing.js';
import { type FileFailure, WorkspaceFileError, type WorkspaceFiles } from './workspace-files.js';

/** A file, streamed as it arrives. Throws when the file is larger than allowed. */
type UploadedFile = AsyncIterable<Uint8Array>;

/** Streams the part `file`. @throws HttpError 413, InvalidRequestError without such a part, whatever `store` throws */
async function receiveUpload(
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
    throw new HttpError(400, 'The multipart body is incomplete.');
  }
  if (writing.length === 0) {
    throw new InvalidRequestError({ type: 'missing', loc: ['body', 'file'], msg: 'Field required' });
  }
  await Promise.all(writing);
}

function openParser(request: IncomingMessage, maxBytes: number): busboy.Busboy {
  try {
    return busboy({ headers: request.headers, limits: { fileSize: maxBytes, files: 10, fields: 100 } });
  } catch {
    const msg = 'A multipart body with the part "file" is required';
    throw new InvalidRequestError({ type: 'missing', loc: ['body', 'file'], msg });
  }
}

async function* wholeFile(part: Readable & { truncated?: boolean }): UploadedFile {
  // Destroying the part would block the parser, so an unwanted rest is read and dropped.
  yield* part.iterator({ destroyOnReturn: false });
  if (part.truncated) {
    throw new HttpError(413, 'The file is too large.');
  }
}

interface FileRoutesOptions {
  files: WorkspaceFiles;
  maxUploadBytes: number;
  conversations: Conversations;
  baseFolder: BaseFolder;
}

export function fileRoutes({ files, maxUploadBytes, conversations, baseFolder }: FileRoutesOptions): Router {
  const router = Router({ mergeParams: true });
  const fileOf = (request: Request): string => absolutePath(requestedPath(request), baseFolder(request));

  router.post(['/upload', '/upload/*path'], async (request, response) => {
    const target = fileOf(request);
    await receiveUpload(request, maxUploadBytes, async (content) => {
      await files.write(target, content).catch(asHttpError);
    });
    response.json({ success: true });
  });

  router.get(['/download', '/download/*path'], async (request, response) => {
    const sending = files.open(fileOf(request), async ({ path: real, size, content }) => {
      response.attachment(path.basename(real));
      response.type('application/octet-stream');
      response.set('X-Content-Type-Options', 'nosniff');
      response.set('Content-Length', String(size));
      if (request.method === 'HEAD' || size === 0) {
        response.end();
        return;
      }
      await pipeline(content, response);
    });
    await sending.catch(asHttpError);
  });

  router.get('/download-trajectory/:id', async (request, response) => {
    const conversation = conversations.get(requireConversationId(request.params.id));
    response.attachment(`${conversation.id.replaceAll('-', '')}.zip`);
    response.type('application/octet-stream');
    await pipeline(Readable.from(zip(trajectory(conversation)), { objectMode: false }), response);
  });

  return router;
}

/** The conversation as clients see it, and its log: nothing that is secret is in either. */
function* trajectory(conversation: Conversation): Iterable<ZipEntry> {
  yield { name: 'meta.json', text: JSON.stringify(conversation.info(), null, 2) };
  for (const [index, event] of conversation.log.entries.entries()) {
    const number = String(index).padStart(6, '0');
    yield { name: `events/event-${number}-${event.id}.json`, text: JSON.stringify(event) };
  }
}

/** Resolves against `base`; without one a relative path is refused. @throws HttpError 400 */
export function absolutePath(given: string, base: string | null = null): string {
  const absolute = base === null ? given : path.resolve(base, given);
  if (!path.isAbsolute(absolute) || absolute.includes('\0')) {
    throw new HttpError(400, 'Path must be absolute');
  }
  return path.normalize(absolute);
}

const STATUSES: Partial<Record<FileFailure, [status: number, detail: string]>> = {
  outside: [403, 'Path is outside of the workspace'],
  missing: [404, 'File not found'],
  folder: [400, 'Path is not a file'],
  special: [400, 'Path is not a file'],
  noSpace: [507, 'No space is left for the file.'],
};

/** @throws HttpError in place of a WorkspaceFileError, and every other error as it is */
export function asHttpError(error: unknown): never {
  if (error instanceof WorkspaceFileError) {
    throw new HttpError(...(STATUSES[error.failure] ?? [400, `${error.message}.`]));
  }
  throw error;
}
