import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import {
  describeInBubblewrap,
  type ProcessHarness,
  processHarness,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
const SYSTEM = /^(usr|bin|sbin|lib\w*|etc|dev|proc|sys|run|tmp|var|workspace)$/;
/** Holds keys, or says who administers the machine how. */
const PRIVATE_CONFIGURATION =
  'shadow gshadow sudoers sudoers.d ssh cron.d fstab hostname machine-id environment gitconfig npmrc pip.conf profile.d ssl/private pki/tls/private slipway docker systemd apt';

let harness: ProcessHarness;
let client: SandboxClient;

async function start(readPaths: string[] = []): Promise<void> {
  harness.backend = await harness.reopen({ readPaths });
  const launch = harness.launch();
  await harness.backend.start(launch, SIGNAL);
  client = await sandboxAnswers(harness.backend, launch);
}

describeInBubblewrap('the machine in bubblewrap', () => {
  beforeAll(async () => {
    harness = await processHarness('bwrap');
    await start();
  });

  afterAll(async () => {
    await harness.close();
  });

  it('is its system, and what leads to the node and the agent server', async () => {
    const tops = new Set(
      [process.execPath, harness.options.agentServer.entry].map((name) => name.split('/')[1]),
    );
    const names = (await client.run('ls -A /')).stdout.trim().split('\n');
    expect(names.filter((name) => !SYSTEM.test(name) && !tops.has(name))).toEqual([]);
    expect((await client.run('ls -A /var')).stdout).toBe('tmp\n');
    expect((await client.run(`cd /etc; ls -d ${PRIVATE_CONFIGURATION} 2>/dev/null`)).stdout).toBe('');
  });

  it.each(['/sys', '/run'])('has nothing in %s but what names are resolved with', async (folder) => {
    const { stdout } = await client.run(`ls -A ${folder}; touch ${folder}/file 2>/dev/null && echo written`);
    expect(stdout.split('\n').filter((name) => !['', 'systemd', 'resolvconf'].includes(name))).toEqual([]);
  });

  it.each([
    ['users', 'whoami && id -un && test "$(getent passwd "$(id -u)")"'],
    ['services and names', 'getent services https && getent hosts localhost'],
    [
      'git',
      'git init -q one && cd one && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && git log',
    ],
    ['shells', 'bash -lc "echo login" && sh -c "echo plain" && env true'],
    ['the loader', 'ldd "$(command -v git)" && ! ldd "$(command -v git)" | grep "not found"'],
    ['time zones', 'test -e /usr/share/zoneinfo/UTC || exit 0; TZ=Asia/Tokyo date | grep JST'],
    ['locales', 'LC_ALL=C.UTF-8 locale charmap 2>&1 | grep UTF-8'],
    [
      'node',
      `'${process.execPath}' -e 'fetch; console.log(require("node:dns").getServers(), Intl.DateTimeFormat().resolvedOptions())'`,
    ],
    [
      'python',
      'command -v /usr/bin/python3 || exit 0; /usr/bin/python3 -c "import ssl, sqlite3, socket, json; print(ssl.create_default_context())"',
    ],
    ['perl', 'command -v perl || exit 0; perl -MPOSIX -e "print POSIX::ctime(0)"'],
    ['java', 'command -v /usr/bin/java || exit 0; /usr/bin/java -version'],
    ['temporary files', 'test -w /tmp && test -w /var/tmp && mktemp'],
  ])('does not lack %s', async (_, command) => {
    expect(await client.run(command)).toMatchObject({ exitCode: 0 });
  });

  it('has the authorities that certificates are checked with', async () => {
    const count = ['--use-openssl-ca', '-p', 'tls.getCACertificates("system").length'];
    const machine = spawnSync(process.execPath, count, { env: {}, encoding: 'utf8' });
    expect(Number(machine.stdout)).toBeGreaterThan(0);
    const { stdout } = await client.run(
      `'${process.execPath}' ${count.map((word) => `'${word}'`).join(' ')}`,
    );
    expect(stdout).toBe(machine.stdout);
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

describeInBubblewrap('what is installed on the machine, in bubblewrap', () => {
  /** A folder of the machine that is none of the system's, and not in `/tmp`: each sandbox has that to itself. */
  let installed: string;

  beforeEach(async () => {
    harness = await processHarness('bwrap');
    installed = await mkdtemp(path.join(homedir(), '.installed-'));
    await chmod(installed, 0o755);
    await writeFile(path.join(installed, 'tool'), '#!/bin/sh\necho it works; sleep 60\n', { mode: 0o755 });
  });

  afterEach(async () => {
    await harness.close();
    await rm(installed, { recursive: true, maxRetries: 10 });
  });

  it('has what the operator names, which nobody can change, and other names of it', async () => {
    await symlink(installed, `${installed}-link`);
    try {
      await start([`${installed}-link`]);
      const { stdout } = await client.run(
        `ls ${installed}-link; touch ${installed}/new 2>/dev/null && echo written`,
      );
      expect(stdout).toBe('tool\n');
    } finally {
      await rm(`${installed}-link`);
    }
  });

  it('refuses a command that it does not show, and says what to do', async () => {
    const launch = harness.launch({
      program: { kind: 'command', command: path.join(installed, 'tool'), args: [] },
    });
    await expect(harness.backend.start(launch, SIGNAL)).rejects.toThrow(
      `do not see its command ${installed}/tool. Name the folder that it is installed in in SANDBOX_READ_PATHS`,
    );
    const backend = await harness.reopen({ readPaths: [installed] });
    await backend.start(launch, SIGNAL);
    expect(await backend.inspect(launch.id)).toMatchObject({ state: 'running' });
  });
});
