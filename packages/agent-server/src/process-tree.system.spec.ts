import { describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { processLives } from '../../../test/support/process-lives.js';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';
import { pastDeadline } from '../../../test/support/past-deadline.js';
import { until } from '../../../test/support/until.js';
import { type RunCommandOptions, runCommand } from './process-tree.js';

const folder = temporaryFolder();
const ENV = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' };

async function run(script: string, options: Partial<RunCommandOptions> = {}) {
  const output = { stdout: '', stderr: '' };
  const result = await runCommand({
    command: ['bash', '-c', script],
    cwd: tmpdir(),
    env: ENV,
    timeoutMs: null,
    onOutput: (stream, text) => {
      output[stream] += text;
    },
    ...options,
  });
  return { ...result, ...output };
}

/** Runs what has no more time once it has written its pid. */
async function runOut(script: string) {
  const timeoutMs = 600_000;
  return await pastDeadline(
    async () => await run(script, { timeoutMs }),
    async () => (await written()) !== '',
    timeoutMs,
  );
}

const written = async (): Promise<string> => (await readFile(folder('pid'), 'utf8').catch(() => '')).trim();

async function pid(): Promise<number> {
  await until(async () => (await written()) !== '');
  return Number(await written());
}

describe('runCommand', () => {
  it('reports exit code and both streams', async () => {
    expect(await run('echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      timedOut: false,
      stdout: 'out\n',
      stderr: 'err\n',
    });
  });

  it('reports which signal ended it', async () => {
    expect(await run('kill -TERM $$')).toMatchObject({ exitCode: 143, timedOut: false });
  });

  it('inherits nothing', async () => {
    process.env['OF_THE_SERVER'] = 'not for tools';
    expect((await run('echo "[$OF_THE_SERVER]"')).stdout).toBe('[]\n');
    delete process.env['OF_THE_SERVER'];
  });

  it('decodes characters that arrive in two pieces', async () => {
    expect((await run(String.raw`printf '\xc3'; sleep 0.05; printf '\xa4'`)).stdout).toBe('ä');
  });

  it('throws when the program does not exist', async () => {
    await expect(run('', { command: ['/no/such/program'] })).rejects.toThrow(/ENOENT/);
  });

  it('starts nothing after an abort', async () => {
    const result = await run('echo x', { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ exitCode: null, stdout: '' });
  });

  it('kills the whole tree after the timeout, a setsid child too', async () => {
    const result = await runOut(`setsid bash -c 'echo $$ > ${folder()}/pid; exec sleep 1000' & sleep 1000`);
    expect(result).toMatchObject({ exitCode: null, timedOut: true });
    expect(await processLives(await pid())).toBe(false);
  });

  it('kills the tree when it is aborted, children without our marker too', async () => {
    const aborter = new AbortController();
    const running = run(`env -i /bin/bash -c 'echo $$ > ${folder()}/pid; exec /bin/sleep 1000'; true`, {
      signal: aborter.signal,
    });
    const id = await pid();
    aborter.abort();
    expect(await running).toMatchObject({ exitCode: null, timedOut: false });
    expect(await processLives(id)).toBe(false);
  });

  it('leaves nothing behind after a normal end, and does not wait for processes that hold the pipes', async () => {
    const result = await run(
      `setsid sleep 1000 & echo $! > ${folder()}/pid; until [ -s ${folder()}/pid ]; do :; done`,
    );
    expect(result.exitCode).toBe(0);
    expect(await processLives(await pid())).toBe(false);
  });

  // As `service` starts the daemons of Debian: without the environment, in a session of their own, and orphaned.
  it.each([
    ['ends', 'true', run],
    ['takes too long', 'sleep 1000', runOut],
  ])('waits for no daemon that holds the pipes when a program %s', async (_, last, runIt) => {
    const daemon = `env -i /usr/bin/setsid -f /bin/bash -c 'echo $$ > ${folder()}/pid; exec /bin/sleep 1000'`;
    const result = await runIt(`echo begun; ${daemon}; until [ -s ${folder()}/pid ]; do :; done; ${last}`);
    process.kill(await pid());
    expect(result).toMatchObject({ timedOut: last !== 'true', stdout: 'begun\n' });
  });

  it('stops reading what such a daemon goes on writing', async () => {
    const daemon = `env -i /usr/bin/setsid -f /bin/bash -c 'echo $$ > ${folder()}/pid; exec /usr/bin/yes'`;
    const result = await run(`${daemon}; until [ -s ${folder()}/pid ]; do :; done`, {
      onOutput: async () => await setTimeout(1),
    });
    expect(result.exitCode).toBe(0);
    // Its pipe is closed, which ends it.
    const id = await pid();
    await until(async () => !(await processLives(id)));
  });

  it('reads all output of a program that has ended, however slow its consumer is', async () => {
    let length = 0;
    const result = await run('head -c 300000 /dev/zero | tr "\\0" x', {
      onOutput: async (_stream, text) => {
        length += text.length;
        await setTimeout(700);
      },
    });
    expect([result.exitCode, length]).toEqual([0, 300_000]);
  });

  it('reads no faster than its consumer', async () => {
    let taken = 0;
    const aborter = new AbortController();
    const running = run('yes', {
      signal: aborter.signal,
      onOutput: (_stream, text) => {
        taken += text.length;
        return taken > 1_000_000 ? aborter.abort() : undefined;
      },
    });
    expect(await running).toMatchObject({ exitCode: null });
    expect(taken).toBeLessThan(10_000_000);
  });
});
