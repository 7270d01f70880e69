import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  disownPostmasterPid,
  isPostmasterCommand,
  parsePostmasterPid,
  readPostmasterPid,
} from './postmaster-pid.js';

const FULL = '123\n/data/postgres\n1763700000\n5432\n/data/run\n\n  12345 67\nready   \n';

describe('parsePostmasterPid', () => {
  it.each([
    [FULL, { pid: 123, socketDirectory: '/data/run' }],
    ['123\n/data/postgres\n1763700000\n5432\n', { pid: 123, socketDirectory: null }],
    ['', null],
    ['garbage\n', null],
    ['-5\n', null],
  ])('reads %j', (text, expected) => {
    expect(parsePostmasterPid(text)).toEqual(expected);
  });
});

describe('isPostmasterCommand', () => {
  it.each([
    ['/opt/bin/postgres -D /data/postgres -c port=5432', true],
    ['/opt/with space/bin/postgres -D /data/postgres', true],
    ['/opt/bin/postgres -D /data/postgres-other', false],
    ['/opt/bin/postgres -D /other/postgres', false],
    ['node server.js -D /data/postgres', false],
    ['postgres: checkpointer', false],
    ['', false],
  ])('%j: %s', (command, expected) => {
    expect(isPostmasterCommand(command, '/data/postgres')).toBe(expected);
  });
});

describe('disownPostmasterPid', () => {
  it('changes the number and nothing else', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'slipway-pid-'));
    try {
      await writeFile(path.join(folder, 'postmaster.pid'), FULL);
      await disownPostmasterPid(folder, folder, 5432);
      expect(readFileSync(path.join(folder, 'postmaster.pid'), 'utf8')).toBe(
        FULL.replace('123\n', '2147483647\n'),
      );
      expect(await readPostmasterPid(folder)).toEqual({ pid: 2_147_483_647, socketDirectory: '/data/run' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
