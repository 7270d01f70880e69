import { mkdir, readdir, readlink, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { EmbeddedPostgresError } from './programs.js';
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
  const holder = `${process.pid} ${processIdentity(process.pid)?.startedAt ?? ''}`;
  const deadline = performance.now() + timeoutMs;
  let number: number | null;
  while ((number = await tryAcquire(folder, holder)) === null) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(
        `Another process has been starting or stopping PostgreSQL for too long (${folder})`,
      );
    }
    await delay(RETRY_MS);
  }
  try {
    return await work();
  } finally {
    await release(path.join(folder, `${number}`));
  }
}

/**
 * Marks an acquisition as finished. If the disk has no space for the mark, it is removed, as others go on from finished
 * numbers only.
 */
async function release(file: string): Promise<void> {
  try {
    const released = `${file}.${RELEASED}`;
    await symlink(RELEASED, released);
    await rename(released, file);
  } catch {
    await rm(file, { force: true });
  }
}

async function tryAcquire(folder: string, holder: string): Promise<number | null> {
  const fileOf = (number: number): string => path.join(folder, `${number}`);
  const last = Math.max(0, ...(await acquisitions(folder)));
  if (last > 0 && !(await isFinished(fileOf(last)))) {
    return null;
  }
  const own = last + 1;
  if ((await unlessCode('EEXIST', symlink(holder, fileOf(own)))) === null) {
    return null;
  }
  const all = await acquisitions(folder);
  // A later number shows that the first listing was old: our number was cleared away before we created it again.
  const isOutdated = Math.max(...all) > own;
  const obsolete = isOutdated ? [own] : all.filter((number) => number < own);
  await Promise.all(obsolete.map((number) => rm(fileOf(number), { force: true })));
  return isOutdated ? null : own;
}

async function acquisitions(folder: string): Promise<number[]> {
  return (await readdir(folder)).filter((name) => /^\d+$/.test(name)).map(Number);
}

async function isFinished(file: string): Promise<boolean> {
  const content = await unlessCode('ENOENT', readlink(file));
  if (content === null) {
    return false; // Cleared away by a later holder: look again.
  }
  const [pid, startedAt] = content.split(' ');
  return content === RELEASED || processIdentity(Number(pid))?.startedAt !== startedAt;
}
