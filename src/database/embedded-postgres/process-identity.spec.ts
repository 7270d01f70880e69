import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { parseProcStat, parsePsLine, processIdentity } from './process-identity.js';

describe('parseProcStat', () => {
  const rest = '1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200';
  it.each(['node', 'a b', 'odd) R 9 (name'])('finds state and start time behind the name "%s"', (name) => {
    expect(parseProcStat(`42 (${name}) S ${rest}`)).toEqual({ state: 'S', startTime: '987654' });
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
  it('knows a running process, and nobody once it has ended', async () => {
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
