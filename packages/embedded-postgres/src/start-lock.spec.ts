import { mkdirSync } from 'node:fs';
import { readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../test/support/use-folder.js';
import { processIdentity } from './process-identity.js';
import { withStartLock } from './start-lock.js';

const folder = useFolder();

describe('withStartLock', () => {
  it('lets one work at a time', async () => {
    const lock = path.join(folder.path, 'lock');
    let inside = 0;
    let most = 0;
    const work = async (value: number): Promise<number> => {
      inside += 1;
      most = Math.max(most, inside);
      for (let n = 0; n < 300; n += 1) {
        await readdir(folder.path); // long enough for the others to look again
      }
      inside -= 1;
      return value;
    };
    const results = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => withStartLock(lock, () => work(n))));
    expect(results).toEqual([1, 2, 3, 4, 5, 6]);
    expect(most).toBe(1);
    expect(await readdir(lock)).toHaveLength(1);
  });

  it('is free again when the work fails', async () => {
    await expect(withStartLock(folder.path, () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    expect(await withStartLock(folder.path, () => Promise.resolve('done'))).toBe('done');
  });

  it('is free again when the disk has no room to say so', async () => {
    // In the way of the mark, as a full disk is.
    mkdirSync(path.join(folder.path, '1.free'));
    expect(await withStartLock(folder.path, () => Promise.resolve('first'))).toBe('first');
    expect(await withStartLock(folder.path, () => Promise.resolve('second'), 30_000)).toBe('second');
  });

  it.each([
    ['has ended', '2147483647 whenever'],
    ['had the id of a process that started later', `${process.pid} earlier`],
  ])('takes the lock over from a holder that %s', async (_, content) => {
    await symlink(content, path.join(folder.path, '7'));
    expect(await withStartLock(folder.path, () => Promise.resolve('done'))).toBe('done');
    expect(await readdir(folder.path)).toEqual(['8']);
  });

  it('waits for a living holder, until its timeout', async () => {
    await symlink(`${process.pid} ${processIdentity(process.pid)?.startedAt}`, path.join(folder.path, '7'));
    await expect(withStartLock(folder.path, () => Promise.resolve('done'), 0)).rejects.toThrow(
      /for too long/,
    );
    expect(await readdir(folder.path)).toEqual(['7']);
  });
});
