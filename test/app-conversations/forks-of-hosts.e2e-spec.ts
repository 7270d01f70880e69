import { execFile } from 'node:child_process';
import { createServer, request as ask, type Server } from 'node:http';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import type { StartRequest, StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import { repositoryIn } from '../fakes/fake-change-requests.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { sampleWorld } from '../fakes/sample-world.js';
import type { TestUser } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { StartsClient } from '../support/starts-client.js';
import { TokensClient } from '../support/tokens-client.js';
import { useTestApp } from '../support/use-test-app.js';

const run = promisify(execFile);
const UPSTREAM = 'octo/app';
const AT = '2026-11-20T16:45:12Z';
const COMMITTER = ['-c', 'user.name=Mona', '-c', 'user.email=mona@example.com'];

/** GitHub is walked through in `forks`. */
const NAMES = ['GitLab', 'Bitbucket Cloud', 'Bitbucket Data Center'] as const;
type Name = (typeof NAMES)[number];

interface Host {
  provider: 'gitlab' | 'bitbucket';
  world: FakeWorld;
  git: GitHttpServer;
  /** The user's fork. */
  fork: string;
  /** Before the name of a repository in the address of its clone. */
  clones: string;
  token: { token: string; host?: string };
}

/** A Data Center has its repositories below `/scm` of the address of its API. */
async function startDoor(api: FakeServer, git: GitHttpServer): Promise<{ server: Server; origin: string }> {
  const server = createServer((incoming, response) => {
    const { url = '', method, headers } = incoming;
    const isGit = url.startsWith('/scm/');
    const target = new URL(isGit ? url.slice('/scm'.length) : url, isGit ? git.origin : api.origin);
    const passed = ask(target, { method, headers: { ...headers, host: target.host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    incoming.pipe(passed);
  });
  return { server, origin: `http://127.0.0.1:${await startListening(server, 0, '127.0.0.1')}` };
}

/** Each has the repository, and two forks of it. */
async function startGit(world: FakeWorld, fork: string): Promise<GitHttpServer> {
  const onPush = async (name: string): Promise<void> => {
    Object.assign(repositoryIn(world, name) ?? {}, { branches: [...(await git.tips(name)).keys()] });
  };
  const git = await startGitHttpServer(null, '127.0.0.1', { onPush });
  await git.commit(UPSTREAM, 'main', { 'a.txt': 'a' });
  await git.fork(UPSTREAM, fork);
  await git.commit(fork, 'parser', { 'p.txt': 'p' });
  git.readOnly.add(UPSTREAM);
  return git;
}

describe('work on forks with a real git of', () => {
  const backend = new InProcessSandboxBackend();
  const dataCenterWorld: FakeWorld = { ...sampleWorld(), token: 'datacenter-4217token', issues: [] };
  let hosts: GitHosts;
  let dataCenter: FakeServer;
  let door: Awaited<ReturnType<typeof startDoor>>;
  let known: Record<Name, Host>;

  beforeAll(async () => {
    hosts = await startGitHosts();
    dataCenter = await startFakeBitbucketDataCenter(dataCenterWorld);
    const hostOf = async (provider: Host['provider']): Promise<Host> => {
      const world = hosts.worlds[provider];
      const git = await startGit(world, 'mona/app');
      return { provider, world, git, fork: 'mona/app', clones: git.origin, token: { token: world.token } };
    };
    const fork = '~mona/app';
    const git = await startGit(dataCenterWorld, fork);
    door = await startDoor(dataCenter, git);
    known = {
      GitLab: await hostOf('gitlab'),
      'Bitbucket Cloud': await hostOf('bitbucket'),
      'Bitbucket Data Center': {
        provider: 'bitbucket',
        world: dataCenterWorld,
        git,
        fork,
        clones: `${door.origin}/scm`,
        token: { token: dataCenterWorld.token, host: door.origin },
      },
    };
  });
  const app = useTestApp(
    () => ({
      ...hosts.environment,
      GITLAB_CLONE_URL: known.GitLab.git.origin,
      BITBUCKET_CLONE_URL: known['Bitbucket Cloud'].git.origin,
      GIT_HOST_ALLOWLIST: door.origin,
    }),
    { sandboxBackend: backend },
  );
  afterAll(async () => {
    await stopServer(door.server);
    await dataCenter.close();
    await hosts.close();
    await Promise.all(NAMES.map((name) => known[name].git.close()));
  });

  async function starting(host: Host): Promise<{ user: TestUser; client: StartsClient }> {
    const user = await app.createUser();
    const client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
    const { status } = await new TokensClient(app, user).postTokens({ [host.provider]: host.token });
    expect(status).toBe(200);
    return { user, client };
  }

  const inClone = async ({ workingDir }: StartTask, ...args: string[]): Promise<string> =>
    (await run('git', ['-C', workingDir ?? '', ...args])).stdout.trim();

  async function commit(task: StartTask): Promise<string> {
    await inClone(task, ...COMMITTER, 'commit', '--quiet', '--allow-empty', '-m', 'work');
    return inClone(task, 'rev-parse', 'HEAD');
  }

  const promptOf = async (task: StartTask): Promise<string> => {
    const agent = backend.boxes.get(task.sandboxId)?.server.client;
    return JSON.stringify(await agent?.get(`/api/conversations/${task.appConversationId}`));
  };

  const open = (task: StartTask, user: TestUser): request.Test =>
    request(app.url)
      .post(`/api/v1/app-conversations/${task.appConversationId}/pull-request`)
      .set(user.headers)
      .send({ title: 'Mine' });

  describe.each(NAMES)('%s', (name) => {
    it('makes a fork where there is no right to push, and opens a pull request across', async () => {
      const host = known[name];
      const { world, git, fork, provider } = host;
      Object.assign(repositoryIn(world, UPSTREAM) ?? {}, { writable: false });
      const { user, client } = await starting(host);
      const repository = { selected_repository: UPSTREAM, git_provider: provider };
      const task = await client.reached(await client.start(repository), 'READY');
      expect(task.notes.join()).toContain(`There is no right to push to ${UPSTREAM}`);
      expect(await promptOf(task)).toContain(`There is no right to push to ${UPSTREAM}`);
      expect(world.repositories.find(({ forkOf }) => forkOf === UPSTREAM)).toBeUndefined();

      await inClone(task, 'checkout', '--quiet', '-b', 'fix-it');
      const head = await commit(task);
      const { body } = await open(task, user).expect(201);
      expect(world.changeRequests.at(-1)).toMatchObject({
        repository: UPSTREAM,
        fork,
        sourceBranch: 'fix-it',
        targetBranch: 'main',
      });
      expect(await git.tip(fork, 'fix-it')).toBe(head);
      expect([...(await git.tips(UPSTREAM)).keys()]).toEqual(['main']);
      expect((await open(task, user).expect(201)).body).toEqual(body);
    });

    it("begins on the branch of a pull request from the user's fork, and pushes there", async () => {
      const host = known[name];
      const { world, git, fork, provider, clones } = host;
      Object.assign(repositoryIn(world, UPSTREAM) ?? {}, { writable: false });
      Object.assign(world.changeRequests[0] ?? {}, { fork, sourceBranch: 'parser', targetBranch: 'main' });
      if (!repositoryIn(world, fork)) {
        world.repositories.push({ name: fork, activeAt: AT, forkOf: UPSTREAM });
      }
      Object.assign(repositoryIn(world, fork) ?? {}, { branches: [...(await git.tips(fork)).keys()] });
      const { user, client } = await starting(host);
      const task: Partial<StartRequest> = {
        selected_repository: UPSTREAM,
        git_provider: provider,
        suggested_task: {
          git_provider: provider,
          task_type: 'FAILING_CHECKS',
          repo: UPSTREAM,
          issue_number: 12,
          title: 'x',
        },
        pr_number: [12],
      };
      const started = await client.reached(await client.start(task), 'READY');
      expect(await inClone(started, 'branch', '--show-current')).toBe('parser');
      expect(await inClone(started, 'remote', 'get-url', 'origin')).toBe(`${clones}/${fork}.git`);
      expect(await inClone(started, 'remote', 'get-url', 'upstream')).toBe(`${clones}/${UPSTREAM}.git`);
      expect(await inClone(started, 'show', 'upstream/main:a.txt')).toBe('a');
      expect(started.notes).toEqual([]);
      expect(await promptOf(started)).toContain('it goes to upstream/main');

      const count = world.changeRequests.length;
      const head = await commit(started);
      expect((await open(started, user).expect(201)).body.number).toBe(12);
      expect(await git.tip(fork, 'parser')).toBe(head);
      expect(world.changeRequests).toHaveLength(count);
      const [row] = await app.dataSource.query('SELECT working_branch FROM app_conversations WHERE id = $1', [
        started.appConversationId,
      ]);
      expect(row).toEqual({ working_branch: 'parser' });
    });
  });
});
