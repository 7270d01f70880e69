import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { findProgram } from './platform.js';
import { SandboxFiles } from './sandbox-files.js';
import { sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import {
  describeNetwork,
  type ProcessHarness,
  processHarness,
  shellLaunch,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
const ROUTE = /^tap0\t00000000\t/m;

describeNetwork('the network of a process sandbox while it starts', () => {
  let harness: ProcessHarness;
  let control: string;
  let begun: string;

  /** A slirp4netns that makes a file, waits while there is a file `hold`, and fails if there is a file `fail` then. */
  beforeEach(async () => {
    const searchPath = process.env['PATH'];
    control = await mkdtemp(path.join(tmpdir(), 'held-network-'));
    begun = path.join(control, 'begun');
    await chmod(control, 0o755);
    const script = `#!/bin/sh
touch ${begun}
while [ -e ${control}/hold ]; do sleep 0.01; done
[ ! -e ${control}/fail ] || { echo 'no network today' >&2; exit 1; }
exec ${await findProgram('slirp4netns', searchPath)} "$@"
`;
    await writeFile(path.join(control, 'slirp4netns'), script, { mode: 0o755 });
    harness = await processHarness('bwrap', {
      network: { mode: 'isolated', allow: [] },
      environment: { PATH: `${control}:${searchPath}` },
    });
  });

  afterEach(async () => {
    await rm(path.join(control, 'hold'), { force: true });
    await harness.close();
    await rm(control, { recursive: true, maxRetries: 10 });
  });

  const mark = async (name: 'hold' | 'fail') => await writeFile(path.join(control, name), '');

  it('lets the agent server answer before it is connected, and requests wait for it', async () => {
    await mark('hold');
    const launch = harness.launch();
    await harness.backend.start(launch, SIGNAL);
    const client = await sandboxAnswers(harness.backend, launch);
    const routes = client.run('cat /proc/net/route');
    expect(await Promise.race([routes, client.isAlive()])).toBe(true);
    await rm(path.join(control, 'hold'));
    expect((await routes).stdout).toMatch(ROUTE);
  });

  // One that a killed service left without a record would be in the way of the next.
  it('is not connected before it has a record', async () => {
    const launch = harness.launch();
    const { paths } = new SandboxFiles(harness.options.folder, launch.id);
    const pipe = `${paths.network}.new`;
    await mkdir(paths.root);
    spawnSync('mkfifo', [pipe]);
    await rm(begun);
    const starting = harness.backend.start(launch, SIGNAL);
    await until(() => existsSync(paths.program));
    await sandboxAnswers(harness.backend, launch);
    const isEarly = existsSync(begun);
    const record = await readFile(pipe);
    await starting;
    await rm(paths.network);
    await writeFile(paths.network, record);
    expect(isEarly).toBe(false);
    await until(() => existsSync(begun));
  });

  it('is paused before it is connected', async () => {
    await mark('hold');
    const launch = harness.launch();
    await harness.backend.start(launch, SIGNAL);
    await sandboxAnswers(harness.backend, launch);
    await harness.backend.pause(launch.id);
    const { state, exit } = await harness.backend.inspect(launch.id);
    expect([state, exit?.cause]).toEqual(['stopped', undefined]);
  });

  it('is there before another program runs', async () => {
    await mark('hold');
    const launch = shellLaunch('echo begun; cat /proc/net/route; sleep 1000');
    await harness.backend.start(launch, SIGNAL);
    expect(await harness.backend.logTail(launch.id)).toBe('');
    await rm(path.join(control, 'hold'));
    await until(async () => (await harness.backend.logTail(launch.id)).includes('tap0'));
    expect(await harness.backend.logTail(launch.id)).toMatch(ROUTE);
  });

  it('ends a sandbox that it cannot be given, and says so', async () => {
    await mark('hold');
    const launch = harness.launch();
    await harness.backend.start(launch, SIGNAL);
    await sandboxAnswers(harness.backend, launch);
    await mark('fail');
    await rm(path.join(control, 'hold'));
    await until(async () => (await harness.backend.inspect(launch.id)).state === 'stopped');
    await until(async () => (await harness.backend.inspect(launch.id)).exit?.cause !== undefined);
    expect((await harness.backend.inspect(launch.id)).exit?.cause).toMatch(/slirp4netns did not connect/);
  });

  // A rejection without a handler ends the service; here it fails the test.
  it('may fail after its start was aborted', async () => {
    await mark('hold');
    const launch = harness.launch();
    const aborter = new AbortController();
    const starting = harness.backend.start(launch, aborter.signal);
    const files = new SandboxFiles(harness.options.folder, launch.id);
    await until(async () => (await files.program()) !== null);
    aborter.abort();
    await starting;
    await mark('fail');
    await rm(path.join(control, 'hold'));
    await until(async () => (await harness.backend.inspect(launch.id)).exit?.cause !== undefined);
    expect((await harness.backend.inspect(launch.id)).exit?.cause).toMatch(/slirp4netns did not connect/);
  });
});
