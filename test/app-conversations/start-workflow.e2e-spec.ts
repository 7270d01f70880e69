import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { jsonAt } from '@slipway/common/json-access.js';
import type { StartRequest, StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const run = promisify(execFile);
const TOKEN = 'ghp_startsecret4217';
const USABLE = { llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' };

describe('starting a conversation', () => {
  const backend = new InProcessSandboxBackend();
  let git: GitHttpServer;
  let user: TestUser;
  let client: StartsClient;

  beforeAll(async () => {
    git = await startGitHttpServer(`x-access-token:${TOKEN}`);
    await git.commit('octo/app', 'main', { 'README.md': 'hello' });
    await git.commit('octo/app', 'main', { 'README.md': 'hello again' });
    await git.commit('octo/app', 'feature/x', { 'b.txt': '2' });
  });
  const app = useTestApp(() => ({ GITHUB_CLONE_URL: git.origin }), { sandboxBackend: backend });
  afterAll(() => git.close());

  beforeEach(async () => {
    user = await app.createUser();
    client = new StartsClient(app, user);
    await client.settings(USABLE);
  });

  afterEach(() => {
    backend.failure = null;
    backend.gate.open();
  });

  const agentServer = (sandboxId: string) => {
    const box = backend.boxes.get(sandboxId);
    if (!box) {
      throw new Error('there is no such sandbox');
    }
    return box.server;
  };
  it('creates a sandbox, an empty repository and a conversation that works, and gives both to a part of it', async () => {
    const task = await client.start(say('say hello'));
    expect(task).toMatchObject({ status: 'WORKING', detail: null, attempt: 0, sandboxMade: true });

    const ready = await client.reached(task, 'READY');

    const { client: agent, workspace } = agentServer(ready.sandboxId);
    expect(ready.workingDir).toBe(workspace);
    const conversation = `/api/conversations/${ready.appConversationId}`;
    await until(async () => JSON.stringify(await agent.get(conversation)).includes('"finished"'));
    expect(await agent.get(conversation)).toMatchObject({
      id: ready.appConversationId,
      agent: { llm: { model: 'openai/gpt-4o' } },
      workspace: { working_dir: workspace },
    });
    await run('git', ['-C', workspace, 'status']);
    const [row] = await app.dataSource.query(
      `SELECT c.sandbox_id, c.llm_model, c.working_dir, c.sandbox_generation, f.sandbox_id AS followed
       FROM app_conversations c JOIN followed_conversations f ON f.id = c.id WHERE c.id = $1`,
      [ready.appConversationId],
    );
    expect(row).toEqual({
      sandbox_id: ready.sandboxId,
      llm_model: 'openai/gpt-4o',
      working_dir: workspace,
      sandbox_generation: 1,
      followed: ready.sandboxId,
    });

    const child = await client.reached(
      await client.start({ parent_conversation_id: ready.appConversationId, ...say('say hi') }),
      'READY',
    );
    expect([child.sandboxId, child.workingDir]).toEqual([ready.sandboxId, ready.workingDir]);
    expect(await client.sandboxes()).toMatchObject([{ id: ready.sandboxId }]);
  });

  it('clones with the token, which stays in no file, and runs the setup script and the hook', async () => {
    await storeProviderToken(app, user, 'github', TOKEN);
    const head = await git.commit('octo/scripts', 'main', {
      '.openhands/setup.sh': 'echo run >> ran.txt\nexport TOOLS=here PATH="$PWD/bin:$PATH"\n',
      '.openhands/pre-commit.sh': 'exit 0\n',
    });

    const task = await client.reached(await client.start({ selected_repository: 'octo/scripts' }), 'READY');

    const { workspace, folder } = agentServer(task.sandboxId);
    const clone = path.join(workspace, 'scripts');
    expect(task.workingDir).toBe(clone);
    const inClone = async (...args: string[]): Promise<string> =>
      (await run('git', ['-C', clone, ...args])).stdout.trim();
    expect(await inClone('rev-parse', 'HEAD')).toBe(head);
    expect(await inClone('branch', '--show-current')).toBe(
      `openhands-workspace-${task.appConversationId.slice(0, 8)}`,
    );
    expect(await inClone('remote', 'get-url', 'origin')).toBe(`${git.origin}/octo/scripts.git`);
    expect(await readFile(path.join(clone, 'ran.txt'), 'utf8')).toBe('run\n');
    expect(await readFile(path.join(clone, '.git/slipway-setup-env'), 'utf8')).toBe(
      `PATH=${clone}/bin:"$PATH"\nTOOLS=here\n`,
    );
    expect(await readFile(path.join(clone, '.git/hooks/pre-commit'), 'utf8')).toContain(
      '.openhands/pre-commit.sh',
    );
    const found = await run('grep', ['-rlF', TOKEN, folder]).catch((error: { code: number }) => error.code);
    expect(found).toBe(1);
    expect(git.requests.some(({ url }) => url.includes(TOKEN))).toBe(false);
  });

  it('fetches no submodules by a token in clear for who has the one repository alone, and says so', async () => {
    await storeProviderToken(app, user, 'github', TOKEN);
    const other = await git.commit('acme/secret', 'main', { 'secret.txt': 'secret' });
    const gitmodules = `[submodule "other"]\n\tpath = other\n\turl = ${git.origin}/acme/secret.git\n`;
    await git.commit('octo/parts', 'main', { '.gitmodules': gitmodules }, { links: { other } });
    const given = {
      selected_repository: 'octo/parts',
      git_provider: 'github',
      clone_submodules: true,
    } as const;

    const limited = await client.reached(await client.start({ ...given, own_repository: true }), 'READY');
    const usual = await client.reached(await client.start(given), 'READY');

    const inside = ({ workingDir }: StartTask): Promise<string[]> =>
      readdir(path.join(workingDir ?? '', 'other'));
    expect([await inside(limited), await inside(usual)]).toEqual([
      [],
      expect.arrayContaining(['secret.txt']),
    ]);
    expect(limited.notes).toEqual([expect.stringContaining('Submodules are not fetched')]);
  });

  it.each<[string, Partial<StartRequest>, string[]]>([
    ['as many commits as the settings say', { selected_branch: 'feature/x' }, ['1', 'feature/x']],
    ['all of them where the start says so', { clone_depth: null, selected_branch: 'main' }, ['2', 'main']],
  ])('clones %s, of the branch that is asked for', async (_much, given, expected) => {
    await storeProviderToken(app, user, 'github', TOKEN);
    await client.settings({ clone_depth: 1 });
    const repository = { selected_repository: 'octo/app', git_provider: 'github' as const };
    const task = await client.reached(await client.start({ ...repository, ...given }), 'READY');

    const inClone = async (...args: string[]): Promise<string> =>
      (await run('git', ['-C', task.workingDir ?? '', ...args])).stdout.trim();
    expect([await inClone('rev-list', '--count', 'HEAD'), await inClone('branch', '--show-current')]).toEqual(
      expected,
    );
  });

  it('ends in ERROR with a cause when the repository cannot be cloned, and leaves nothing behind', async () => {
    const task = await client.reached(await client.start({ selected_repository: 'octo/app' }), 'ERROR');

    expect(task.detail).toMatch(/wants credentials: store a token for github/);
    await until(() => !backend.boxes.has(task.sandboxId));
    expect(await client.conversations()).toEqual([]);
  });

  it('ends in ERROR with the last output of a setup script that fails', async () => {
    await storeProviderToken(app, user, 'github', TOKEN);
    await git.commit('octo/broken', 'main', { '.openhands/setup.sh': 'echo no compiler here >&2\nexit 3\n' });

    const task = await client.reached(await client.start({ selected_repository: 'octo/broken' }), 'ERROR');

    expect(task.detail).toBe(
      'The setup script .openhands/setup.sh failed with exit code 3.\nno compiler here',
    );
  });

  it('ends in ERROR with the cause of a sandbox that cannot be started', async () => {
    backend.failure = 'The image example/none does not exist.';
    const task = await client.reached(await client.start(), 'ERROR');
    expect(task.detail).toContain('The image example/none does not exist.');
  });

  it.each<[string, Partial<StartRequest>, string]>([
    ['sandbox_id', { sandbox_id: 'nobody' }, ''],
    ['sandbox_spec_id', { sandbox_spec_id: 'nothing' }, ''],
    ['parent_conversation_id', { parent_conversation_id: randomUUID() }, ''],
    ['sandbox_spec_id', { sandbox_id: 'any', sandbox_spec_id: 'slipway' }, 'beside sandbox_id'],
  ])('refuses what the user does not have, or cannot be asked for: %s', async (member, given, words) => {
    await expect(client.start(given)).rejects.toMatchObject({
      problems: [{ loc: ['body', member], msg: expect.stringContaining(words) }],
    });
  });

  it('gives secrets of the setup to the setup script of a sandbox that it makes alone', async () => {
    await storeProviderToken(app, user, 'github', TOKEN);
    await git.commit('octo/set-up', 'main', {
      '.openhands/setup.sh': 'echo "[$OF_SETUP]" >> seen.txt; export TOOLS=here\n',
    });
    const secret = { name: 'OF_SETUP', value: 'value-of-the-setup-4217', phase: 'setup' };
    await request(app.url).post('/api/v1/secrets').set(user.headers).send(secret).expect(201);
    const task = await client.reached(await client.start({ selected_repository: 'octo/set-up' }), 'READY');

    const { workspace, folder, client: agent } = agentServer(task.sandboxId);
    expect(await readFile(path.join(workspace, 'set-up', 'seen.txt'), 'utf8')).toBe(`[${secret.value}]\n`);
    const info = await agent.get(`/api/conversations/${task.appConversationId}`);
    expect(JSON.stringify(info)).not.toContain('OF_SETUP');
    const { stdout } = await run('grep', ['-rl', secret.value, folder]);
    expect(stdout.trim().split('\n')).toEqual([path.join(workspace, 'set-up', 'seen.txt')]);
    const target = await app.app.get(RunningSandboxQueries, { strict: false }).target(task.sandboxId);
    await request(app.url)
      .get(`/api/v1/sandboxes/${task.sandboxId}/settings/secrets/OF_SETUP`)
      .set({ 'X-Session-API-Key': target?.sessionKey ?? '' })
      .expect(404);

    const second = { selected_repository: 'octo/set-up', sandbox_id: task.sandboxId };
    const later = await client.reached(await client.start(second), 'READY');
    expect(await readFile(path.join(later.workingDir ?? '', 'seen.txt'), 'utf8')).toBe('[]\n');

    const changed = { name: 'OF_SETUP', phase: null };
    await request(app.url).put('/api/v1/secrets/OF_SETUP').set(user.headers).send(changed).expect(200);
    const last = await client.reached(await client.start(second), 'READY');
    const given = await agent.get(`/api/conversations/${last.appConversationId}`);
    expect(JSON.stringify(given)).toContain('OF_SETUP');
  });

  it('keeps the secrets of a request encrypted, and gives them and those that it names to the tools', async () => {
    for (const name of ['NAMED', 'OTHER']) {
      await request(app.url)
        .post('/api/secrets')
        .set(user.headers)
        .send({ name, value: `${name} value` })
        .expect(201);
    }
    const task = await client.start({
      secrets: { OWN: 'own-value-4217' },
      secret_names: ['NAMED', 'NEVER_STORED'],
    });
    expect(task.request.secrets).toEqual({ OWN: '**********' });
    expect(JSON.stringify(await client.read(task.id))).not.toContain('own-value-4217');
    const ready = await client.reached(task, 'READY');
    expect(ready.notes).toEqual(['secret_names: nothing is stored under NEVER_STORED.']);

    const agent = agentServer(ready.sandboxId).client;
    const names = async (): Promise<string[]> => {
      const info = await agent.get(`/api/conversations/${ready.appConversationId}`);
      return Object.keys(Object(jsonAt(info, 'secret_registry', 'secret_sources')));
    };
    expect((await names()).toSorted()).toEqual(['NAMED', 'OWN']);
    const credentials = await app.app
      .get(CredentialsBuilder)
      .build({ id: ready.appConversationId, userId: user.id });
    expect(Object.keys(credentials.secrets ?? {}).toSorted()).toEqual(['NAMED', 'OWN']);
  });

  it('says which settings have no effect', async () => {
    await client.settings({ sandbox_runtime_container_image: 'mine:1' });
    const task = await client.reached(await client.start(), 'READY');
    expect(task.notes).toEqual([expect.stringContaining('mine:1')]);

    const another = await client.reached(await client.start({ sandbox_id: task.sandboxId }), 'READY');
    expect(another.notes).toEqual(task.notes);
  });

  it('stops when the task is deleted meanwhile, and leaves nothing behind', async () => {
    backend.gate.close();
    const task = await client.start();
    await client.reached(task, 'WAITING_FOR_SANDBOX');

    await request(app.url)
      .delete(`/api/v1/app-conversations/${task.appConversationId}`)
      .set(user.headers)
      .expect(200);
    backend.gate.open();

    await until(async () => (await client.sandboxes()).length === 0);
    await until(() => !backend.boxes.has(task.sandboxId));
    expect(await client.conversations()).toEqual([]);
  });
});
