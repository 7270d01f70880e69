import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';
import { parseEscapedPath, parseGitName, printable, shownName, trustedGit } from './run-git.js';
import { nameCommitter } from './default-committer.js';

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

describe('who commits', () => {
  const folder = temporaryFolder();
  const environment = (): Record<string, string> => ({
    PATH: process.env['PATH'] ?? '',
    HOME: folder(),
    GIT_CONFIG_NOSYSTEM: '1',
  });
  const configured = (): string[] =>
    ['user.name', 'user.email'].map((key) =>
      execFileSync('git', ['config', key], { cwd: folder(), env: environment(), encoding: 'utf8' }).trim(),
    );

  it.each([
    ['is named where nobody has', '', ['Slipway', 'agent@slipway.invalid']],
    ['stays who the image says', '[user]\nname = Bot\nemail = bot@example.com\n', ['Bot', 'bot@example.com']],
    ['gets what is missing', '[user]\nname = Bot\n', ['Bot', 'agent@slipway.invalid']],
  ])('%s', async (_what, before, expected) => {
    writeFileSync(folder('.gitconfig'), before);
    await nameCommitter({ environment: environment(), wrapper: [] });
    expect(configured()).toEqual(expected);
  });

  it('is who the repository says, whatever the default', async () => {
    await nameCommitter({ environment: environment(), wrapper: [] });
    const git = (...args: string[]): void => {
      execFileSync('git', args, { cwd: folder(), env: environment() });
    };
    git('init', '--quiet');
    git('config', 'user.name', 'Ada');
    expect(configured()).toEqual(['Ada', 'agent@slipway.invalid']);
  });
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
