import { chmod, mkdtemp, readFile, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Two workers keep some ten databases of 10 MB each at a time, and the server's own files. */
const MIN_MEMORY_BYTES = 2 * 2 ** 30;

/** Holds the thousands of files of a database. In memory, where that has room, a copy takes a tenth of the time. */
export async function fastFolder(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs('/dev/shm');
    return bavail * bsize >= MIN_MEMORY_BYTES ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** A folder for everything that tests keep for a while, programs included; null where memory has no room for it, or runs none. */
export async function makeFastTemporaryFolder(): Promise<string | null> {
  const home = await fastFolder();
  const mounts = await readFile('/proc/self/mounts', 'utf8').catch(() => '');
  const [, options = 'noexec'] = new RegExp(`^\\S+ ${home} \\S+ (\\S+)`, 'm').exec(mounts) ?? [];
  if (home === tmpdir() || options.split(',').includes('noexec')) {
    return null;
  }
  // Short, since the paths of sockets are bounded.
  const folder = await mkdtemp(path.join(home, 'st-'));
  await chmod(folder, 0o1777);
  return folder;
}
