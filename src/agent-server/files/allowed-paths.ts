import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from '../../common/errors/error-message.js';
import { HttpError } from '../http/http-error.js';

/** The files that clients may name: those inside the given folders after every symbolic link is resolved. */
export class AllowedPaths {
  readonly #roots: readonly string[];

  constructor(roots: readonly string[]) {
    this.#roots = roots;
  }

  /**
   * The real path, with links resolved as far as it exists.
   *
   * @throws HttpError 400 when it is not absolute, 403 when it leads out of the folders
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

/** Resolves links, also of a path whose last parts do not exist yet. */
async function realPathOf(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') {
      throw new HttpError(400, 'Path cannot be used');
    }
  }
  const parent = path.dirname(file);
  return path.join(parent === file ? file : await realPathOf(parent), path.basename(file));
}
