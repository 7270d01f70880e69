import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ProcessSandboxBackend } from './process.backend.js';
import { commandLines } from '../../../../test/support/command-lines.js';
import { until } from '../../../../test/support/until.js';
import {
  describeNetwork,
  type ProcessHarness,
  processHarness,
  sandboxLaunch,
  shellLaunch,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
/** Deeper than the longest path (PATH_MAX). */
const NEST = `for (let level = 0; level < 1000; level += 1) { fs.mkdirSync('nested'); process.chdir('nested'); }`;

describe('the removal of process sandboxes', () => {
  let harness: ProcessHarness;

  beforeEach(async () => {
    harness = await processHarness('none');
  });

  afterEach(async () => {
    spawnSync('chattr', ['-R', '-i', harness.dataDir]);
    await harness.close();
  });

  const existing = () => readdirSync(harness.options.folder);
  const at = (...names: string[]) => path.join(harness.options.folder, ...names);

  it('starts on what cannot be removed, says so once, and goes on trying', async () => {
    const { id } = sandboxLaunch();
    await mkdir(at(id, 'box'), { recursive: true });
    await writeFile(at(id, 'box', 'file'), '');
    await writeFile(at(id, 'box', 'immutable'), '');
    if (spawnSync('chattr', ['+i', at(id, 'box', 'immutable')]).status !== 0) {
      // Only root can make such a file, on some file systems.
      return;
    }
    await expect(harness.backend.remove(id)).rejects.toThrow('files of the sandbox cannot be removed');
    await expect(harness.backend.remove(id)).rejects.toThrow('files of the sandbox cannot be removed');
    expect(await harness.backend.inspect(id)).toMatchObject({ state: 'missing' });
    expect(await harness.backend.list()).toEqual([]);

    const later = await harness.reopen();
    const lines: string[] = [];
    const sweep = async () => {
      const { leftovers, notices } = await later.sweep();
      lines.push(...notices.map(({ message, sandboxId }) => `${message} ${sandboxId}`));
      return leftovers;
    };
    await until(async () => (await sweep()) === 1 && lines.length > 0);
    expect(lines).toEqual([`failed to remove sandbox files ${id}`]);

    spawnSync('chattr', ['-R', '-i', harness.dataDir]);
    const afterRestart = new ProcessSandboxBackend(harness.options);
    await afterRestart.prepare();
    await until(async () => (await afterRestart.sweep()).leftovers === 0 && existing().length === 0);
  });

  it('removes what a service left that died while it removed it, however deep that is', async () => {
    await mkdir(at('left', 'box'), { recursive: true });
    expect(spawnSync(process.execPath, ['-e', NEST], { cwd: at('left', 'box') })).toMatchObject({
      status: 0,
    });
    await rename(at('left'), at('.removed-left-1'));
    const { backend } = harness;
    await until(async () => (await backend.sweep()).leftovers === 0 && existing().length === 0);
    expect(existing()).toEqual([]);
  });
});

describeNetwork('the removal of a stock program behind a relay', () => {
  /** Of all processes of this machine, the command lines that name the sandbox. */
  const processesOf = (id: string): string[] => commandLines().filter((line) => line.includes(id));

  it.each([
    ['runs', 'running', 'exec sleep 1000'],
    ['ignores that it should end', 'running', "trap '' TERM; while :; do sleep 1; done"],
    ['has gone into the background', 'running', 'setsid sleep 1000 & exec sleep 1000'],
    ['has ended by itself', 'stopped', 'exit 7'],
    ['was killed', 'stopped', 'kill -KILL $$'],
  ])('leaves no process where it %s', async (_how, expected, script) => {
    const harness = await processHarness('bwrap', { network: { mode: 'isolated', allow: [] }, graceMs: 100 });
    try {
      const launch = shellLaunch(script, { ports: { WORKER_1: 12_000 } });
      await harness.backend.start(launch, SIGNAL);
      await until(async () => (await harness.backend.inspect(launch.id)).state === expected);
      expect(expected === 'stopped' || processesOf(launch.id).length > 0).toBe(true);
      await harness.backend.remove(launch.id);
      expect(processesOf(launch.id)).toEqual([]);
    } finally {
      await harness.close();
    }
  });
});
