import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { HttpError } from '../http/http-error.js';
import { requestedPath } from '../http/request-parsing.js';
import type { AllowedPaths } from './allowed-paths.js';
import { receiveUpload } from './receive-upload.js';

/** `/api/file`; the path is in the query or behind the route. */
export function fileRoutes(paths: AllowedPaths, maxUploadBytes: number): Router {
  const router = Router();

  router.post(['/upload', '/upload/*path'], async (request, response) => {
    const target = await paths.resolve(requestedPath(request));
    await receiveUpload(request, target, maxUploadBytes);
    response.json({ success: true });
  });

  router.get(['/download', '/download/*path'], async (request, response) => {
    await sendFile(await paths.resolve(requestedPath(request)), request, response);
  });

  return router;
}

async function sendFile(file: string, request: Request, response: Response): Promise<void> {
  const found = await stat(file).catch(() => null);
  if (found === null) {
    throw new HttpError(404, 'File not found');
  }
  if (!found.isFile()) {
    throw new HttpError(400, 'Path is not a file');
  }
  response.attachment(path.basename(file));
  response.type('application/octet-stream');
  response.set('X-Content-Type-Options', 'nosniff');
  // Only the size it had just now: a log may grow while it is sent.
  response.set('Content-Length', String(found.size));
  if (request.method === 'HEAD' || found.size === 0) {
    response.end();
    return;
  }
  await pipeline(createReadStream(file, { end: found.size - 1 }), response);
}
