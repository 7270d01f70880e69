import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import type { TestUser } from '../support/create-test-app.js';
import { insertSandboxRow, type SandboxRowHandle } from '../support/sandbox-rows.js';
import { TokensClient } from '../support/tokens-client.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const PATH = '/api/v1/webhooks/pull-requests';

const { hosts, app } = useGitHosts();
let user: TestUser;
let sandbox: SandboxRowHandle;
let before: number;

beforeEach(async () => {
  user = await app.createUser();
  sandbox = await insertSandboxRow(app.dataSource, user.id);
  await new TokensClient(app, user).post(hosts.tokens);
  hosts.github.requests.length = 0;
  before = count();
});

afterEach(() => {
  hosts.clearFaults();
  hosts.worlds.github.changeRequests.length = before;
});

function count(): number {
  return hosts.worlds.github.changeRequests.length;
}

async function insertConversation(
  repository: string | null = 'octo/app',
  provider: string | null = 'github',
  place = sandbox,
): Promise<string> {
  const id = randomUUID();
  await app.dataSource.query(
    `INSERT INTO app_conversations (id, user_id, sandbox_id, selected_repository, git_provider, working_dir)
     VALUES ($1, $2, $3, $4, $5, '/workspace')`,
    [id, user.id, place.id, repository, provider],
  );
  return id;
}

async function numbersOf(id: string): Promise<number[]> {
  const [row] = await app.dataSource.query<{ pr_number: number[] }[]>(
    'SELECT pr_number FROM app_conversations WHERE id = $1',
    [id],
  );
  return row?.pr_number ?? [];
}

function bodyFor(id: string, change: object = {}) {
  return {
    conversation_id: id,
    source_branch: 'fix/it',
    target_branch: 'release',
    title: 'Fix it',
    body: 'Because.',
    ...change,
  };
}

function post(body: object, headers: Record<string, string> = sandbox.headers) {
  return app.as({ headers }).post(PATH, body);
}

const isCreation = ({ method, path }: FakeRequest) => method === 'POST' && path.endsWith('/pulls');

