import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { EmbeddedPostgresError } from './embedded-postgres.error.js';
import { processIdentity } from './process-identity.js';

const RELEASED = 'free';
const RETRY_MS = 20;

/**
 * Does the work while holding the lock of this folder; a killed holder loses it. Node has no flock(2), and two
 * newcomers could both take over one file, so acquisitions are numbered: creating the number above a finished one
 * takes the lock. Links, since they appear together with their content.
 * @throws EmbeddedPostgresError when the holder does not finish within `timeoutMs`
 */
export async function withStartLock<T>(
  folder: string,
  work: () => Promise<T>,
  timeoutMs = 180_000,
): Promise<T> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const self = processIdentity(process.pid);
  const holder = `${process.pid} ${self?.startedAt ?? ''}`;
  const deadline = performance.now() + timeoutMs;
  let number = await tryAcquire(folder, holder);
  while (number === null) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(
        `Another process has been starting or stopping PostgreSQL for too long (${folder})`,
      );
    }
    await delay(RETRY_MS);
    number = await tryAcquire(folder, holder);
  }
  try {
    return await work();
  } finally {
    await release(folder, number);
  }
}

/** Without disk space for the mark, the acquisition is taken back; others build on finished numbers only. */
async function release(folder: string, number: number): Promise<void> {
  const file = path.join(folder, `${number}`);
  try {
    const released = `${file}.${RELEASED}`;
    await symlink(RELEASED, released);
    await rename(released, file);
  } catch {
    await rm(file, { force: true });
  }
}

async function tryAcquire(folder: string, holder: string): Promise<number | null> {
  const last = (await acquisitions(folder)).at(-1) ?? 0;
  if (last > 0 && !(await isFinished(path.join(folder, `${last}`)))) {
    return null;
  }
  const own = last + 1;
  try {
    await symlink(holder, path.join(folder, `${own}`));
  } catch (error) {
    if (errorCode(error) === 'EEXIST') {
      return null;
    }
    throw error;
  }
  const all = await acquisitions(folder);
  if ((all.at(-1) ?? 0) > own) {
    // The first listing was old: our number was cleared away before we created it again.
    await rm(path.join(folder, `${own}`), { force: true });
    return null;
  }
  const earlier = all.filter((number) => number < own);
  await Promise.all(earlier.map((number) => rm(path.join(folder, `${number}`), { force: true })));
  return own;
}

async function acquisitions(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .toSorted((a, b) => a - b);
}

async function isFinished(file: string): Promise<boolean> {
  let content: string;
  try {
    content = await readlink(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return false; // Cleared away by a later holder: look again.
    }
    throw error;
  }
  if (content === RELEASED) {
    return true;
  }
  const [pid, startedAt] = content.split(' ');
  return processIdentity(Number(pid))?.startedAt !== startedAt;
}
