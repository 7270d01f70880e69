import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import {
  disownPostmasterPid,
  isPostmasterCommand,
  parsePostmasterPid,
  parsePsLine,
  processIdentity,
  readPostmasterPid,
} from './process-identity.js';

const FULL = '123\n/data/postgres\n1763700000\n5432\n/data/run\n\n  12345 67\nready   \n';

describe('parsePostmasterPid', () => {
  it.each([
    [FULL, { pid: 123, cluster: '/data/postgres', socketDirectory: '/data/run' }],
    [
      '123\n/data/postgres\n1763700000\n5432\n',
      { pid: 123, cluster: '/data/postgres', socketDirectory: null },
    ],
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
      expect(await readPostmasterPid(folder)).toMatchObject({
        pid: 2_147_483_647,
        socketDirectory: '/data/run',
      });
    } finally {
      rmSync(folder, { recursive: true, maxRetries: 10 });
    }
  });
});

describe('parsePsLine', () => {
  it.each([
    [
      'Ss   Sat Nov 21 09:05:01 2026     /opt/pg/bin/postgres -D /data dir/postgres\n',
      {
        state: 'Ss',
        startedAt: 'Sat Nov 21 09:05:01 2026',
        command: '/opt/pg/bin/postgres -D /data dir/postgres',
      },
    ],
    [
      'Z    Tue Nov  3 09:05:01 2026 (sh)',
      { state: 'Z', startedAt: 'Tue Nov  3 09:05:01 2026', command: '(sh)' },
    ],
    ['', null],
  ])('reads %j', (line, expected) => {
    expect(parsePsLine(line)).toEqual(expected);
  });
});

describe('processIdentity', () => {
  it('identifies a running process, and none once it has ended', async () => {
    const child = spawn('sleep', ['600']);
    await once(child, 'spawn');
    const first = processIdentity(child.pid ?? 0);
    expect(first?.command).toMatch(/sleep 600$/);
    expect(processIdentity(child.pid ?? 0)).toEqual(first);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(processIdentity(child.pid ?? 0)).toBeNull();
  });
});
