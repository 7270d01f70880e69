import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { toolEnvironment } from '../../packages/agent-server/src/tool-view.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerConnections } from '@slipway/agent-client/agent-server.connections.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import { AGENT_DIALECTS } from '../../src/v1/app-conversations/agent-request/agent-dialects.js';
import {
  RepositoryCheckout,
  type CheckoutPlan,
} from '../../src/v1/app-conversations/start/repository-checkout.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { SESSION_KEY } from '../../packages/agent-server/test/support/agent-server-client.js';
import {
  startSeparateAgentServer,
  type SeparateAgentServer,
} from '../../packages/agent-server/test/support/test-agent-server.js';

const run = promisify(execFile);
const TOKEN = 'ghp_checkout4217';
const PASSWORD = { username: 'x-access-token', password: TOKEN };

describe('RepositoryCheckout', () => {
  let git: GitHttpServer;
  let server: SeparateAgentServer;
  let head: string;
  let trunk: string;
  let home: string;
  const http = new AgentServerHttp(new AgentServerConnections());
  const commands = new AgentServerCommands(http);
  const checkout = new RepositoryCheckout(new AgentServerClient(http), commands, http);
  const { signal } = new AbortController();

  beforeAll(async () => {
    git = await startGitHttpServer(`${PASSWORD.username}:${TOKEN}`);
    head = await git.commit('octo/app', 'main', { 'README.md': 'hello' });
    trunk = await git.commit('octo/trunk', 'main', { 'README.md': 'hello' });
    await git.nameDefault('octo/trunk', 'trunk');
    await git.nameDefault('octo/new', 'trunk');
    const lib = await git.commit('octo/lib', 'main', { 'lib.txt': 'lib' });
    const gitmodules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n';
    await git.commit('octo/parts', 'main', { '.gitmodules': gitmodules }, { links: { lib } });
  });

  beforeEach(async () => {
    // The stock kind writes into its user's git configuration.
    home = await mkdtemp(path.join(tmpdir(), 'git-home-'));
    server = await startSeparateAgentServer({
      fileRoots: ['/tmp'],
      environment: { ...toolEnvironment(process.env), HOME: home },
    });
  });

  afterEach(async () => {
    await server.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 10 });
  });

  afterAll(() => git.close());

  const target = () => ({ address: `http://127.0.0.1:${server.port}`, sessionKey: SESSION_KEY });
  const plan = (given: Partial<CheckoutPlan> = {}): CheckoutPlan => ({
    provider: 'github',
    name: 'octo/app',
    url: `${git.origin}/octo/app.git`,
    credential: PASSWORD,
    folder: path.join(server.workspace, 'app'),
    branch: null,
    newBranch: 'work',
    submodules: false,
    lfs: false,
    depth: null,
    filter: null,
    identity: { name: "Ada O'Lovelace", email: 'ada@example.com' },
    ...given,
  });
  const checkOut = (given?: Partial<CheckoutPlan>): Promise<string[]> =>
    AGENT_DIALECTS.stock.checkOut(checkout, target(), plan(given), signal);
  const inClone = async (...args: string[]): Promise<string> =>
    (await run('git', ['-C', path.join(server.workspace, 'app'), ...args])).stdout.trim();

  // Our own agent server clones by a route, whose tests are beside it.
  describe('with a stock agent server', () => {
    it('clones, creates the branch, configures who commits, and leaves the token nowhere', async () => {
      const before = await readdir('/tmp');
      await checkOut();

      expect(await inClone('rev-parse', 'HEAD')).toBe(head);
      expect(await inClone('branch', '--show-current')).toBe('work');
      expect(await inClone('config', '--local', 'user.name')).toBe("Ada O'Lovelace");
      expect(await inClone('remote', 'get-url', 'origin')).toBe(`${git.origin}/octo/app.git`);
      const found = await run('grep', ['-rlF', TOKEN, server.folder]).catch(
        (error: { code: number }) => error.code,
      );
      expect(found).toBe(1);
      const made = (await readdir('/tmp')).filter(
        (name) => /^slipway-[0-9a-f-]{36}$/.test(name) && !before.includes(name),
      );
      // Starts of other test files put their tokens there meanwhile, and remove them.
      const texts = made.map((name) => readFile(path.join('/tmp', name), 'utf8').catch(() => ''));
      expect((await Promise.all(texts)).filter((text) => text.includes(TOKEN))).toEqual([]);
    });

    it('shows a bearer token where the server takes nothing else', async () => {
      const strict = await startGitHttpServer((presented) => presented === TOKEN);
      try {
        const tip = await strict.commit('octo/app', 'main', { 'README.md': 'hello' });
        await checkOut({
          url: `${strict.origin}/octo/app.git`,
          credential: { ...PASSWORD, bearer: `${strict.origin}/octo` },
        });
        expect(await inClone('rev-parse', 'HEAD')).toBe(tip);
      } finally {
        await strict.close();
      }
    });

    it('takes a branch that exists where the default one does not, and says so', async () => {
      const notices = await checkOut({ url: `${git.origin}/octo/trunk.git` });

      expect(notices).toEqual([
        expect.stringMatching(/default branch .* does not exist: main is checked out/),
      ]);
      expect(await inClone('rev-parse', 'HEAD')).toBe(trunk);
      expect(await inClone('branch', '--show-current')).toBe('work');
      expect(await checkOut({ url: `${git.origin}/octo/trunk.git` })).toEqual([]);
    });

    it('says that a repository has no branch', async () => {
      expect(await checkOut({ url: `${git.origin}/octo/new.git` })).toEqual([
        'The repository has no branch yet: its folder is empty.',
      ]);
    });

    it('says that it fetches no submodules', async () => {
      const url = `${git.origin}/octo/parts.git`;
      const notices = await checkOut({ url, submodules: true, lfs: true });

      expect(await readdir(path.join(server.workspace, 'app/lib'))).toEqual([]);
      expect(notices).toEqual([expect.stringContaining('are not fetched')]);
    });

    it('takes a part of the history, and of that what is checked out', async () => {
      await git.commit('octo/old', 'main', { 'README.md': 'one' });
      await git.commit('octo/old', 'side', { 'README.md': 'two' });
      const url = `${git.origin}/octo/old.git`;
      expect(await checkOut({ url, branch: 'side', depth: 1, filter: 'blob:none' })).toEqual([]);

      const commits = await inClone('rev-list', '--count', '--all');
      expect([commits, await inClone('status', '--porcelain')]).toEqual(['2', '']);
      const lines = (await inClone('rev-list', '--objects', '--all', '--missing=print')).split('\n');
      expect(lines.filter((line) => line.startsWith('?'))).toHaveLength(1);
    });

    it('leaves an existing repository alone', async () => {
      await checkOut();
      await run('git', ['-C', path.join(server.workspace, 'app'), 'checkout', '-q', '-b', 'mine']);

      await checkOut();

      expect(await inClone('branch', '--show-current')).toBe('mine');
    });

    it.each([
      ['a branch that is not there', { branch: 'nowhere', newBranch: null }, /branch nowhere does not exist/],
      [
        'a token that is refused',
        { credential: { ...PASSWORD, password: 'ghp_old' } },
        /refused the github token/,
      ],
      ['no token', { credential: null }, /wants credentials/],
    ])('explains the failure: %s', async (_, given, cause) => {
      await expect(checkOut(given)).rejects.toThrow(cause);
      expect(await readdir(server.workspace)).toEqual([]);
    });
  });

  it('passes on what our own agent server says of a clone', async () => {
    const given = plan({ url: `${git.origin}/octo/new.git` });
    expect(await AGENT_DIALECTS.slipway.checkOut(checkout, target(), given, signal)).toEqual([
      'The repository has no branch yet: its folder is empty.',
    ]);
  });

  describe('AgentServerCommands', () => {
    it.each([
      ['run', 'its exit code and its streams', 'echo out; echo err >&2; exit 3', 30, 3, 'out\n', /err\n/],
      ['run', 'the end of much output', 'seq 1 20000', 30, 0, /\n20000\n$/, /\n19999\n20000\n$/],
      ['run', 'a command that was ended', 'sleep 100', 0.2, -1, '', /^/],
      [
        'runShort',
        'its exit code and its streams',
        'echo out; echo err >&2; exit 3',
        30,
        3,
        'out\n',
        /err\n/,
      ],
      ['runShort', 'the end of much output', 'seq 1 20000', 30, 0, /\n20000\n$/, /\n20000\n$/],
      ['runShort', 'a command that was ended', 'sleep 100', 0.2, -1, '', /ended after 0.2 seconds/],
    ] as const)('%s tells %s', async (method, _what, command, timeoutSeconds, exitCode, stdout, output) => {
      const result = await commands[method](target(), { command, cwd: null, timeoutSeconds, signal });
      expect(result).toEqual({
        exitCode,
        stdout: typeof stdout === 'string' ? stdout : expect.stringMatching(stdout),
        output: expect.stringMatching(output),
      });
      expect(result.output.length).toBeLessThanOrEqual(8192);
    });

    it('stops waiting when its signal aborts', async () => {
      const aborter = new AbortController();
      const running = commands.run(target(), {
        command: 'sleep 2',
        cwd: null,
        timeoutSeconds: 30,
        signal: aborter.signal,
      });
      aborter.abort(new Error('enough'));
      await expect(running).rejects.toThrow('enough');
    });
  });
});
