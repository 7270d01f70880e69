import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { startedSandbox, untilStopped } from '../sandbox-backend.harness.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { DockerHarness, type ImageVariant, imageVariant, describeWithEngine } from './docker.harness.js';

const SIGNAL = new AbortController().signal;
/** Allocates memory until it is stopped. */
const GREEDY = 'const all = []; for (;;) all.push(Buffer.alloc(8_000_000, 1));';
/** Starts programs until that is refused. */
const CROWD = `
  const more = () => require("node:child_process").spawn("sleep", ["60"], { stdio: "ignore" })
    .once("spawn", more)
    .once("error", ({ code }) => { console.log(code); process.exit(); });
  more();
`;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): limits', () => {
  let greedy: ImageVariant;
  let harness: DockerHarness;
  let backend: SandboxBackend;

  beforeAll(async () => {
    greedy = await imageVariant(['node', '-e', GREEDY]);
  });

  afterAll(async () => {
    await greedy.remove();
  });

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    ({ backend } = harness);
  });

  afterEach(async () => {
    await harness.close();
  });

  const started = (launch: SandboxLaunch = harness.launch()): Promise<SandboxClient> =>
    startedSandbox(harness, launch);

  it('runs tools without capabilities on a read-only file system', async () => {
    const client = await started();
    const { stdout } = await client.run(
      'id -u; grep -E "^(CapBnd|CapEff|NoNewPrivs|Seccomp):" /proc/self/status; grep -o " / overlay ro" /proc/mounts; unshare -U true 2>&1 || echo refused',
    );
    expect(stdout.split('\n')).toEqual([
      '10001',
      'CapEff:\t0000000000000000',
      'CapBnd:\t0000000000000000',
      'NoNewPrivs:\t1',
      'Seccomp:\t2',
      ' / overlay ro',
      expect.stringContaining('unshare'),
      'refused',
      '',
    ]);
  });

  it('hides the agent server from tools', async () => {
    const client = await started();
    const { stdout } = await client.run(
      `for folder in /proc/[0-9]*; do
         [ -d $folder ] && ! readlink $folder/exe >/dev/null || continue
         tr '\\0' ' ' <$folder/cmdline; echo
         for file in environ mem maps; do cat $folder/$file 2>&1 | head -c 999; done
         ls $folder/fd $folder/cwd/ 2>&1
       done
       cat /opt/slipway/bin/node 2>&1 | head -c 999`,
    );
    const [commandLine, ...others] = stdout.split('\n').filter((line) => line !== '');
    expect(commandLine).toContain('/opt/slipway/agent-server/main.js');
    expect(others).toEqual(Array.from({ length: 6 }, () => expect.stringContaining('ermission denied')));
  });

  it('enforces the limit of processes', async () => {
    const client = await started();
    const { stdout } = await client.run(`node -e '${CROWD}'`);
    expect(stdout).toBe('EAGAIN\n');
    expect(await client.isAlive()).toBe(true);
  });

  it('reports a program that was killed for its memory', async () => {
    const launch = harness.imageLaunch(greedy.image, { memoryMb: 96 });
    await backend.start(launch, SIGNAL);
    await untilStopped(backend, launch.id);
    expect((await backend.inspect(launch.id)).exit).toEqual({ code: 137, signal: null, outOfMemory: true });
  });

  it('keeps the agent server alive when a tool is killed for its memory, and reports its later exit as clean', async () => {
    const launch = harness.launch({ memoryMb: 384 });
    const client = await started(launch);
    expect((await client.run(`node -e '${GREEDY}'`)).exitCode).not.toBe(0);
    expect(await client.isAlive()).toBe(true);
    await backend.pause(launch.id);
    expect((await backend.inspect(launch.id)).exit).toEqual({ code: 0, signal: null, outOfMemory: false });
  });

  it('applies changed launch options at a resume', async () => {
    const limit =
      'cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max';
    const launch = harness.launch({ memoryMb: 300, env: { LANG: 'first' } });
    const before = await started(launch);
    expect((await before.run(`${limit}; echo $LANG`)).stdout).toBe(`${300 * 1024 * 1024}\nfirst\n`);
    await backend.pause(launch.id);
    const changed = { ...launch, memoryMb: 400, env: { LANG: 'second' } };
    await backend.resume(changed, SIGNAL);
    const after = await sandboxAnswers(backend, changed);
    expect((await after.run(`${limit}; echo $LANG`)).stdout).toBe(`${400 * 1024 * 1024}\nsecond\n`);
  });

  it('starts nothing on a full disk', async () => {
    const full = harness.another({ minFreeBytes: Number.MAX_SAFE_INTEGER });
    await expect(full.start(harness.launch(), SIGNAL)).rejects.toThrow(
      /the disk of the Docker engine has \d+ MB free/,
    );
    expect(await backend.list()).toEqual([]);
  });

  it('reports no disk for an engine over TCP', async () => {
    expect(await harness.another({ dockerHost: 'tcp://127.0.0.1:1' }).disk()).toBeNull();
  });

  it('reports a shortfall when the engine has fewer processors than requested', async () => {
    const said: string[] = [];
    await started(harness.launch({ cpu: 1000, onShortfall: (line) => said.push(line) }));
    expect(said).toEqual([expect.stringMatching(/^The engine has \d+ processors: .* instead of 1000\.$/)]);
  });
});
