import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { HttpError } from '../http/http-error.js';
import { requestedPath } from '../http/request-parsing.js';
import { receiveUpload } from './receive-upload.js';
import { type FileFailure, WorkspaceFileError, type WorkspaceFiles } from './workspace-files.js';

/** `/api/file`; the path is in the query or behind the route. */
export function fileRoutes(files: WorkspaceFiles, maxUploadBytes: number): Router {
  const router = Router();

  router.post(['/upload', '/upload/*path'], async (request, response) => {
    const target = absolutePath(requestedPath(request));
    await receiveUpload(request, maxUploadBytes, async (content) => {
      await files.write(target, content).catch(asHttpError);
    });
    response.json({ success: true });
  });

  router.get(['/download', '/download/*path'], async (request, response) => {
    await sendFile(files, absolutePath(requestedPath(request)), request, response);
  });

  return router;
}

/** @throws HttpError 400 */
export function absolutePath(given: string): string {
  if (!path.isAbsolute(given) || given.includes('\0')) {
    throw new HttpError(400, 'Path must be absolute');
  }
  return path.normalize(given);
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

async function sendFile(
  files: WorkspaceFiles,
  file: string,
  request: Request,
  response: Response,
): Promise<void> {
  const sending = files.open(file, async ({ path: real, size, content }) => {
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
}
