import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { filesCommand, toHookEvents } from './conversation-workspace.service.js';

const HOOK = { type: 'command', command: 'check.sh', timeout: 60, async: false };

describe('toHookEvents', () => {
  it.each([
    ['nothing', null, []],
    ['a text', 'x', []],
    [
      'the published form',
      { stop: [{ matcher: '*', hooks: [HOOK] }] },
      [{ event_type: 'stop', matchers: [{ matcher: '*', hooks: [HOOK] }] }],
    ],
    [
      'the form of others, completed',
      { hooks: { PreToolUse: [{ matcher: 'terminal', hooks: [{ command: 'check.sh' }] }] } },
      [{ event_type: 'pre_tool_use', matchers: [{ matcher: 'terminal', hooks: [HOOK] }] }],
    ],
    [
      'what is no hook',
      { stop: ['x', { hooks: [5, { prompt: 'x' }] }] },
      [
        {
          event_type: 'stop',
          matchers: [
            { matcher: '*', hooks: [] },
            { matcher: '*', hooks: [] },
          ],
        },
      ],
    ],
  ])('reads %s', (_name, config, expected) => {
    expect(toHookEvents(config)).toEqual(expected);
  });
});

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