describe('POST /api/v1/webhooks/pull-requests', () => {
  it.each(['PAUSING', 'PAUSED', 'ERROR'] as const)('opens none for a sandbox that is %s', async (status) => {
    const resting = await insertSandboxRow(app.dataSource, user.id, status);
    const id = await insertConversation('octo/app', 'github', resting);
    await post(bodyFor(id), resting.headers).expect(401);
    expect(hosts.github.requests.filter(isCreation)).toEqual([]);
  });

  it.each(['read', 'none'] as const)('opens none for an agent with git: %s', async (git) => {
    const id = await insertConversation();
    const start = { appConversationId: id, status: 'READY' as const };
    await new ConversationRows(app).startTask(user.id, { ...start, request: sampleStartRequest({ git }) });
    const { body } = await post(bodyFor(id)).expect(403);
    expect(body.detail).toContain(`git: ${git}`);
    expect(hosts.github.requests.filter(isCreation)).toEqual([]);
  });

  it('opens one with the token of the owner, and notes its number', async () => {
    const id = await insertConversation();
    const told = 'Because.\n/merge';
    const { body } = await post(bodyFor(id, { draft: true, body: told })).expect(201);

    expect(body).toEqual({ number: 16, url: 'https://code.example/octo/app/16' });
    expect(hosts.worlds.github.changeRequests.at(-1)).toMatchObject({
      repository: 'octo/app',
      sourceBranch: 'fix/it',
      targetBranch: 'release',
      title: 'Fix it',
      // A line that begins with a slash would be a command of the user, which the agent may not give.
      body: 'Because.\n\\/merge',
      draft: true,
    });
    expect(await numbersOf(id)).toEqual([16]);
    const { body: conversations } = await app.as(user).get(`/api/v1/app-conversations?ids=${id}`).expect(200);
    expect(conversations).toMatchObject([
      {
        branch: 'fix/it',
        pull_requests: [
          { number: 16, url: 'https://code.example/octo/app/16', title: 'Fix it', source_branch: 'fix/it' },
        ],
      },
    ]);
  });

  it('accepts an id without dashes, the default branch, and the first provider', async () => {
    const id = await insertConversation('octo/library', null);
    const request = bodyFor(id.replaceAll('-', ''), { target_branch: null });
    await post(request).expect(201);

    expect(hosts.worlds.github.changeRequests.at(-1)).toMatchObject({ targetBranch: 'trunk', draft: false });
    expect(await numbersOf(id)).toEqual([13]);
  });

  it('returns an open pull request again, and adds its number once', async () => {
    const id = await insertConversation();
    const first = await post(bodyFor(id)).expect(201);
    const second = await post(bodyFor(id)).expect(201);

    expect(second.body).toEqual(first.body);
    expect(await numbersOf(id)).toEqual([16]);
    const rows = await app.dataSource.query<{ pull_requests: unknown[] }[]>(
      'SELECT pull_requests FROM app_conversations WHERE id = $1',
      [id],
    );
    expect(rows[0]?.pull_requests).toHaveLength(1);
    expect(count()).toBe(before + 1);
  });

  it('keeps earlier numbers, and adds one for two requests at once', async () => {
    const id = await insertConversation();
    await app.dataSource.query("UPDATE app_conversations SET pr_number = '{3}' WHERE id = $1", [id]);
    const answers = await Promise.all([post(bodyFor(id)), post(bodyFor(id))]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    await post(bodyFor(id, { target_branch: 'main' })).expect(201);

    expect(await numbersOf(id)).toEqual([3, 16, 17]);
  });

  describe('refuses', () => {
    it("conversations of other sandboxes, also the user's own", async () => {
      const other = await insertSandboxRow(app.dataSource, user.id);
      const elsewhere = await insertConversation('octo/app', 'github', other);
      const { body } = await post(bodyFor(elsewhere)).expect(404);

      expect(body).toMatchObject({ code: 'not_found' });
      await post(bodyFor(randomUUID())).expect(404);
      expect(hosts.github.requests).toEqual([]);
    });

    it('a conversation without a repository, and a user without a token', async () => {
      const none = await post(bodyFor(await insertConversation(null, null))).expect(409);
      expect(none.body).toMatchObject({ code: 'conflict', detail: 'The conversation has no repository.' });

      await app.as(user).post('/api/unset-provider-tokens').expect(200);
      const { body } = await post(bodyFor(await insertConversation())).expect(409);
      expect(body).toMatchObject({
        code: 'no_git_provider',
        detail: 'There is no github token: store one with POST /api/v1/secrets/git-providers.',
      });
    });
  });

  describe('passes on', () => {
    it('why the provider refuses', async () => {
      const id = await insertConversation();
      const { body } = await post(bodyFor(id, { target_branch: 'fix/it' })).expect(409);

      expect(body).toMatchObject({
        code: 'conflict',
        detail: 'The git provider github refuses: No commits between fix/it and fix/it.',
      });
      expect(await numbersOf(id)).toEqual([]);
    });

    it('that the token lacks a permission, without the token', async () => {
      const { token } = hosts.worlds.github;
      hosts.github.injectFault(
        { kind: 'status', status: 403, body: { message: `Resource not accessible by ${token}` } },
        { match: isCreation },
      );
      const { body } = await post(bodyFor(await insertConversation())).expect(403);

      expect(body.detail).toBe('The github token may not do this: Resource not accessible by ***.');
    });
  });
});

describe('POST /api/v1/app-conversations/{id}/pull-request', () => {
  let agent: FakeConversationServer & { address: string };
  let id: string;

  beforeEach(async () => {
    agent = await FakeConversationServer.start();
    agent.push = { ok: true, branch: 'fix/it', output: '' };
    const place = await new ConversationRows(app).sandbox(user.id, {
      key: agent.key,
      address: agent.address,
      generation: 0,
    });
    id = await insertConversation('octo/app', 'github', {
      id: place.id,
      key: agent.key,
      headers: sandbox.headers,
    });
    await app.dataSource.query('UPDATE app_conversations SET title = $2 WHERE id = $1', [
      id,
      'Fix the parser',
    ]);
  });

  afterEach(async () => {
    await agent.close();
  });

  const open = (body?: object, headers: Record<string, string> = user.headers): request.Test =>
    app.as({ headers }).post(`/api/v1/app-conversations/${id}/pull-request`, body);

  it('pushes what is checked out with the token of the user, and opens one as the conversation suggests', async () => {
    const { body } = await open().expect(201);

    expect(body).toEqual({ number: 16, url: 'https://code.example/octo/app/16' });
    expect(agent.pushes).toEqual([
      {
        url: expect.stringMatching(/^http.*\/octo\/app\.git$/),
        directory: '/workspace',
        branch: null,
        username: expect.any(String),
        password: hosts.worlds.github.token,
      },
    ]);
    expect(hosts.worlds.github.changeRequests.at(-1)).toMatchObject({
      repository: 'octo/app',
      sourceBranch: 'fix/it',
      title: 'Fix the parser',
      body: '',
      draft: false,
    });
    expect(await numbersOf(id)).toEqual([16]);
    expect((await open().expect(201)).body).toEqual(body);
  });

  it('takes branches, title and text from the request', async () => {
    await open({
      title: 'Mine',
      body: 'Because.',
      draft: true,
      source_branch: 'fix/it',
      target_branch: 'release',
    }).expect(201);

    expect(agent.pushes).toMatchObject([{ branch: 'fix/it' }]);
    expect(hosts.worlds.github.changeRequests.at(-1)).toMatchObject({
      sourceBranch: 'fix/it',
      targetBranch: 'release',
      title: 'Mine',
      body: 'Because.',
      draft: true,
    });
  });

  it('opens none when the branch cannot be pushed, and says why', async () => {
    agent.push = { ok: false, branch: 'main', output: 'main is the default branch; commit to another one.' };
    const { body } = await open().expect(409);

    expect(body.detail).toBe(
      'The branch cannot be pushed: main is the default branch; commit to another one.',
    );
    expect(count()).toBe(before);
  });

  it('trusts that the agent of a stock agent server has pushed the branch', async () => {
    agent.push = null;
    expect((await open().expect(409)).body.detail).toContain('Name the branch as source_branch');
    await open({ source_branch: 'fix/it' }).expect(201);
  });

  it('refuses what the one for agents refuses', async () => {
    await open({ source_branch: '--force' }).expect(422);
    await open({ title: ' ' }).expect(422);
    id = await insertConversation(null, null);
    expect((await open().expect(409)).body.detail).toBe('The conversation has no repository.');
  });
});
