import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { errorCode } from './error-code.js';
import { processIdentity } from './process-identity.js';

const FREE = 'free';
const RETRY_MS = 20;

/**
 * Does the work while no other process (or call) holds the lock of this folder; waits for it if need be. A holder
 * that was killed loses the lock.
 *
 * Node has no flock(2), and a single lock file cannot be taken over from a dead holder without a moment in which two
 * newcomers both take it. So each turn has a number: whoever creates the file numbered one above a finished turn has
 * the lock, creation decides between rivals, and a file is only removed while a higher one exists. The files are
 * symbolic links, because those appear together with their content.
 *
 * @param folder made when it is missing
 * @throws EmbeddedPostgresError when the holder does not finish within `timeoutMs`
 */
export async function withStartLock<T>(
  folder: string,
  work: () => Promise<T>,
  timeoutMs = 180_000,
): Promise<T> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const self = processIdentity(process.pid);
  const content = `${process.pid} ${self?.startedAt ?? ''}`;
  const deadline = Date.now() + timeoutMs;
  let turn = await takeTurn(folder, content);
  while (turn === null) {
    if (Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `Another process has been starting or stopping PostgreSQL for too long (${folder})`,
      );
    }
    await delay(RETRY_MS);
    turn = await takeTurn(folder, content);
  }
  try {
    return await work();
  } finally {
    const released = path.join(folder, `${turn}.${FREE}`);
    await symlink(FREE, released);
    await rename(released, path.join(folder, `${turn}`));
  }
}

/** The number of our turn, or null when it is somebody else's. */
async function takeTurn(folder: string, content: string): Promise<number | null> {
  const last = (await turns(folder)).at(-1) ?? 0;
  if (last > 0 && !(await isOver(path.join(folder, `${last}`)))) {
    return null;
  }
  const mine = last + 1;
  try {
    await symlink(content, path.join(folder, `${mine}`));
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      return null;
    }
    throw error;
  }
  const all = await turns(folder);
  if ((all.at(-1) ?? 0) > mine) {
    // The listing was old: higher turns have come since, and ours was cleared away before we made it again.
    await rm(path.join(folder, `${mine}`), { force: true });
    return null;
  }
  await Promise.all(
    all.filter((turn) => turn < mine).map((turn) => rm(path.join(folder, `${turn}`), { force: true })),
  );
  return mine;
}

async function turns(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((a, b) => a - b);
}

async function isOver(file: string): Promise<boolean> {
  let content: string;
  try {
    content = await readlink(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return false; // Cleared away by a later turn: look again.
    }
    throw error;
  }
  if (content === FREE) {
    return true;
  }
  const [pid, startedAt] = content.split(' ');
  return processIdentity(Number(pid))?.startedAt !== startedAt;
}
