import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { givenPath, HttpError } from '../http/http-errors.js';
import { describeFailure } from '../log.js';
import { receiveUpload } from './receive-upload.js';

/** Decides which files clients may name: those inside the given folders, wherever symbolic links lead. */
export class AllowedPaths {
  readonly #roots: readonly string[];

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /**
   * The path with every link of it resolved as far as it exists.
   *
   * @throws HttpError 400 when it is not absolute, 403 when it leads elsewhere
   */
  async resolve(given: string): Promise<string> {
    if (!path.isAbsolute(given) || given.includes('\0')) {
      throw new HttpError(400, 'Path must be absolute');
    }
    const real = await realPathOf(path.normalize(given));
    const roots = await Promise.all(this.#roots.map((root) => realPathOf(root)));
    if (!roots.some((root) => isInside(real, root))) {
      throw new HttpError(403, 'Path is outside of the workspace');
    }
    return real;
  }
}

function isInside(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return relative === '' || (relative !== '..' && !relative.startsWith(`..${path.sep}`));
}

/** Links resolved, also of a path whose last parts do not exist yet. */
async function realPathOf(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (error) {
    if (describeFailure(error).code !== 'ENOENT') {
      throw new HttpError(400, 'Path cannot be used');
    }
  }
  const parent = path.dirname(file);
  return path.join(parent === file ? file : await realPathOf(parent), path.basename(file));
}

/** `/api/file`; the path stands in the query or behind the route. */
export function fileRoutes(paths: AllowedPaths, maxUploadBytes: number): Router {
  const router = Router();

  router.post(['/upload', '/upload/*path'], async (request, response) => {
    const target = await paths.resolve(givenPath(request));
    await receiveUpload(request, target, maxUploadBytes);
    response.json({ success: true });
  });

  router.get(['/download', '/download/*path'], async (request, response) => {
    await send(await paths.resolve(givenPath(request)), request, response);
  });

  return router;
}

async function send(file: string, request: Request, response: Response): Promise<void> {
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
  // Only what it had when we looked: a log may grow while it is sent.
  response.set('Content-Length', String(found.size));
  if (request.method === 'HEAD' || found.size === 0) {
    response.end();
    return;
  }
  await pipeline(createReadStream(file, { end: found.size - 1 }), response);
}
