import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pastDeadline } from '../../../../test/support/past-deadline.js';
import { ShellSession } from '../../../agent-server/src/tools/shell-session.js';
import { toolWrapper } from './isolation.js';
import { describeInBubblewrap } from './process.sandbox-backend.harness.js';
import { SandboxFiles } from './sandbox-files.js';

const LIMIT_MS = 600_000;

/** Tests the backend's wrapper together with the agent server's shell. */
describeInBubblewrap('a terminal behind the wrapper of tools', () => {
  let folder: string;
  let files: SandboxFiles;
  let shell: ShellSession;

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(path.join(tmpdir(), 'tool-wrapper-')));
    files = new SandboxFiles(folder, 'a');
    await files.create({ instanceId: 'i', hostId: 'h', createdAt: 0 }, null);
    await writeFile(path.join(files.paths.conversations, 'log'), 'the log');
    shell = new ShellSession(files.paths.workspace, toolWrapper('bwrap', files.paths, false));
  });

  afterEach(async () => {
    await shell.reset();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  async function run(command: string): Promise<string> {
    const environment = { PATH: process.env['PATH'] ?? '', HOME: files.paths.home };
    const { output } = await shell.run({
      command,
      timeoutMs: LIMIT_MS,
      environment,
      signal: new AbortController().signal,
    });
    return output;
  }

  it('keeps folder, variables and jobs from command to command', async () => {
    await run('mkdir sub; cd sub; export KEPT=1; sleep 1000 &');
    expect(await run('echo "$KEPT"; pwd; jobs -p | wc -l')).toBe(`1\n${files.paths.workspace}/sub\n1\n`);
    expect(shell.workingDir).toBe(path.join(files.paths.workspace, 'sub'));
  });

  it('ends with everything that it started when it times out', async () => {
    // Every process that inherits the descriptor holds the lock until it ends.
    const script = 'echo begun > begun; while :; do sleep 0.01; done';
    const command = `exec 9> held; flock 9; setsid env -i bash -c '${script}' & sleep 1000`;
    const begun = path.join(files.paths.workspace, 'begun');
    await pastDeadline(
      async () => await run(command),
      () => existsSync(begun),
      LIMIT_MS,
    );
    expect(await run('cat begun; flock --nonblock held true && echo free || echo held')).toBe(
      'begun\nfree\n',
    );
  });

  it('sees only itself, and of the sandbox only the folders of tools', async () => {
    // The wrapper's own, the terminal's two, and the shell.
    expect(await run('cd /proc; seen=([0-9]*); echo "${#seen[@]}"')).toBe('4\n');
    expect(await run(`ls -A ${files.paths.box}`)).toBe('home\nworkspace\n');
    expect(await run(`echo 1 > ${files.paths.sockets} || echo refused`)).toContain('refused');
  });
});
