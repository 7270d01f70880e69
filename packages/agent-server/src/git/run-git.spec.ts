import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parseEscapedPath, parseGitName, printable, shownName, trustedGit } from './run-git.js';

const MISSING_FOLDER = path.join(tmpdir(), 'no', 'such', 'folder');

it.each([
  ['there is no git', tmpdir(), MISSING_FOLDER, 'There is no git in this sandbox'],
  ['the folder is missing', MISSING_FOLDER, process.env['PATH'] ?? '', 'ENOENT'],
])('reports that %s', async (_, cwd, PATH, message) => {
  const run = trustedGit({
    args: ['--version'],
    cwd,
    environment: { PATH },
    credentials: [],
    timeoutMs: 5000,
  });
  await expect(run).rejects.toThrow(message);
});

describe('file names', () => {
  it.each([
    ['plain.txt', 'plain.txt'],
    ['with space', 'with space'],
    [String.raw`"caf\303\251.txt"`, 'café.txt'],
    [String.raw`"caf\351.txt"`, String.raw`caf\351.txt`],
    [String.raw`"a\\b\351"`, String.raw`a\\b\351`],
    [String.raw`"a\\b"`, String.raw`a\b`],
    [String.raw`"say \"hi\"\t\n"`, 'say "hi"\t\n'],
    [String.raw`"\303\251\351"`, String.raw`\303\251\351`],
  ])('are read from git: %j', (given, name) => {
    expect(parseGitName(given)).toBe(name);
  });

  it('are shown as they are where that is possible', () => {
    expect(shownName(Buffer.from('ünd\\351'))).toBe('ünd\\351');
    expect(shownName(Buffer.from([0x61, 0xe9, 0x5c]))).toBe(String.raw`a\351\\`);
  });

  it.each([
    ['/w/a.txt', null],
    [String.raw`/w/a\b.txt`, null],
    [String.raw`/w/a\399.txt`, null],
    [String.raw`/w/a\351.txt`, { parent: '/w/', rest: String.raw`a\351.txt` }],
    [String.raw`/w/d\351/x\y/z`, { parent: '/w/', rest: String.raw`d\351/x\\y/z` }],
    [String.raw`/a\351`, { parent: '/', rest: String.raw`a\351` }],
  ])('are found in a path: %s', (given, found) => {
    expect(parseEscapedPath(given)).toEqual(found);
  });

  it('are printed by bash as they are', () => {
    expect(printable(String.raw`a\n`)).toBe(String.raw`a\\n`);
  });
});
