import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { toolWrapper } from './isolation.js';
import { describeInBubblewrap } from './process.sandbox-backend.harness.js';
import { SandboxFiles } from './sandbox-files.js';
import { startGitHttpServer } from '../../../../test/fakes/git-http-server.js';
import { SESSION_KEY } from '../../../agent-server/test/support/agent-server-client.js';
import {
  startTestAgentServer,
  type TestAgentServer,
} from '../../../agent-server/test/support/test-agent-server.js';
import { until } from '../../../../test/support/until.js';

const RENAMEAT2 = process.arch === 'arm64' ? 276 : 316;
/** Exchanges two names as fast as it can: `renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)`. */
const EXCHANGE = `open(F, '>', 'exchanging'); while (1) { syscall(${RENAMEAT2}, -100, $ARGV[0], -100, $ARGV[1], 2); }`;
const ATTEMPTS = 25;
const TOKEN = 'token-of-the-git-host';

/** The agent server's own files are in the same folder as the workspace of tools, which see only the latter. */
describeInBubblewrap('tools that change the workspace under the agent server', () => {
  let folder: string;
  let files: SandboxFiles;
  let server: TestAgentServer;
  let wrapper: string[];
  let tools: ChildProcess[];

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(path.join(tmpdir(), 'tool-view-')));
    files = new SandboxFiles(folder, 'a');
    await files.create({ instanceId: 'i', hostId: 'h', createdAt: 0 }, null);
    const { workspace, conversations, bashEvents, box } = files.paths;
    wrapper = toolWrapper('bwrap', files.paths, false);
    tools = [];
    await writeFile(path.join(box, 'secret'), 'a secret of the agent server');
    server = await startTestAgentServer({
      workspace,
      conversationsPath: conversations,
      bashEventsPath: bashEvents,
      toolWrapper: wrapper,
    });
  });

  afterEach(async () => {
    const running = tools.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    const ended = running.map((child) => once(child, 'exit'));
    running.forEach((child) => child.kill('SIGKILL'));
    await Promise.all(ended);
    await server.stop();
    // What a killed bubblewrap leaves goes on writing until the kernel has ended it, too.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  function tool(...command: string[]): void {
    const [program = '', ...args] = [...wrapper, ...command];
    tools.push(spawn(program, args, { cwd: files.paths.workspace, stdio: 'ignore' }));
  }

  /** `workspace/door` is a folder, and a link to the agent server's own, in turns. */
  async function swapDoor(): Promise<string> {
    const door = path.join(files.paths.workspace, 'door');
    await mkdir(door);
    await symlink(files.paths.box, path.join(files.paths.workspace, 'link'));
    tool('perl', '-e', EXCHANGE, 'door', 'link');
    await until(() => existsSync(path.join(files.paths.workspace, 'exchanging')));
    return door;
  }

  async function ask(method: string, route: string, target: string, body?: FormData): Promise<string> {
    const url = `${server.client.url}/api/${route}?path=${encodeURIComponent(target)}`;
    const headers = { 'X-Session-API-Key': SESSION_KEY };
    // A file that becomes another one while it is sent ends the connection.
    return await fetch(url, { method, headers, ...(body && { body }) }).then(
      async (response) => await response.text(),
      String,
    );
  }

  it('receive no upload in a folder of the agent server', async () => {
    const door = await swapDoor();
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const body = new FormData();
      body.append('file', new Blob(['127.0.0.1:1']), 'file');
      await ask('POST', 'file/upload', path.join(door, 'port'), body);
    }
    expect(await readdir(files.paths.box)).not.toContain('port');
  });

  it.each(['file/download', 'git/diff'])('get no file of the agent server: %s', async (route) => {
    const door = await swapDoor();
    spawnSync('git', ['init', '-q', files.paths.workspace]);
    const answers: string[] = [];
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      answers.push(await ask('GET', route, path.join(door, 'secret')));
    }
    expect(answers.join('')).not.toContain('a secret of the agent server');
  });

  it('run no program of theirs with the credentials of a clone', async () => {
    const host = await startGitHttpServer(`user:${TOKEN}`);
    const trap = path.join(files.paths.workspace, 'trap');
    await host.commit('team/project', 'main', { '.gitattributes': '* filter=trap', 'a.txt': 'a' });
    const filter = `[filter "trap"]\\n\\tsmudge = "cat /proc/[0-9]*/environ > ${trap}; cat"\\n`;
    host.gate.close();
    // Whatever repository appears in the workspace gets a filter, as soon as it is there. `git config` would lock the file,
    // and git's own change at that moment would fail.
    tool(
      'bash',
      '-c',
      'shopt -s dotglob nullglob; while :; do for config in */.git/config; do' +
        ` [[ $(< "$config") == *trap* ]] || { printf '${filter}' >> "$config"; : > "$config.set"; }; done; done`,
    );
    const preparing = server.client.post('/api/git/prepare', {
      url: `${host.origin}/team/project.git`,
      directory: 'cloned',
      branch: null,
      username: 'user',
      password: TOKEN,
      identity: null,
    });
    await until(() => host.gate.waiting > 0);
    // Where a clone waits in the workspace for its server, its configuration is a tool's by now.
    await until(
      async () =>
        !(await readdir(files.paths.workspace)).includes('.new-cloned') ||
        existsSync(path.join(files.paths.workspace, '.new-cloned/.git/config.set')),
    );
    host.gate.open();

    expect((await preparing).body).toMatchObject({ ok: true, branch: 'main' });
    const seen = existsSync(trap) ? await readFile(trap, 'utf8') : '';
    expect(seen).not.toContain(TOKEN);
    await host.close();
  });
});
