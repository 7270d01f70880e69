import { appendFile, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from '@jest/globals';
import { useFolder } from '../../../../test/support/use-folder.js';
import { rotateLog, readLogTail, relativeWorkingDir } from './sandbox-files.js';

const folder = useFolder();
let log: string;

beforeEach(() => {
  log = path.join(folder.path, 'output.log');
});

it('finds no tail where there is no log', async () => {
  expect(await readLogTail(log)).toBe('');
  await rotateLog(log, 10);
});

it('returns the last whole lines', async () => {
  await writeFile(log, 'one\ntwo\n');
  expect(await readLogTail(log)).toBe('one\ntwo\n');
  await writeFile(log, `${'x'.repeat(5000)}\nlast é\n`);
  expect(await readLogTail(log)).toBe('last é\n');
});

it('rotates a log that is too large, and keeps the program writing to it', async () => {
  await writeFile(log, 'before\n');
  await rotateLog(log, 100);
  expect(await readFile(log, 'utf8')).toBe('before\n');
  await rotateLog(log, 3);
  await appendFile(log, 'after\n');
  expect(await readFile(log, 'utf8')).toBe('after\n');
  expect(await readFile(`${log}.1`, 'utf8')).toBe('before\n');
});

it.each([
  ['workspace', 'workspace'],
  ['work/project/', 'work/project/'],
  ['./a/../b', 'b'],
])('accepts the working folder %s', (given, expected) => {
  expect(relativeWorkingDir(given)).toBe(expected);
});

it.each(['/workspace', '..', '../other', 'a/../..', '.', '', 'home', 'conversations/x', 'run'])(
  'refuses the working folder %j',
  (given) => {
    expect(() => relativeWorkingDir(given)).toThrow('working_dir');
  },
);
