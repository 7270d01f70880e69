import { access, constants, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from './errors/error-message.js';

/**
 * Makes a folder for its owner alone, and those above it.
 *
 * @returns whether it was made now
 * @throws Error where it cannot be made or written, in one line
 */
export async function makePrivateFolder(folder: string): Promise<boolean> {
  try {
    const isNew = await make(folder);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return isNew;
  } catch (error) {
    const reason = errorCode(error) ?? 'unknown';
    throw new Error(`${folder} cannot be created or written (${reason})`, { cause: error });
  }
}

/** The option `recursive` never ends where a file system calls a new folder missing, as /proc does. */
async function make(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    const above = path.dirname(folder);
    if (errorCode(error) === 'EEXIST' && (await stat(folder)).isDirectory()) {
      return false;
    }
    if (errorCode(error) !== 'ENOENT' || (await stat(above).catch(() => null)) !== null) {
      throw error;
    }
    await make(above);
    return await make(folder);
  }
}
