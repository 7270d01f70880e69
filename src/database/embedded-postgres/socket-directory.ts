import { createHash } from 'node:crypto';
import { chown, lstat, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { errorCode } from './error-code.js';
import type { UnixUser } from './unprivileged-user.js';

/** PostgreSQL and its clients name the socket after the port, even where nothing listens on TCP. */
export const SOCKET_PORT = 5432;

/** The length of `sockaddr_un.sun_path` without its final zero: 107 on Linux (unix(7)), 103 on macOS. */
const MAX_SOCKET_PATH_BYTES: Partial<Record<NodeJS.Platform, number>> = { darwin: 103 };

/**
 * The folder for the database's socket: the cluster itself, which is private already, unless the path would be longer
 * than the system takes; then one named after it in a folder for temporary files.
 */
export function socketDirectoryFor(cluster: string, temporary: string, platform: NodeJS.Platform): string {
  const limit = MAX_SOCKET_PATH_BYTES[platform] ?? 107;
  const name = `slipway-${createHash('sha256').update(cluster).digest('hex').slice(0, 16)}`;
  const fits = (folder: string): boolean =>
    Buffer.byteLength(path.join(folder, `.s.PGSQL.${SOCKET_PORT}`)) <= limit;
  return [cluster, path.join(temporary, name)].find(fits) ?? path.join('/tmp', name);
}

/**
 * Makes a socket folder of our own (mode 700), or makes sure that the existing one is.
 *
 * @param user who runs the database; null for our own user
 * @throws EmbeddedPostgresError when somebody else made it, who could then listen in our place
 */
export async function ensureSocketDirectory(folder: string, user: UnixUser | null): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
    if (user !== null) {
      await chown(folder, user.uid, user.gid);
    }
    return;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') {
      throw error;
    }
  }
  const found = await lstat(folder);
  const owner = user?.uid ?? process.getuid?.();
  if (!found.isDirectory() || found.uid !== owner || (found.mode & 0o077) !== 0) {
    throw new EmbeddedPostgresError(`${folder} is not a private folder of the database's user: remove it`);
  }
}
