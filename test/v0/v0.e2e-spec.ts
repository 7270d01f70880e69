import { beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import { modelEndpoint } from '@slipway/common/model-endpoint.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const { hosts, app } = useGitHosts({ PUBLIC_URL: 'https://agents.example.com/' });
const rows = new ConversationRows(app);
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

function get(path: string, who: TestUser = user): request.Test {
  return app.as(who).get(`/api/${path}`);
}

describe('options of the older web application', () => {
  it('tell their configuration to everybody, and nothing of anybody', async () => {
    const { body } = await app.as().get('/api/options/config').expect(200);

    expect(body).toEqual({
      APP_MODE: 'oss',
      GITHUB_CLIENT_ID: '',
      POSTHOG_CLIENT_KEY: '',
      PROVIDERS_CONFIGURED: ['github', 'gitlab', 'bitbucket'],
      FEATURE_FLAGS: {
        ENABLE_BILLING: false,
        HIDE_LLM_SETTINGS: false,
        ENABLE_JIRA: false,
        ENABLE_JIRA_DC: false,
        ENABLE_LINEAR: false,
      },
    });
  });

  it('offer what a conversation can begin with', async () => {
    const models: string[] = (await get('options/models').expect(200)).body;

    expect(models.length).toBeGreaterThan(100);
    expect(models).toEqual([...new Set(models)].toSorted());
    expect(models).toEqual(expect.arrayContaining(['anthropic/claude-sonnet-4-5', 'deepseek/deepseek-chat']));
    expect(models.filter((name) => 'problem' in modelEndpoint(name, null))).toEqual([]);
    expect((await get('options/agents').expect(200)).body).toEqual(['CodeActAgent']);
    expect((await get('options/security-analyzers').expect(200)).body).toEqual([
      'llm',
      'pattern',
      'policy_rail',
    ]);
  });
});

describe('conversations of the older web application', () => {
  it('are those of V1, with key and address while the sandbox runs', async () => {
    const sandbox = await rows.sandbox(user.id, { key: 'key-of-the-sandbox', address: 'http://127.0.0.1:1' });
    const { hex, createdAt, updatedAt } = await rows.conversation(
      user.id,
      {
        sandboxId: sandbox.id,
        selectedRepository: 'octo/app',
        title: 'Parser',
        trigger: 'gui',
        prNumber: [7],
      },
      { executionStatus: 'running' },
    );
    const v1 = (await get(`v1/app-conversations?ids=${hex}`)).body[0];

    const { body } = await get(`conversations/${hex}`).expect(200);

    expect(body).toEqual({
      conversation_id: hex,
      title: 'Parser',
      last_updated_at: updatedAt.toISOString(),
      created_at: createdAt.toISOString(),
      status: 'RUNNING',
      runtime_status: 'STATUS$READY',
      selected_repository: 'octo/app',
      selected_branch: null,
      git_provider: null,
      trigger: 'gui',
      num_connections: 0,
      url: v1.conversation_url,
      session_api_key: 'key-of-the-sandbox',
      pr_number: [7],
      conversation_version: 'V1',
    });
    expect((await get('conversations')).body).toEqual({ results: [body], next_page_id: null });
    expect((await get(`conversations/${hex}/config`)).body).toEqual({
      runtime_id: sandbox.id,
      session_id: hex,
    });
  });

  it.each([
    ['STARTING', null, 'STARTING', null],
    ['RUNNING', 'error', 'RUNNING', 'STATUS$ERROR'],
    ['PAUSED', 'paused', 'STOPPED', null],
    ['ERROR', null, 'ERROR', null],
  ] as const)(
    'say of a sandbox that is %s (%s) that it is %s',
    async (sandboxStatus, execution, status, runtime) => {
      const sandbox = await rows.sandbox(user.id, { status: sandboxStatus });
      const { hex } = await rows.conversation(
        user.id,
        { sandboxId: sandbox.id },
        { executionStatus: execution },
      );

      const { body } = await get(`conversations/${hex}`).expect(200);

      expect([body.status, body.runtime_status]).toEqual([status, runtime]);
    },
  );

  it('are archived without their sandbox, and have a name of their own', async () => {
    const { hex } = await rows.conversation(user.id);

    expect((await get(`conversations/${hex}`)).body).toMatchObject({
      status: 'ARCHIVED',
      runtime_status: null,
      url: null,
      session_api_key: null,
      title: `Conversation ${hex.slice(0, 5)}`,
    });
  });

  it('come in pages, and by repository and trigger', async () => {
    await rows.conversation(user.id, { selectedRepository: 'octo/app', trigger: 'gui' });
    await rows.conversation(user.id, { selectedRepository: 'octo/library', trigger: 'resolver' });

    const first = (await get('conversations?limit=1').expect(200)).body;
    const second = (await get(`conversations?limit=1&page_id=${first.next_page_id}`).expect(200)).body;

    const seen = [...first.results, ...second.results].map((each) => each.selected_repository);
    expect(seen).toEqual(['octo/library', 'octo/app']);
    expect(second.next_page_id).toBeNull();
    const byRepository = (await get('conversations?selected_repository=octo/app')).body.results;
    const byTrigger = (await get('conversations?conversation_trigger=resolver')).body.results;
    expect([byRepository.length, byTrigger.length]).toEqual([1, 1]);
  });

  it('are renamed and removed', async () => {
    const { hex } = await rows.conversation(user.id, { title: 'before' });

    const renamed = await app.as(user).patch(`/api/conversations/${hex}`, { title: 'after' }).expect(200);
    expect([renamed.text, renamed.type]).toEqual(['true', 'application/json']);
    expect((await get(`conversations/${hex}`)).body.title).toBe('after');

    const removed = await app.as(user).delete(`/api/conversations/${hex}`).expect(200);
    expect(removed.text).toBe('true');
    await get(`conversations/${hex}`).expect(404);
    await get('conversations/nonsense').expect(404);
  });
});

describe('repositories of the older web application', () => {
  beforeEach(async () => {
    hosts.clearFaults();
    await app.as(user).post('/api/add-git-providers', hosts.tokens).expect(200);
  });

  const names = (body: { full_name: string }[]): string[] => body.map(({ full_name: name }) => name);

  it('are paged by the link in the first one', async () => {
    const seen: string[] = [];
    let page: string | null = '1';
    while (page !== null && seen.length < 10) {
      const { body }: { body: { full_name: string; link_header: string | null }[] } = await get(
        `user/repositories?selected_provider=gitlab&sort=pushed&per_page=2&page=${page}`,
      ).expect(200);
      seen.push(...names(body));
      // As the web application reads it.
      page = /<[^>]*[?&]page=(\d+)(?:&[^>]*)?>; rel="next"/.exec(body[0]?.link_header ?? '')?.[1] ?? null;
    }

    expect(seen.toSorted()).toEqual(['mona/notes', 'octo/app', 'octo/library']);
  });

  it('are found by part of a name, at the first provider unless one is named', async () => {
    const anywhere = await get('user/search/repositories?query=lib&per_page=5').expect(200);
    // As the older web application asks.
    expect((await get('user/search/repositories?query=lib&per_page=500').expect(200)).body).toEqual(
      anywhere.body,
    );
    const sorted = await get(
      'user/search/repositories?query=octo/&selected_provider=gitlab&sort=stars&order=asc',
    ).expect(200);

    expect(anywhere.body).toMatchObject([{ full_name: 'octo/library', git_provider: 'github' }]);
    expect(names(sorted.body).toSorted()).toEqual(['octo/app', 'octo/library']);
  });

  it('are narrowed down to an installation', async () => {
    expect((await get('user/installations?provider=bitbucket').expect(200)).body).toEqual(['mona', 'octo']);
    const { body } = await get('user/repositories?selected_provider=bitbucket&installation_id=mona').expect(
      200,
    );

    expect(names(body)).toEqual(['mona/notes']);
  });

  it('tell their branches, page by page and by part of a name', async () => {
    const first = (await get('user/repository/branches?repository=octo/app&per_page=2').expect(200)).body;
    const next = first.current_page + 1;
    const second = (await get(`user/repository/branches?repository=octo/app&per_page=2&page=${next}`)).body;
    const found = await get(
      'user/search/branches?repository=octo/app&query=fix&selected_provider=gitlab',
    ).expect(200);

    expect(first).toMatchObject({ has_next_page: true, per_page: 2, total_count: null });
    expect(second.has_next_page).toBe(false);
    const branches = [...first.branches, ...second.branches].map(({ name }: { name: string }) => name);
    expect(branches.toSorted()).toEqual(['fix/it', 'main', 'release']);
    expect(found.body).toMatchObject([{ name: 'fix/it' }]);
    await get('user/repository/branches?repository=octo/none').expect(404);
  });

  it('tell the branches of a repository that only a later provider has, also while the first one fails', async () => {
    const { repositories } = hosts.worlds.gitlab;
    repositories.push({ name: 'octo/team/tools', activeAt: '2026-11-01T00:00:00Z' });
    repositories.push({ name: 'octo/tools', activeAt: '2026-11-01T00:00:00Z' });
    const branches = async (repository: string): Promise<unknown> =>
      (await get(`user/repository/branches?repository=${repository}`).expect(200)).body.branches;

    expect(await branches('octo/team/tools')).toMatchObject([{ name: 'main' }]);
    hosts.github.injectFault({ kind: 'status', status: 401 });
    expect(await branches('octo/tools')).toMatchObject([{ name: 'main' }]);
    expect((await get('user/repository/branches?repository=octo/none').expect(401)).body.code).toBe(
      'invalid_git_token',
    );
    repositories.splice(-2);
  });

  it('ask all providers together for the branches of a repository', async () => {
    const name = 'octo/anywhere';
    hosts.github.injectFault({ kind: 'hang' });
    const asked = get(`user/repository/branches?repository=${name}`).then(({ status }) => status);
    await until(() =>
      [hosts.gitlab, hosts.bitbucket].every(({ requests }) =>
        requests.some(({ path, body }) => decodeURIComponent(`${path} ${body}`).includes(name)),
      ),
    );
    hosts.clearFaults();
    hosts.github.hangUp();
    expect(await asked).toBe(404);
  });

  it.each(['repositories', 'search/repositories?query=x', 'installations?provider=github'])(
    'are nothing without a token: %s',
    async (path) => {
      const stranger = await app.createUser();

      expect((await get(`user/${path}`, stranger).expect(401)).body.code).toBe('no_git_provider');
    },
  );
});
