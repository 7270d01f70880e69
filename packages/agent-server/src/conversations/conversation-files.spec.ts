import { expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { keepReserve } from './conversation-files.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';

const MIB = 1024 * 1024;
const folder = temporaryFolder();

it('keeps room on the disk until that is full, and again when there is room', async () => {
  let free = 100 * MIB;
  const look = async (): Promise<void> =>
    await keepReserve(folder(), { bavail: free, bsize: 1, files: 0, ffree: 0 });
  const file = folder('.reserve');
  await look();
  expect((await stat(file)).size).toBe(2 * MIB);
  free = 2 * MIB;
  await look();
  expect(existsSync(file)).toBe(true);
  for (const bytes of [0, 2 * MIB, 7 * MIB]) {
    free = bytes;
    await look();
    expect(existsSync(file)).toBe(false);
  }
  free = 9 * MIB;
  await look();
  expect(existsSync(file)).toBe(true);
});

it('keeps room for a file on a disk that takes no more of them', async () => {
  let ffree = 100;
  const look = async (): Promise<void> =>
    await keepReserve(folder(), { bavail: 100, bsize: MIB, files: 1000, ffree });
  const file = folder('.reserve');
  await look();
  expect(existsSync(file)).toBe(true);
  for (const left of [0, 1]) {
    ffree = left;
    await look();
    expect(existsSync(file)).toBe(false);
  }
  ffree = 16;
  await look();
  expect(existsSync(file)).toBe(true);
});

it('measures the disk that its folder is on', async () => {
  await keepReserve(folder());
  expect(existsSync(folder('.reserve'))).toBe(true);
});
