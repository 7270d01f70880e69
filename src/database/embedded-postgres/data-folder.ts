import { randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  chown,
  constants,
  mkdir,
  open,
  readFile,
  rename,
  stat,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { errorCode } from './error-code.js';
import type { UnixUser } from './unprivileged-user.js';

const MAX_LOG_BYTES = 5 * 1024 * 1024;

/**
 * Makes the data folder where it is missing: for nobody but its owner, and when that is root, for the database's user
 * to pass through. An existing folder keeps its mode.
 *
 * @throws EmbeddedPostgresError when it cannot be made or written
 */
export async function ensureDataDir(dataDir: string, user: UnixUser | null): Promise<void> {
  try {
    const made = await mkdir(dataDir, { recursive: true });
    if (made !== undefined) {
      if (user !== null) {
        await chown(dataDir, 0, user.gid);
      }
      await chmod(dataDir, user === null ? 0o700 : 0o710);
    }
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `DATA_DIR: ${dataDir} cannot be created or written (${errorCode(error) ?? 'unknown'})`,
      error,
    );
  }
}

/** The password in this file, which only its owner can read; null when there is none. */
export async function readPassword(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

/** Makes up a password and keeps it in a file of mode 600 of our own user. */
export async function createPassword(file: string): Promise<string> {
  const password = randomBytes(24).toString('base64url');
  await writeFile(`${file}.new`, `${password}\n`, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  return password;
}

/** Opens the server's log for appending; one that has grown large is put aside first, in place of the one before. */
export async function openLog(file: string): Promise<{ fd: number; size: number; close(): Promise<void> }> {
  try {
    if ((await stat(file)).size > MAX_LOG_BYTES) {
      await rename(file, `${file}.1`);
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') {
      throw error;
    }
  }
  const handle = await open(file, 'a', 0o600);
  if (process.getuid?.() === 0) {
    // A start by root (an operator's command) must not lock out the user whose folder it is.
    const { uid, gid } = await stat(path.dirname(file));
    await handle.chown(uid, gid);
  }
  return { fd: handle.fd, size: (await handle.stat()).size, close: () => handle.close() };
}

/** Writes a folder's entries to the disk, so that a rename in it survives a power failure. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The folder name of the log, the password and the lock beside the cluster, all in the data folder. */
export function dataFolderPaths(dataDir: string): {
  cluster: string;
  password: string;
  log: string;
  lock: string;
} {
  const at = (name: string): string => path.join(dataDir, name);
  return {
    cluster: at('postgres'),
    password: at('postgres-password'),
    log: at('postgres.log'),
    lock: at('postgres.lock'),
  };
}
