import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import type { StartRequest, StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { repositoryIn } from '../fakes/fake-change-requests.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from '../fakes/fake-world.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { AuditClient } from '../support/audit-client.js';
import type { TestUser } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { StartsClient } from '../support/starts-client.js';
import { TokensClient } from '../support/tokens-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const run = promisify(execFile);
const OWN: Partial<FakeChangeRequest> = { fork: 'mona/app', sourceBranch: 'parser', targetBranch: 'main' };
const FOREIGN: Partial<FakeChangeRequest> = { ...OWN, fork: 'jane/app' };
const SETUP = { '.openhands/setup.sh': 'echo run > ran.txt\n' };

const COMMITTER = ['-c', 'user.name=Mona', '-c', 'user.email=mona@example.com'];

describe('work on forks', () => {
  const backend = new InProcessSandboxBackend();
  let hosts: GitHosts;
  let git: GitHttpServer;
  let user: TestUser;
  let client: StartsClient;

  beforeAll(async () => {
    hosts = await startGitHosts();
    const onPush = async (name: string): Promise<void> => {
      const repository = repositoryIn(hosts.worlds.github, name);
      Object.assign(repository ?? {}, { branches: [...(await git.tips(name)).keys()] });
    };
    git = await startGitHttpServer(null, '127.0.0.1', { onPush });
    await git.commit('octo/app', 'main', { 'a.txt': 'a' });
    await git.fork('octo/app', 'mona/app');
    await git.fork('octo/app', 'jane/app');
    await git.commit('mona/app', 'parser', { 'p.txt': 'p' });
    await git.commit('jane/app', 'parser', SETUP);
    await git.keepRef('octo/app', 'refs/pull/12/head', 'jane/app', 'parser');
  });
  const app = useTestApp(() => ({ ...hosts.environment, GITHUB_CLONE_URL: git.origin }), {
    sandboxBackend: backend,
  });
  afterAll(async () => {
    await hosts.close();
    await git.close();
  });

  beforeEach(async () => {
    user = await app.createUser();
    client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
    await new TokensClient(app, user).postTokens({ github: { token: hosts.worlds.github.token } });
  });

  afterEach(() => {
    const { token } = hosts.worlds.github;
    Object.assign(hosts.worlds.github, { ...sampleWorld(), token });
    git.readOnly.clear();
  });

  /** The repository and what is known of the forks that git has. */
  function arrange(repository: Partial<FakeRepository>, change: Partial<FakeChangeRequest> = {}): FakeWorld {
    const world = hosts.worlds.github;
    Object.assign(repositoryIn(world, 'octo/app') ?? {}, repository);
    Object.assign(world.changeRequests[0] ?? {}, change);
    const forkOf = 'octo/app';
    const activeAt = '2026-11-20T16:45:12Z';
    world.repositories.push({ name: 'jane/app', activeAt, forkOf, writable: false, branches: ['parser'] });
    if (change.fork === 'mona/app') {
      world.repositories.push({ name: 'mona/app', activeAt, forkOf, branches: ['parser'] });
    }
    const readOnly = world.repositories.filter(({ writable }) => writable === false);
    readOnly.forEach(({ name }) => git.readOnly.add(name));
    return world;
  }

  async function start(given: Partial<StartRequest> = {}): Promise<StartTask> {
    const repository = { selected_repository: 'octo/app', git_provider: 'github' as const };
    return await client.reached(await client.start({ ...repository, ...given }), 'READY');
  }

  const TASK: Partial<StartRequest> = {
    suggested_task: {
      git_provider: 'github',
      task_type: 'FAILING_CHECKS',
      repo: 'octo/app',
      issue_number: 12,
      title: 'x',
    },
    pr_number: [12],
  };

  const inClone = async ({ workingDir }: StartTask, ...args: string[]): Promise<string> =>
    (await run('git', ['-C', workingDir ?? '', ...args])).stdout.trim();

  /** Commits to the branch that is checked out, or another; returns the commit. */
  async function work(task: StartTask, branch?: string): Promise<string> {
    if (branch !== undefined) {
      await inClone(task, 'checkout', '--quiet', '-b', branch);
    }
    await inClone(task, ...COMMITTER, 'commit', '--quiet', '--allow-empty', '-m', 'work');
    return await inClone(task, 'rev-parse', 'HEAD');
  }

  const promptOf = async ({ sandboxId, appConversationId }: StartTask): Promise<string> => {
    const agent = backend.boxes.get(sandboxId)?.server.client;
    return JSON.stringify(await agent?.get(`/api/conversations/${appConversationId}`));
  };

  const open = (task: StartTask): request.Test =>
    request(app.url)
      .post(`/api/v1/app-conversations/${task.appConversationId}/pull-request`)
      .set(user.headers)
      .send({ title: 'Mine' });

  const asAgent = (task: StartTask, resource: string, body: object): request.Test =>
    request(app.url)
      .post(`/api/v1/webhooks/pull-requests${resource}`)
      .set({ 'x-session-api-key': backend.boxes.get(task.sandboxId)?.launch.sessionKey ?? '' })
      .send({ conversation_id: task.appConversationId, ...body });

  it('pushes what begins at the newest commit of a repository to a fork that is behind it', async () => {
    const world = arrange({ writable: false });
    world.repositories.push({ name: 'mona/app', activeAt: '2026-11-20T16:45:12Z', forkOf: 'octo/app' });
    const before = await git.tip('mona/app', 'main');
    const newest = await git.commit('octo/app', 'main', { 'new.txt': 'new' });
    const task = await start();
    const head = await work(task, 'from-newest');
    await open(task).expect(201);
    expect(world.changeRequests.at(-1)).toMatchObject({ fork: 'mona/app', sourceBranch: 'from-newest' });
    expect(await git.tip('mona/app', 'from-newest')).toBe(head);
    expect(await inClone(task, 'rev-parse', 'HEAD^')).toBe(newest ?? (await git.tip('octo/app', 'main')));
    expect(await git.tip('mona/app', 'main')).toBe(before);
  });

  it.each<[string, (task: StartTask) => Promise<unknown>]>([
    [
      'PAUSED',
      async ({ sandboxId }) => await app.as(user).post(`/api/v1/sandboxes/${sandboxId}/pause`).expect(200),
    ],
    ['ERROR', async ({ sandboxId }) => await backend.kill(sandboxId)],
  ])('starts a sandbox that is %s again, to push from it', async (status, stop) => {
    const world = arrange({ writable: false });
    const task = await start();
    const branch = `from-${status}`;
    const head = await work(task, branch);
    const find = async () => (await client.sandboxes()).find(({ id }) => id === task.sandboxId);
    await stop(task);
    await app.app.get(SandboxReconciler).now();
    await until(async () => (await find())?.status === status);
    await open(task).expect(201);
    expect(await git.tip('mona/app', branch)).toBe(head);
    expect(world.changeRequests.at(-1)).toMatchObject({ fork: 'mona/app', sourceBranch: branch });
    expect((await find())?.status).toBe('RUNNING');
  });

  describe('a run whose event is about a pull request', () => {
    const AUTOMATIONS = '/api/automation/v1';
    const SECRET = 'a-secret-of-the-hook';
    const WRITER = { id: '71', login: 'writer', permission: 'write' } as const;
    const make = (path: string, body: object): request.Test =>
      request(app.url).post(`${AUTOMATIONS}${path}`).set(user.headers).send(body);

    /** The start that an event makes of an automation for the repository. */
    async function started(payload: object, members: object = {}): Promise<StartTask> {
      hosts.worlds.github.members = [WRITER];
      await make('/webhooks', { name: 'Host', source: 'github', webhook_secret: SECRET }).expect(201);
      const trigger = { type: 'event', source: 'github', on: '*' };
      const repos = [{ url: 'octo/app', provider: 'github' }];
      await make('/preset/prompt', { name: 'Look', prompt: 'Look.', trigger, repos, ...members }).expect(201);
      const sender = { id: Number(WRITER.id), login: WRITER.login, type: 'User' };
      const text = JSON.stringify({ ...payload, repository: { full_name: 'octo/app' }, sender });
      await request(app.url)
        .post(`${AUTOMATIONS}/events/${user.id}/github`)
        .set({
          'content-type': 'application/json',
          'x-github-event':
            'pull_request' in payload ? 'pull_request' : 'comment' in payload ? 'issue_comment' : 'issues',
          'x-github-delivery': randomUUID(),
          'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`,
        })
        .send(text)
        .expect(202);
      let id = '';
      await until(async () => {
        const rows = await app.dataSource.query<{ id: string }[]>(
          'SELECT id FROM app_conversation_start_tasks WHERE user_id = $1',
          [user.id],
        );
        id = rows[0]?.id ?? '';
        return id !== '';
      });
      return await client.reached({ id }, 'READY');
    }

    const PULL = { action: 'opened', pull_request: { number: 12 } };
    const COMMENT = {
      action: 'created',
      issue: { number: 12, pull_request: {} },
      comment: { id: 1, body: 'Look' },
    };

    it('begins on the branch of a fork where it is opened', async () => {
      arrange({}, OWN);
      const task = await started(PULL, { fork: 'never' });
      expect(await inClone(task, 'branch', '--show-current')).toBe('parser');
      expect(await inClone(task, 'remote', 'get-url', 'origin')).toBe(`${git.origin}/mona/app.git`);
      expect(await inClone(task, 'remote', 'get-url', 'upstream')).toBe(`${git.origin}/octo/app.git`);
      expect(task.request.fork).toBe('never');
    });

    it("runs no script of a stranger's fork where it has a comment, and its limits keep it from pushing", async () => {
      arrange({}, FOREIGN);
      const task = await started(COMMENT, { git: 'read', secret_names: [] });
      expect(await inClone(task, 'show', '--format=', '--name-only', 'HEAD')).toContain('setup.sh');
      expect(existsSync(path.join(task.workingDir ?? '', 'ran.txt'))).toBe(false);
      expect(task.request.work_place).toMatchObject({ push: 'none', because: 'git' });
    });

    it.each<[string, object, object]>([
      ['is about an issue of that number', { action: 'opened', issue: { number: 12 } }, {}],
      ['has a branch of its own', PULL, { repos: [{ url: 'octo/app', provider: 'github', ref: 'main' }] }],
    ])('begins in the repository where it %s', async (_what, payload, members) => {
      arrange({}, OWN);
      const task = await started(payload, members);
      expect(await inClone(task, 'remote')).toBe('origin');
    });
  });

  it('lets the agent push to a fork, and open a pull request from there', async () => {
    const world = arrange({ writable: false });
    const task = await start();
    const note = 'There is no right to push to octo/app';
    expect([task.notes.join(), await promptOf(task)]).toEqual([
      expect.stringContaining(note),
      expect.stringContaining(note),
    ]);
    expect(repositoryIn(world, 'mona/app')).toBeUndefined();
    const head = await work(task, 'by-agent');
    const push = { branch: 'by-agent', directory: task.workingDir };
    const { body } = await asAgent(task, '/push', push).expect(200);
    expect(body).toMatchObject({
      repository: 'mona/app',
      output: expect.stringContaining('Pushed to mona/app.'),
    });
    expect(await git.tip('mona/app', 'by-agent')).toBe(head);
    const audited = await new AuditClient(app).find({ action: 'conversation.open_pull_request' });
    expect(audited[0]).toMatchObject({ details: { repository: 'octo/app', fork: 'mona/app' } });
    const pull = { source_branch: 'by-agent', title: 'Mine', body: '' };
    await asAgent(task, '', pull).expect(201);
    expect(world.changeRequests.at(-1)).toMatchObject({ fork: 'mona/app', sourceBranch: 'by-agent' });
    expect([...(await git.tips('octo/app')).keys()]).not.toContain('by-agent');
    expect((await asAgent(task, '/push', { ...push, branch: 'none' }).expect(409)).body.detail).toContain(
      'none',
    );
  });

  it.each<[string, Partial<FakeRepository>, Partial<StartRequest>, string | null, RegExp]>([
    ['the start says so', {}, { fork: 'never' }, null, /octo\/app, and fork is never/],
    ['the settings say so', {}, {}, 'never', /octo\/app, and fork is never/],
    ['the repository forbids it', { forking: 'forbidden' }, {}, null, /octo\/app, which may not be forked/],
  ])('makes no fork where %s', async (_why, repository, given, fork, words) => {
    const world = arrange({ ...repository, writable: false });
    await client.settings({ fork });
    const task = await start(given);
    expect(task.notes.join()).toMatch(words);
    await work(task, 'fix');
    expect((await open(task).expect(409)).body.detail).toMatch(words);
    expect((await asAgent(task, '/push', { branch: 'fix', directory: '.' }).expect(409)).body.detail).toMatch(
      words,
    );
    expect(repositoryIn(world, 'mona/app')).toBeUndefined();
  });

  it('does not fork where the user may push, and the host refuses for another reason', async () => {
    const world = arrange({});
    git.readOnly.add('octo/app');
    const task = await start();
    await work(task, 'fix');
    expect((await open(task).expect(409)).body.detail).toContain('see whether the git token may write');
    expect(repositoryIn(world, 'mona/app')).toBeUndefined();
  });

  it.each<[string, Partial<FakeRepository>, string]>([
    ['the repository itself, where the user may', {}, 'octo/app'],
    ["the user's own fork", { writable: false }, 'mona/app'],
  ])("pushes a branch of its own, made from a stranger's fork, to %s", async (_where, repository, place) => {
    const world = arrange(repository, FOREIGN);
    const task = await start(TASK);
    const branch = await inClone(task, 'branch', '--show-current');
    expect(branch).toMatch(/^openhands-workspace-/);
    expect(await inClone(task, 'remote', 'get-url', 'origin')).toBe(`${git.origin}/jane/app.git`);
    expect(existsSync(path.join(task.workingDir ?? '', '.openhands/setup.sh'))).toBe(true);
    expect(existsSync(path.join(task.workingDir ?? '', 'ran.txt'))).toBe(false);

    const head = await work(task);
    await open(task).expect(201);
    expect(await git.tip(place, branch)).toBe(head);
    expect(world.changeRequests.at(-1)).toMatchObject({ repository: 'octo/app', sourceBranch: branch });
    expect(world.changeRequests.at(-1)?.fork).toBe(place === 'octo/app' ? undefined : place);
    const { body } = await asAgent(task, '/push', { branch: 'parser', directory: task.workingDir }).expect(
      409,
    );
    expect(body.detail).toContain('commit to a branch of another name than parser');
  });

  it("begins on the branch of a pull request from the user's own fork, and pushes there", async () => {
    const world = arrange({ writable: false }, OWN);
    const task = await start(TASK);
    expect(await inClone(task, 'branch', '--show-current')).toBe('parser');
    expect(await inClone(task, 'show', 'upstream/main:a.txt')).toBe('a');
    expect(task.notes).toEqual([]);
    expect(await promptOf(task)).toContain('it goes to upstream/main');

    const count = world.changeRequests.length;
    const head = await work(task);
    expect((await open(task).expect(201)).body.number).toBe(12);
    expect(await git.tip('mona/app', 'parser')).toBe(head);
    expect(world.changeRequests).toHaveLength(count);
    const [row] = await app.dataSource.query('SELECT working_branch FROM app_conversations WHERE id = $1', [
      task.appConversationId,
    ]);
    expect(row).toEqual({ working_branch: 'parser' });
  });

  it('takes the commits of a deleted fork from the host, and pushes them nowhere', async () => {
    arrange({}, { ...FOREIGN, fork: 'gone/app' });
    const task = await start(TASK);
    expect(task.notes.join()).toContain('The fork of pull request #12 is deleted');
    expect(await inClone(task, 'branch', '--show-current')).toBe('pull-12');
    expect(await inClone(task, 'rev-parse', 'HEAD')).toBe(await git.tip('jane/app', 'parser'));
    await work(task);
    expect((await open(task).expect(409)).body.detail).toContain('The fork of pull request #12 is deleted');
    await expect(inClone(task, 'push', 'origin', 'pull-12')).rejects.toThrow(
      /fork of pull request 12 is deleted/,
    );
  });

  it('reads a fork and makes none where the start may only read', async () => {
    arrange({ writable: false }, OWN);
    const task = await start({ ...TASK, git: 'read' });
    expect(await inClone(task, 'branch', '--show-current')).toBe('parser');
    await asAgent(task, '/push', { branch: 'parser', directory: task.workingDir }).expect(403);
  });
});
