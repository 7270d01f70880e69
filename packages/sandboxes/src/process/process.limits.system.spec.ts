import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { viewTree } from '@slipway/common/processes/end-processes.js';
import { type Cgroups, findCgroups } from './cgroups.js';
import { untilStopped } from '../sandbox-backend.harness.js';
import { sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import {
  ISOLATIONS,
  nodeLaunch,
  type ProcessHarness,
  processHarness,
  shellLaunch,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
/** Allocates memory until it is stopped. */
const GREEDY = 'const all = []; for (;;) all.push(Buffer.alloc(8_000_000, 1));';
const IS_ROOT = process.getuid?.() === 0;

describe.each(ISOLATIONS)('limits of process sandboxes, isolation %s', (isolation) => {
  let harness: ProcessHarness;
  let cgroups: Cgroups;

  beforeAll(async () => {
    harness = await processHarness(isolation);
    ({ cgroups } = await findCgroups(harness.options.folder));
  });

  afterEach(async () => {
    await harness.clear();
    // Nothing is left once everything has been removed.
    await until(async () => (await cgroups.names()).length === 0);
  });

  afterAll(async () => {
    await harness.close();
  });

  const at = (id: string, ...names: string[]) => path.join(harness.options.folder, id, ...names);

  it('says which limits hold', async () => {
    const [{ text: notice } = { text: '' }] = await harness.backend.prepare();
    expect(notice).toMatch(/^each sandbox is limited to .*16384 open files/);
    expect(notice.includes('NOT LIMITED')).toBe(cgroups.resources.size < 3);
  });

  it('ends a program that uses up its memory, and reports why', async () => {
    if (!cgroups.resources.has('memory')) {
      return;
    }
    const launch = nodeLaunch(GREEDY, { memoryMb: 96 });
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    expect((await harness.backend.inspect(launch.id)).exit).toMatchObject({ outOfMemory: true });
    // A service that starts later reads the same.
    const later = await harness.reopen();
    expect((await later.inspect(launch.id)).exit).toMatchObject({ outOfMemory: true });
  });

  it('reports a later exit of a program whose tool was killed for its memory as what it is', async () => {
    if (!cgroups.resources.has('memory')) {
      return;
    }
    const launch = shellLaunch(`${process.execPath} -e '${GREEDY}'; exit 3`, { memoryMb: 96 });
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    expect((await harness.backend.inspect(launch.id)).exit).toEqual({
      code: 3,
      signal: null,
      outOfMemory: false,
    });
  });

  it('holds the limit of processors', async () => {
    if (!cgroups.resources.has('cpu')) {
      return;
    }
    const burn = `
      const end = Date.now() + 1000; while (Date.now() < end) {}
      console.log('used', process.cpuUsage().user + process.cpuUsage().system);`;
    const launch = nodeLaunch(burn, { cpu: 0.2 });
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    const used = /used (\d+)/.exec(await harness.backend.logTail(launch.id))?.[1];
    expect(Number(used)).toBeLessThan(600_000);
  });

  it('lets others start while a sandbox forks without end, and ends it', async () => {
    if (!cgroups.resources.has('pids') && !IS_ROOT) {
      return;
    }
    const bomb = shellLaunch('bomb() { bomb & bomb & wait; }; touch workspace/began; bomb; sleep 1000');
    await harness.backend.start(bomb, SIGNAL);
    await until(async () => (await harness.backend.logTail(bomb.id)).includes('fork'));
    const calm = harness.launch();
    await harness.backend.start(calm, SIGNAL);
    const client = await sandboxAnswers(harness.backend, calm);
    expect((await client.run('echo calm')).stdout).toBe('calm\n');
    await harness.backend.remove(bomb.id);
    const marker = `SLIPWAY_SANDBOX=instance-of-a-test/${bomb.id}`;
    expect(viewTree({ root: null, marker, user: null })?.members).toEqual([]);
    expect(existsSync(at(bomb.id))).toBe(false);
    expect(await client.isAlive()).toBe(true);
  });

  it('limits open files, the size of files, and core dumps', async () => {
    const limits = { ...harness.options.limits, fileMb: 1 };
    const backend = await harness.reopen({ limits });
    const launch = shellLaunch(
      'cd workspace; ulimit -n; ulimit -c; truncate -s 100M sparse; dd if=/dev/zero of=big bs=1M count=3; echo end',
    );
    await backend.start(launch, SIGNAL);
    await until(async () => (await backend.logTail(launch.id)).endsWith('end\n'));
    const [files, core] = (await backend.logTail(launch.id)).split('\n');
    expect([files, core]).toEqual(['16384', '0']);
    expect((await readFile(at(launch.id, 'box/workspace/big'))).length).toBe(1024 * 1024);
    expect((await readFile(at(launch.id, 'box/workspace/sparse'))).length).toBe(0);
  });
});
