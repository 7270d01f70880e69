import { statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** Two workers keep some ten databases of 10 MB each at a time, and the server's own files. */
const MIN_MEMORY_BYTES = 2 * 2 ** 30;

/** For the files of databases, which are some thousand: in memory, where that has room, a copy takes a tenth of the time. */
export async function fastFolder(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs('/dev/shm');
    return bavail * bsize >= MIN_MEMORY_BYTES ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}
