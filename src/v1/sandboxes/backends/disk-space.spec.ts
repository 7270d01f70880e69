import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { diskSpace } from './disk-space.js';

it('tells how full the disk of a folder is', async () => {
  const { freeBytes = -1, totalBytes = 0 } = (await diskSpace(tmpdir())) ?? {};
  expect(freeBytes).toBeGreaterThanOrEqual(0);
  expect(totalBytes).toBeGreaterThan(freeBytes);
});

it.each([path.join(tmpdir(), 'no', 'such', 'folder'), path.join(process.execPath, 'below-a-file')])(
  'knows nothing of %s',
  async (folder) => {
    expect(await diskSpace(folder)).toBeNull();
  },
);
