import { existsSync, realpathSync } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import path from 'node:path';
import { errorCode } from './error-code.js';
import type { PlatformPackage } from './platform-package.js';
import { canReach, type UnixUser } from './unprivileged-user.js';

interface PackedSymlink {
  source: string;
  target: string;
}

const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

/** Binaries that the database's user can run. */
export interface Binaries {
  /** The folder with `bin`, `lib` and `share`. */
  folder: string;
  /** Whether this call copied them there. */
  copied: boolean;
}

/**
 * Makes the package's binaries ready to run: where npm put them if that works, else as a copy in `home`. npm cannot
 * pack symbolic links; the package's install script would create them, but installs here run no scripts.
 *
 * @param user who will run them; null for our own user
 */
export async function prepareBinaries(
  source: PlatformPackage,
  user: UnixUser | null,
  home: string,
): Promise<Binaries> {
  if (user === null || isRunnableBy(user, source.native)) {
    try {
      await createLibrarySymlinks(source.native, source.native);
      return { folder: source.native, copied: false };
    } catch (error) {
      if (!READ_ONLY.has(errorCode(error) ?? '')) {
        throw error;
      }
    }
  }
  const folder = path.join(home, `postgres-binaries-${source.version}`);
  if (existsSync(folder)) {
    return { folder, copied: false };
  }
  await removeAbandoned(home, `${path.basename(folder)}.`);
  const unfinished = await mkdtemp(`${folder}.`);
  await copyTree(source.native, unfinished);
  await createLibrarySymlinks(source.native, unfinished);
  await rename(unfinished, folder);
  return { folder, copied: true };
}

/** Removes what an interrupted start left in a folder; only call it while holding the start lock. */
export async function removeAbandoned(folder: string, prefix: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  await Promise.all(
    names.map((name) =>
      rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
    ),
  );
}

function isRunnableBy(user: UnixUser, native: string): boolean {
  const real = realpathSync(native);
  return (
    canReach(user, path.join(real, 'bin/postgres'), 5) &&
    canReach(user, path.join(real, 'share/postgresql'), 5)
  );
}

/** Creates the links that `pg-symlinks.json` lists (paths from the package's root) below `native/…` of the target. */
async function createLibrarySymlinks(source: string, target: string): Promise<void> {
  const links: PackedSymlink[] = JSON.parse(await readFile(path.join(source, 'pg-symlinks.json'), 'utf8'));
  for (const link of links) {
    const place = path.join(target, path.relative('native', link.target));
    if (!existsSync(place)) {
      try {
        await symlink(path.relative(path.dirname(link.target), link.source), place);
      } catch (error) {
        // Another start may create the same links at this moment.
        if (errorCode(error) !== 'EEXIST') {
          throw error;
        }
      }
    }
  }
}

/** Copies with modes that let every user run the result, whatever the original's are. */
async function copyTree(source: string, target: string): Promise<void> {
  await mkdir(target, { recursive: true });
  await chmod(target, 0o755);
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const from = path.join(source, entry.name);
    const to = path.join(target, entry.name);
    if (entry.isDirectory()) {
      await copyTree(from, to);
    } else if (entry.isFile() && !entry.name.endsWith('.a')) {
      await copyFile(from, to);
      await chmod(to, (await stat(from)).mode & 0o111 ? 0o755 : 0o644);
    }
  }
}
