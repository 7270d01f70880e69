import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { removeTree } from './tree-removal.js';

/** Of names whose path is longer than any that the kernel takes (PATH_MAX: 4096 bytes). */
const LEVELS = 700;

let folder: string;
let tree: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tree-removal-'));
  tree = path.join(folder, 'tree');
  await mkdir(tree);
});

afterEach(async () => {
  spawnSync('chattr', ['-R', '-i', folder]);
  await removeTree(folder);
});

/** From the innermost folder outwards, since no path names that one afterwards. */
async function nest(levels: number): Promise<void> {
  let inner = path.join(folder, 'level');
  await mkdir(inner);
  await writeFile(path.join(inner, 'deepest'), 'text');
  for (let level = 0; level < levels; level += 1) {
    const outer = path.join(folder, `outer-${level}`);
    await mkdir(outer);
    await rename(inner, path.join(outer, 'nested'));
    inner = outer;
  }
  await rename(inner, path.join(tree, 'nested'));
}

it('removes folders that are nested beyond the longest path', async () => {
  await nest(LEVELS);
  await expect(rm(tree, { recursive: true })).rejects.toThrow('ENAMETOOLONG');
  await removeTree(tree);
  expect(await readdir(folder)).toEqual([]);
});

it('removes names of any bytes, special files, and folders that nobody may enter', async () => {
  const script = `
    mkdir -p deep/er/closed "$(printf 'no\\377utf')/$(printf 'new\\nline')"
    touch "$(printf 'no\\377utf/f\\300\\200')" deep/er/closed/file ./--help 'a b'
    mkfifo pipe && ln -s / deep/root && ln deep/er/closed/file hard
    chmod 000 deep/er/closed deep/er && chmod 1000 deep`;
  expect(spawnSync('sh', ['-c', script], { cwd: tree, encoding: 'utf8' }).stderr).toBe('');
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});

it('follows no link', async () => {
  const outside = path.join(folder, 'outside');
  await mkdir(outside);
  await writeFile(path.join(outside, 'file'), 'kept');
  await symlink(outside, path.join(tree, 'to-folder'));
  await symlink(path.join(outside, 'file'), path.join(tree, 'to-file'));
  await removeTree(tree);
  const link = path.join(folder, 'link');
  await symlink(outside, link);
  await removeTree(link);
  expect(await readFile(path.join(outside, 'file'), 'utf8')).toBe('kept');
  expect(await readdir(folder)).toEqual(['outside']);
});

it('removes thousands of files and folders, and what is not there', async () => {
  const script = 'mkdir -p a/b && seq 3000 | xargs touch && cd a/b && seq 3000 | xargs mkdir';
  expect(spawnSync('sh', ['-c', script], { cwd: tree }).status).toBe(0);
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
  await removeTree(tree);
});

it('removes folders that are read-only to their owner', async () => {
  await mkdir(path.join(tree, 'cache', 'module'), { recursive: true });
  await writeFile(path.join(tree, 'cache', 'module', 'file'), '');
  await chmod(path.join(tree, 'cache', 'module'), 0o500);
  await chmod(path.join(tree, 'cache'), 0o500);
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});

it('removes all but what cannot be removed, and says why', async () => {
  await mkdir(path.join(tree, 'some', 'where'), { recursive: true });
  await writeFile(path.join(tree, 'some', 'where', 'kept'), '');
  await writeFile(path.join(tree, 'gone'), '');
  if (spawnSync('chattr', ['+i', path.join(tree, 'some', 'where', 'kept')]).status !== 0) {
    // Only root can make such a file, on some file systems.
    return;
  }
  await expect(removeTree(tree)).rejects.toThrow('EPERM');
  const left = await readdir(tree, { recursive: true });
  expect(left).toEqual([expect.not.stringContaining('/'), expect.stringMatching(/\/kept$/)]);
});
