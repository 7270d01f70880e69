import { existsSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { useFolder } from '../../test/support/use-folder.js';
import { makeDataDir } from './data-dir.js';

const folder = useFolder();

it('makes a folder that is private, once', async () => {
  const dataDir = path.join(folder.path, 'a/b/data');
  expect(await makeDataDir(dataDir)).toBe(true);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  expect(await makeDataDir(dataDir)).toBe(false);
});

it.each([
  ['a file', () => path.join(folder.path, 'file'), 'EEXIST'],
  ['below a file', () => path.join(folder.path, 'file/data'), 'ENOTDIR'],
  ...(existsSync('/proc/self')
    ? [['where no folder can be made', () => '/proc/slipway/data', 'ENOENT'] as const]
    : []),
])('says that it cannot be made: %s', async (_case, dataDir, code) => {
  writeFileSync(path.join(folder.path, 'file'), '');
  await expect(makeDataDir(dataDir())).rejects.toThrow(
    `DATA_DIR: ${dataDir()} cannot be created or written (${code})`,
  );
});
