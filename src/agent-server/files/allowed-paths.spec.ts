import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { AllowedPaths } from './allowed-paths.js';

let folder: string;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(path.join(tmpdir(), 'allowed-paths-')));
  await mkdir(path.join(folder, 'workspace/sub'), { recursive: true });
  await mkdir(path.join(folder, 'workspace-2'));
  await writeFile(path.join(folder, 'outside'), 'x');
  await symlink('../outside', path.join(folder, 'workspace/link'));
  await symlink('..', path.join(folder, 'workspace/up'));
  await symlink('sub', path.join(folder, 'workspace/inner'));
  await symlink('../not-there', path.join(folder, 'workspace/dangling'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

it.each([
  ['workspace/a', 'workspace/a'],
  ['workspace/new/deep/a', 'workspace/new/deep/a'],
  ['workspace/inner/a', 'workspace/sub/a'],
  ['workspace/sub/../a', 'workspace/a'],
  ['workspace', 'workspace'],
])('allows %s', async (given, expected) => {
  const paths = new AllowedPaths([path.join(folder, 'workspace')]);
  expect(await paths.resolve(`${folder}/${given}`)).toBe(path.join(folder, expected));
});

it.each([
  'outside',
  'workspace/../outside',
  'workspace/link',
  'workspace/up/outside',
  'workspace-2/a',
  'workspace/up/new',
])('rejects %s', async (given) => {
  const paths = new AllowedPaths([path.join(folder, 'workspace')]);
  await expect(paths.resolve(`${folder}/${given}`)).rejects.toMatchObject({ status: 403 });
});

it.each(['workspace/a', '', '/a\0b'])('rejects %j, which is not an absolute path', async (given) => {
  await expect(new AllowedPaths([folder]).resolve(given)).rejects.toMatchObject({ status: 400 });
});
