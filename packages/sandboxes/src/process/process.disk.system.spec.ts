import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ProcessSandboxBackend } from './process.backend.js';
import { sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import { type ProcessHarness, processHarness, shellLaunch } from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
const MEGABYTE = 1024 * 1024;

/** A disk of their own; only root can mount one, and not in most containers. */
const mountSmall = (folder: string) =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=300m,nr_inodes=20k', 'tmpfs', folder]).status === 0;

function canMount(): boolean {
  const folder = mkdtempSync(path.join(tmpdir(), 'small-disk-'));
  try {
    return mountSmall(folder) && spawnSync('umount', [folder]).status === 0;
  } finally {
    rmdirSync(folder);
  }
}

(canMount() ? describe : describe.skip)('the disk of process sandboxes', () => {
  let harness: ProcessHarness;

  beforeEach(async () => {
    harness = await processHarness('none');
    const { folder } = harness.options;
    mountSmall(folder);
    await chmod(folder, 0o711);
  });

  afterEach(async () => {
    await harness.close().catch(() => undefined);
    spawnSync('umount', ['-l', harness.options.folder]);
    await harness.close();
  });

  const backendWith = async (fileLimits: Partial<ProcessHarness['options']['fileLimits']>) =>
    await harness.reopen({ fileLimits: { ...harness.options.fileLimits, ...fileLimits } });

  it.each([
    ['bytes', 'head -c 1G /dev/zero > big'],
    ['whole files at once', 'for file in $(seq 20); do fallocate -l 20M $file; done'],
    ['a file that has no name any more', 'exec 9> gone; rm gone; head -c 1G /dev/zero >&9'],
    ['files', 'mkdir -p many; cd many; seq 30000 | xargs touch'],
  ])('ends what fills it with %s, with a cause, and nobody else', async (_, fill) => {
    const backend = await backendWith({ minFreeBytes: 100 * MEGABYTE });
    const calm = harness.launch();
    await backend.start(calm, SIGNAL);
    const client = await sandboxAnswers(backend, calm);
    const filler = shellLaunch(`cd workspace; ${fill}; echo full; sleep 1000`);
    await backend.start(filler, SIGNAL);
    await until(async () => {
      await backend.sweep();
      return (await backend.inspect(filler.id)).state === 'stopped';
    });
    const facts = await backend.inspect(filler.id);
    expect(facts.exit).toMatchObject({
      cause: expect.stringMatching(
        /^It was stopped because it was filling the disk: the disk of DATA_DIR has /,
      ),
    });
    // As after a restart; nothing is prepared, for which the disk may have no room yet.
    expect(await new ProcessSandboxBackend(harness.options).inspect(filler.id)).toEqual(facts);
    expect(await backend.inspect(calm.id)).toMatchObject({ state: 'running' });
    await backend.remove(filler.id);
    await backend.sweep();
    // Commands need room for their events, which a quick filler leaves to none.
    expect((await client.run('echo calm')).stdout).toBe('calm\n');
    const another = shellLaunch('touch workspace/again; sleep 1000');
    await backend.start(another, SIGNAL);
    await until(() => existsSync(path.join(harness.options.folder, another.id, 'box/workspace/again')));
  });

  it.each([
    ['byte', 'head -c 1G /dev/zero > workspace/big', 'freeBytes'],
    ['file', 'mkdir -p workspace/many; cd workspace/many; seq 30000 | xargs touch', 'freeFiles'],
  ] as const)(
    'knows after a restart what ended a sandbox that left no room for another %s',
    async (_, fill, free) => {
      const backend = await backendWith({ minFreeBytes: 100 * MEGABYTE });
      const filler = shellLaunch(`${fill}; sleep 1000`);
      await backend.start(filler, SIGNAL);
      await until(async () => (await backend.disk())?.[free] === 0);
      await until(async () => {
        await backend.sweep();
        return (await backend.inspect(filler.id)).state === 'stopped';
      });
      expect(await new ProcessSandboxBackend(harness.options).inspect(filler.id)).toMatchObject({
        exit: { cause: expect.stringContaining('It was stopped because it was filling the disk') },
      });
    },
  );

  it('keeps answering about sandboxes whose log cannot be rotated', async () => {
    const backend = await backendWith({ logBytes: 1000, minFreeBytes: 0 });
    const launch = shellLaunch('seq 10000; head -c 1G /dev/zero > workspace/big; sleep 1000');
    await backend.start(launch, SIGNAL);
    await until(async () => ((await backend.disk())?.freeBytes ?? 1) === 0);
    expect(await backend.list()).toMatchObject([{ id: launch.id, state: 'running' }]);
  });
});
