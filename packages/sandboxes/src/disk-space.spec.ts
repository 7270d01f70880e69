import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { diskSpace, spaceProblem } from './disk-guard.js';

it('measures the disk of a folder', async () => {
  const { freeBytes = -1, totalBytes = 0 } = (await diskSpace(tmpdir())) ?? {};
  expect(freeBytes).toBeGreaterThanOrEqual(0);
  expect(totalBytes).toBeGreaterThan(freeBytes);
});

it.each([path.join(tmpdir(), 'no', 'such', 'folder'), path.join(process.execPath, 'below-a-file')])(
  'returns null for %s',
  async (folder) => {
    expect(await diskSpace(folder)).toBeNull();
  },
);

const MEGABYTE = 1024 * 1024;
const space = (freeBytes: number, freeFiles: number | null = null) => ({
  freeBytes,
  totalBytes: 1000 * MEGABYTE,
  freeFiles,
});

it.each([[null], [space(200 * MEGABYTE)], [space(1000 * MEGABYTE)]])('reports no problem for %j', (given) => {
  expect(spaceProblem(given, 200 * MEGABYTE, 'the disk')).toBeNull();
});

it('says how much space is missing and what to do', () => {
  expect(spaceProblem(space(200 * MEGABYTE - 1), 200 * MEGABYTE, 'the disk of DATA_DIR')).toBe(
    'The sandbox cannot be started: the disk of DATA_DIR has 199 MB free and 200 MB are needed. Remove sandboxes or free some space.',
  );
});

it('says that a disk has no room for more files', () => {
  expect(spaceProblem(space(1000 * MEGABYTE, 500), 200 * MEGABYTE, 'the disk')).toContain(
    'no room for more files',
  );
});
