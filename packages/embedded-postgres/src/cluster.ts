import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync, realpathSync, statSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdtemp,
  open,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { removeUnfinished } from './binaries.js';
import { EmbeddedPostgresError, optionsFor, programFailure, type UnixUser } from './programs.js';

export const DATABASE_USER = 'slipway';

const MAX_LOG_BYTES = 5 * 1024 * 1024;
const UNFINISHED = 'postgres-initdb-';

export function dataFolderPaths(dataDir: string): Record<'cluster' | 'password' | 'log' | 'lock', string> {
  const cluster = path.join(dataDir, 'postgres');
  return { cluster, password: `${cluster}-password`, log: `${cluster}.log`, lock: `${cluster}.lock` };
}

export async function readPassword(file: string): Promise<string | null> {
  return (await unlessCode('ENOENT', readFile(file, 'utf8')))?.trim() || null;
}

/** Only our own user can read the file. */
export async function createPassword(file: string): Promise<string> {
  const password = randomBytes(24).toString('base64url');
  await writeFile(`${file}.new`, `${password}\n`, { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  return password;
}

/** Continues the log, or puts one that is too long aside. */
export async function openLog(file: string): Promise<{ fd: number; size: number; close(): Promise<void> }> {
  if (((await unlessCode('ENOENT', stat(file)))?.size ?? 0) > MAX_LOG_BYTES) {
    await rename(file, `${file}.1`);
  }
  const handle = await open(file, 'a', 0o600);
  if (process.getuid?.() === 0) {
    // A start by root (an operator's command) must not lock out the owner of the folder.
    const { uid, gid } = await stat(path.dirname(file));
    await handle.chown(uid, gid);
  }
  return { fd: handle.fd, size: (await handle.stat()).size, close: () => handle.close() };
}

/**
 * Returns null when none was created yet; `folder` is its real path.
 * @throws EmbeddedPostgresError when the entry is a link that leads nowhere
 */
export function findCluster(entry: string): { folder: string; uid: number; gid: number } | null {
  try {
    if (lstatSync(entry, { throwIfNoEntry: false }) === undefined) {
      return null;
    }
    const folder = realpathSync(entry);
    const { uid, gid } = statSync(folder);
    return { folder, uid, gid };
  } catch (error) {
    throw new EmbeddedPostgresError(`DATA_DIR: the database at ${entry} cannot be reached`, error);
  }
}

/** The folder of a cluster. @throws EmbeddedPostgresError when it is another user's or of another major version */
export function checkedCluster(entry: string, serverUid: number | undefined, major: number): string {
  const { folder: cluster = entry, uid } = findCluster(entry) ?? {};
  if (uid === undefined) {
    throw new EmbeddedPostgresError(`The database in ${entry} has disappeared`);
  }
  if (uid !== (serverUid ?? uid)) {
    throw new EmbeddedPostgresError(
      `The database in ${cluster} belongs to user id ${uid}: start as that user or as root, or choose another DATA_DIR`,
    );
  }
  const version = readFileSync(path.join(cluster, 'PG_VERSION'), 'utf8').trim();
  if (version !== `${major}`) {
    throw new EmbeddedPostgresError(
      `The database in ${cluster} was made by PostgreSQL ${version}, but the installed binaries are PostgreSQL ${major}: ` +
        `dump it with ${version} and restore it, or choose another DATA_DIR`,
    );
  }
  return cluster;
}

interface CreateClusterOptions extends Record<'binaries' | 'target' | 'home' | 'password', string> {
  user: UnixUser | null;
  initdbArgs: string[];
}

/**
 * Renames the finished cluster, so that a start that dies leaves none; outside the data folder, `target` becomes a link.
 * Call it only while holding the start lock.
 */
export async function createCluster(options: CreateClusterOptions): Promise<void> {
  const { home, target, user } = options;
  await removeUnfinished(home, UNFINISHED);
  const unfinished = await mkdtemp(path.join(home, UNFINISHED));
  try {
    await chmod(unfinished, 0o700);
    const passwordFile = path.join(unfinished, 'password');
    await writeFile(passwordFile, `${options.password}\n`, { mode: 0o600 });
    if (user !== null) {
      // initdb runs as that user: it reads the password and creates the cluster here.
      await chown(passwordFile, user.uid, user.gid);
      await chown(unfinished, user.uid, user.gid);
    }
    const made = path.join(unfinished, 'cluster');
    await runInitdb(options, [`--pgdata=${made}`, `--pwfile=${passwordFile}`]);
    const isHere = home === path.dirname(target);
    const folder = isHere ? target : path.join(home, `postgres-${randomBytes(6).toString('hex')}`);
    await rename(made, folder);
    await syncFolder(home);
    if (!isHere) {
      await symlink(folder, target);
      await syncFolder(path.dirname(target));
    }
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

async function runInitdb(options: CreateClusterOptions, places: string[]): Promise<void> {
  const args = [
    ...places,
    `--username=${DATABASE_USER}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The built-in provider sorts and compares alike on every machine; the C library's C.UTF-8 is not everywhere.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    ...options.initdbArgs,
  ];
  try {
    await promisify(execFile)(path.join(options.binaries, 'bin/initdb'), args, optionsFor(options.user));
  } catch (error) {
    const reason = programFailure(error);
    throw new EmbeddedPostgresError(`PostgreSQL could not create its database: ${reason}`, error);
  }
}

/** Makes a rename in the folder survive a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}
