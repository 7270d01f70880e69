import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { filesCommand, toPaths } from './file-lists.js';

describe('filesCommand', () => {
  const run = promisify(execFile);

  it('lists files in order, and nothing that was installed, below any folder', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "it's $(touch x) "));
    for (const file of ['b.txt', 'a/c.txt', '.git/config', 'node_modules/x/index.js', 'B.txt']) {
      await mkdir(path.join(folder, path.dirname(file)), { recursive: true });
      await writeFile(path.join(folder, file), '');
    }

    const { stdout } = await run('bash', ['-c', filesCommand(folder)]);

    expect(stdout).toBe('./B.txt\n./a/c.txt\n./b.txt\n');
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  it('lists nothing where there is no folder', async () => {
    const { stdout } = await run('bash', ['-c', filesCommand('/there/is/no/such/folder')]);

    expect(stdout).toBe('');
  });
});

describe('toPaths', () => {
  it.each<[string, string, string[]]>([
    ['relative paths', './a\n./b/c.txt\n', ['a', 'b/c.txt']],
    ['nothing', '', []],
    ['lines of others', 'a\n/etc/passwd\n./\n.//etc\n', []],
    ['what leads elsewhere', './../a\n./a/../../b\n./a/..\n./..a\n', ['..a']],
    ['what is no text', './a\0b\n', ['a\u{fffd}b']],
  ])('takes %s', (_, stdout, expected) => {
    expect(toPaths(stdout)).toEqual(expected);
  });

  it('takes two thousand lines, and a megabyte of JSON', () => {
    const many = Array.from({ length: 3_000 }, (_, index) => `./${index}`).join('\n');
    const long = Array.from({ length: 2_000 }, (_, index) => `./${index}${'\u0001'.repeat(500)}`).join('\n');

    expect(toPaths(many)).toHaveLength(2_000);
    const bytes = Buffer.byteLength(JSON.stringify(toPaths(long)));
    expect(bytes).toBeGreaterThan(990_000);
    expect(bytes).toBeLessThan(1_000_002);
  });
});
