import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Only root can mount a disk of a known size, and not everywhere. */
export class NoDisk extends Error {}

/**
 * Everything that is made in the folder for temporary files meanwhile, of this process and of those that it starts, is on a disk of
 * its own.
 *
 * @throws NoDisk where none can be mounted
 */
export async function onSmallDisk<T>(size: string, use: (disk: string) => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) {
    throw new NoDisk('only root can mount a disk of a known size');
  }
  const disk = mkdtempSync(path.join(tmpdir(), 'small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=1777`, 'small-disk', disk], {
      stdio: 'pipe',
    });
  } catch (error) {
    rmSync(disk, { recursive: true, maxRetries: 10 });
    throw new NoDisk('no disk can be mounted here', { cause: error });
  }
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = disk;
  try {
    return await use(disk);
  } finally {
    if (before === undefined) {
      delete process.env['TMPDIR'];
    } else {
      process.env['TMPDIR'] = before;
    }
    execFileSync('umount', ['--lazy', disk]);
    rmSync(disk, { recursive: true, force: true, maxRetries: 10 });
  }
}
