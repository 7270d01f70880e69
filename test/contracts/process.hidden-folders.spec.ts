import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { type SandboxClient, sandboxAnswers } from '../support/sandbox-client.js';
import { type ProcessHarness, processHarness } from './process.sandbox-backend.harness.js';

const HAS_BUBBLEWRAP = spawnSync('bwrap', ['--version']).status === 0;

(HAS_BUBBLEWRAP ? describe : describe.skip)('folders of the machine in bubblewrap', () => {
  jest.setTimeout(60_000);
  let harness: ProcessHarness;
  let client: SandboxClient;

  beforeEach(async () => {
    harness = await processHarness('bwrap');
    const launch = harness.launch();
    await harness.backend.start(launch, new AbortController().signal);
    client = await sandboxAnswers(harness.backend, launch);
  });

  afterEach(async () => {
    await harness.close();
  });

  it.each(['/sys', '/run'])('has nothing in %s but what names are resolved with', async (folder) => {
    const { stdout } = await client.run(`ls -A ${folder}; touch ${folder}/file 2>/dev/null && echo written`);
    expect(stdout.split('\n').filter((name) => !['', 'systemd', 'resolvconf'].includes(name))).toEqual([]);
  });

  it('keeps its mounts in /tmp where they are, which belongs to tools otherwise', async () => {
    // The folder of the sandboxes is below it here.
    const [name = ''] = path.relative('/tmp', harness.dataDir).split(path.sep);
    const anchor = path.join('/tmp', name);
    const { stdout } = await client.run(
      `mv ${anchor} /tmp/moved 2>/dev/null && echo moved; mkdir /tmp/own && mv /tmp/own /tmp/renamed && echo renamed; pwd`,
    );
    expect(stdout).toBe('renamed\n/workspace/project\n');
    expect((await client.run('echo kept > file; cat file')).stdout).toBe('kept\n');
  });
});
