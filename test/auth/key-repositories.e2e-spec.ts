import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import type request from 'supertest';
import { type DocumentedOperation, operationsOf } from '@slipway/api/openapi/operations.js';
import { SCOPES } from '../../src/common/scopes.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { addressOf, committedDocument } from '../support/resolved-document.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const KEYS = '/api/v1/api-keys';
const CONVERSATIONS = '/api/v1/app-conversations';
const ANY_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';

/** What keys for some repositories may use. All else is refused to them. */
const FOR_THEM = [
  'POST /api/v1/api-keys',
  'GET /api/keys/current',
  'GET /api/options/agents',
  'GET /api/options/models',
  'GET /api/options/security-analyzers',
  'GET /api/user/repositories',
  'GET /api/user/repository/branches',
  'GET /api/user/search/branches',
  'GET /api/user/search/repositories',
  'GET /api/user/suggested-tasks',
  'GET /api/v1/app-conversations',
  'POST /api/v1/app-conversations',
  'GET /api/v1/app-conversations/count',
  'GET /api/v1/app-conversations/search',
  'GET /api/v1/app-conversations/start-tasks',
  'GET /api/v1/app-conversations/start-tasks/count',
  'GET /api/v1/app-conversations/start-tasks/search',
  'POST /api/v1/app-conversations/stream-start',
  'PATCH /api/v1/app-conversations/{id}',
  'DELETE /api/v1/app-conversations/{id}',
  'GET /api/v1/app-conversations/{id}/download',
  'GET /api/v1/app-conversations/{id}/file',
  'GET /api/v1/app-conversations/{id}/files',
  'GET /api/v1/app-conversations/{id}/git/changes',
  'GET /api/v1/app-conversations/{id}/git/diff',
  'GET /api/v1/app-conversations/{id}/hooks',
  'POST /api/v1/app-conversations/{id}/pause',
  'POST /api/v1/app-conversations/{id}/pull-request',
  'POST /api/v1/app-conversations/{id}/respond-to-confirmation',
  'POST /api/v1/app-conversations/{id}/run',
  'POST /api/v1/app-conversations/{id}/send-message',
  'GET /api/v1/app-conversations/{id}/skills',
  'POST /api/v1/app-conversations/{id}/switch_acp_model',
  'POST /api/v1/app-conversations/{id}/switch_profile',
  'GET /api/v1/config/agents',
  'GET /api/v1/config/models/search',
  'GET /api/v1/config/providers/search',
  'GET /api/v1/conversation/{id}/events',
  'GET /api/v1/conversation/{id}/events/count',
  'GET /api/v1/conversation/{id}/events/search',
  'GET /api/v1/conversation/{id}/events/stream',
  'POST /api/v1/conversations/{id}/pending-messages',
  'GET /api/v1/events/count',
  'GET /api/v1/git/branches/search',
  'GET /api/v1/git/repositories/search',
  'GET /api/v1/git/suggested-tasks/search',
  'GET /api/v1/sandbox-specs',
  'GET /api/v1/sandbox-specs/search',
];

const TASK_ELSEWHERE = {
  git_provider: 'github',
  task_type: 'OPEN_ISSUE',
  repo: 'acme/secret',
  issue_number: 1,
  title: 'x',
};

const document = committedDocument();
const closed = operationsOf(document).filter(({ operation }) => member(operation, 'x-scope') !== 'none');

describe('a key for some repositories', () => {
  const app = useTestApp();
  const rows = new ConversationRows(app);
  type Headers = Record<string, string>;
  let user: TestUser;
  let headers: Headers;
  let key: string;

  const issue = (by: Headers, members: object): request.Test =>
    app.as({ headers: by }).post(KEYS, { name: 'ci', ...members });
  const keyOf = async (by: Headers, members: object): Promise<Headers> => ({
    'X-Session-API-Key': (await issue(by, members).expect(201)).body.key,
  });
  const get = (path: string, by: Headers = headers): request.Test => app.as({ headers: by }).get(path);
  const post = (path: string, body: object, by: Headers = headers): request.Test =>
    app.as({ headers: by }).post(path, body);
  const inOcto = { gitProvider: 'github', selectedRepository: 'octo/app' } as const;
  const elsewhere = { gitProvider: 'github', selectedRepository: 'acme/secret' } as const;

  beforeAll(async () => {
    user = await app.createUser();
    headers = await keyOf(user.headers, {
      scopes: SCOPES,
      repositories: ['github:octo/app', 'gitlab:group/*'],
    });
    key = headers['X-Session-API-Key'] ?? '';
  });

  describe('of an administrator', () => {
    let limited: Headers;
    let session: Headers;
    beforeAll(async () => {
      limited = await keyOf(app.admin.headers, { scopes: SCOPES, repositories: ['github:octo/app'] });
      session = await sessionOf(app.url, limited['X-Session-API-Key'] ?? '');
    });

    it('makes none of its session', async () => {
      const { body } = await get('/auth/session', session).expect(200);
      expect(body.user).toMatchObject({ is_admin: false, repositories: ['github:octo/app'] });
    });

    it.each(closed)(
      '$name is refused unless it is about conversations, as is a session',
      async ({ name, operation }) => {
        const isForThem = FOR_THEM.includes(name);
        expect([name, member(operation, 'x-repositories') === true]).toEqual([name, isForThem]);
        for (const by of [limited, session]) {
          expect([name, await refusedToAll(name, by)]).toEqual([name, !isForThem]);
        }
      },
    );

    it.each([
      ['POST', '/mcp'],
      ['HEAD', '/api/v1/settings'],
      ['GET', '/API/V1/Settings/'],
    ])('%s %s is refused, too', async (method, path) => {
      const response = await fetch(`${app.url}${path}`, { method, headers: limited });
      expect(response.status).toBe(403);
    });

    it('is tried on all', () => {
      expect(FOR_THEM.filter((name) => !closed.some((each) => each.name === name))).toEqual([]);
      expect(closed.length).toBeGreaterThan(FOR_THEM.length * 2);
    });

    const refusedToAll = async (name: string, by: Headers): Promise<boolean> => {
      const { method, path } = addressOf(name, ANY_ID, app.admin.id);
      const { status, body } = await app.as({ headers: by }).ask(method.toLowerCase() as 'get', path);
      return (
        status === 403 && body.code === 'outside_repositories' && /all that its user has/.test(body.detail)
      );
    };
  });

  describe('lists', () => {
    let owner: TestUser;
    let limited: Headers;
    let mine: string[];
    let shared: string;

    beforeAll(async () => {
      owner = await app.createUser();
      const other = await app.createUser();
      limited = await keyOf(owner.headers, { repositories: ['github:Octo/App', 'gitlab:group/*'] });
      const at = (seconds: number): { createdAt: Date } => ({
        createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)),
      });
      const add = async (seconds: number, members: object, userId = owner.id): Promise<string> =>
        (await rows.conversation(userId, { ...members, ...at(seconds) }, FOLLOWED_ELSEWHERE)).hex;
      const gitlab = (selectedRepository: string): object => ({ gitProvider: 'gitlab', selectedRepository });
      mine = [
        await add(1, inOcto),
        await add(2, { gitProvider: 'github', selectedRepository: 'OCTO/app' }),
        await add(3, gitlab('group/sub/project')),
      ];
      for (const [index, members] of [
        elsewhere,
        {},
        { selectedRepository: 'octo/app' },
        gitlab('octo/app'),
        gitlab('groups/project'),
        gitlab('group'),
      ].entries()) {
        await add(4 + index * 3, members);
      }
      shared = await add(60, { ...inOcto, visibility: 'organization' }, other.id);
      await add(61, { ...elsewhere, visibility: 'organization' }, other.id);
      await add(62, inOcto, other.id);
    });

    const idsOf = async (path: string): Promise<string[]> =>
      (await get(path, limited).expect(200)).body.items.map(({ id }: { id: string }) => id);

    it('have what is of its repositories, and the same number', async () => {
      expect(await idsOf(`${CONVERSATIONS}/search`)).toEqual([shared, ...mine.toReversed()]);
      expect(await idsOf(`${CONVERSATIONS}/search?owner__eq=me`)).toEqual(mine.toReversed());
      expect(await idsOf(`${CONVERSATIONS}/search?owner__eq=others`)).toEqual([shared]);
      expect(await idsOf(`${CONVERSATIONS}/search?git_provider__eq=gitlab`)).toEqual([mine[2]]);
      expect((await get(`${CONVERSATIONS}/count`, limited).expect(200)).body).toBe(4);
      expect((await get(`${CONVERSATIONS}/count?owner__eq=me`, limited).expect(200)).body).toBe(3);
      expect((await get(`${CONVERSATIONS}/count?owner__eq=me`, owner.headers).expect(200)).body).toBe(9);
    });

    it('have pages without gaps', async () => {
      const pages: string[][] = [];
      let next: string | null = '';
      while (next !== null) {
        const after: string = next === '' ? '' : `&page_id=${next}`;
        const { body }: request.Response = await get(`${CONVERSATIONS}/search?limit=1${after}`, limited);
        pages.push(body.items.map(({ id }: { id: string }) => id));
        next = body.next_page_id;
      }
      expect(pages).toEqual([[shared], ...mine.toReversed().map((id) => [id])]);
    });

    it('have starts of them only', async () => {
      const start = async (selected_repository: string | null): Promise<string> => {
        const asked = sampleStartRequest({ selected_repository, git_provider: 'github' });
        return (await rows.startTask(owner.id, { request: asked })).hex;
      };
      const [one, other] = [await start('octo/app'), await start('acme/secret'), await start(null)];
      const path = `${CONVERSATIONS}/start-tasks`;
      expect(await idsOf(`${path}/search`)).toEqual([one]);
      expect((await get(`${path}/count`, limited).expect(200)).body).toBe(1);
      const { body } = await get(`${path}?ids=${one}&ids=${other}`, limited).expect(200);
      expect(body).toMatchObject([{ id: one }, null]);
    });

    it('find those by their index', async () => {
      const many = await app.createUser();
      await app.dataSource.query(
        `INSERT INTO app_conversations (id, user_id, sandbox_id, working_dir, git_provider, selected_repository)
         SELECT gen_random_uuid(), $1, 'none', '/', 'github', 'acme/project-' || n FROM generate_series(1, 5000) n`,
        [many.id],
      );
      const tables = 'app_conversations, followed_conversations, sandboxes, followed_pull_requests';
      await app.dataSource.query(`ANALYZE ${tables}`);
      const one = await keyOf(many.headers, { repositories: ['github:acme/project-7'] });
      const spy = jest.spyOn(app.dataSource, 'query');
      const paths = ['search', 'search?owner__eq=me', 'count'].map((path) => `${CONVERSATIONS}/${path}`);
      for (const path of paths) {
        await get(path, one).expect(200);
      }
      const sent = spy.mock.calls
        .map(([sql, values]) => ({ sql, values }))
        .filter(({ sql }) => sql.includes('repository_entries'));
      spy.mockRestore();
      expect(sent).toHaveLength(paths.length);
      for (const { sql, values } of sent) {
        const plan = JSON.stringify(
          await app.dataSource.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, values),
        );
        const read = [...plan.matchAll(/"(?:Rows Removed by Filter|Actual Rows)":([\d.]+)/g)];
        expect(plan).toContain('app_conversations_repository_idx');
        expect(Math.max(...read.map(([, count]) => Number(count)))).toBeLessThan(100);
      }
    });
  });

  describe('starts', () => {
    const start = (body: object, by: Headers = headers): request.Test => post(CONVERSATIONS, body, by);
    const within = { selected_repository: 'octo/app', git_provider: 'github' };

    it('what is in its repositories, with their git token for it alone', async () => {
      const { body } = await start(within).expect(200);
      const { body: sub } = await start({
        selected_repository: 'group/sub/project',
        git_provider: 'gitlab',
      }).expect(200);
      const [row] = await app.dataSource.query<{ request: object }[]>(
        'SELECT request FROM app_conversation_start_tasks WHERE id = $1',
        [body.id],
      );
      expect(row?.request).toMatchObject({ ...within, own_repository: true, repositories_read: [] });
      expect(sub.request).toMatchObject({ selected_repository: 'group/sub/project' });
    });

    it('reads no other repositories, whatever its user may read', async () => {
      await storeProviderToken(app, user, 'github', 'ghp_reads');
      const { body } = await start({ ...within, repositories_read: ['github:acme/secret'] }).expect(403);
      expect(body).toMatchObject({ code: 'outside_repositories' });
    });

    it('repeats no request of another key about a repository that is not its own', async () => {
      const idempotency = randomUUID();
      const other = await keyOf(user.headers, { scopes: SCOPES, repositories: ['github:octo/other'] });
      const repeat = (by: Headers): request.Test => start(within, by).set('Idempotency-Key', idempotency);
      const { body: first } = await repeat(headers).expect(200);
      expect((await repeat(headers).expect(200)).body.id).toBe(first.id);
      const { body } = await repeat(other).expect(403);
      expect(body).toMatchObject({ code: 'outside_repositories' });
    });

    it('takes the provider that its repositories leave', async () => {
      const { body } = await start({ selected_repository: 'octo/app' }).expect(200);
      expect(body.request).toMatchObject(within);
    });

    it.each([
      ['nothing', {}],
      ['a title alone', { title: 'bare' }],
      ['another repository', { selected_repository: 'acme/secret', git_provider: 'github' }],
      ['a suggested task elsewhere', { selected_repository: 'octo/app', suggested_task: TASK_ELSEWHERE }],
    ])('nothing that names %s', async (_what, body) => {
      for (const path of [CONVERSATIONS, `${CONVERSATIONS}/stream-start`]) {
        const { body: problem } = await post(path, body).expect(403);
        expect(problem).toMatchObject({
          code: 'outside_repositories',
          repositories: ['github:octo/app', 'gitlab:group/*'],
        });
        expect(problem.detail).toContain('selected_repository');
      }
    });

    it('no child of another conversation, and none in its sandbox or a bare one', async () => {
      const sandbox = (await rows.sandbox(user.id)).id;
      const { hex } = await rows.conversation(user.id, { ...elsewhere, sandboxId: sandbox });
      const unknown = async (body: object): Promise<unknown> =>
        (await start({ ...within, ...body }).expect(422)).body;
      const without = JSON.stringify(await unknown({ parent_conversation_id: randomUUID() }));

      expect(JSON.stringify(await unknown({ parent_conversation_id: hex }))).toBe(without);
      const bare = (await rows.sandbox(user.id)).id;
      const nobodys = await unknown({ sandbox_id: 'a'.repeat(22) });
      expect(await unknown({ sandbox_id: sandbox })).toEqual(nobodys);
      expect(await unknown({ sandbox_id: bare })).toEqual(nobodys);
      const own = await rows.conversation(user.id, { ...inOcto, sandboxId: bare });
      await start({ ...within, sandbox_id: bare }).expect(200);
      await start({ parent_conversation_id: own.hex }).expect(200);
      await start({ parent_conversation_id: own.hex, selected_repository: 'acme/secret' }).expect(403);
      await rows.conversation(user.id, { ...elsewhere, sandboxId: bare });
      expect(await unknown({ sandbox_id: bare })).toEqual(nobodys);
    });
  });

  describe('and a conversation that it has', () => {
    it('is moved to none of another repository', async () => {
      const { hex } = await rows.conversation(user.id, inOcto);
      const change = (body: object): request.Test =>
        app.as({ headers }).patch(`${CONVERSATIONS}/${hex}`, body);

      for (const body of [
        { selected_repository: 'acme/secret' },
        { git_provider: 'gitlab' },
        { selected_repository: null },
        { git_provider: null },
      ]) {
        expect((await change(body).expect(403)).body).toMatchObject({ code: 'outside_repositories' });
      }
      await change({ title: 'renamed' }).expect(200);
      await change({ selected_repository: 'group/project', git_provider: 'gitlab' }).expect(200);
    });

    it('shows nothing that opens its sandbox', async () => {
      const sandbox = (await rows.sandbox(user.id, { address: 'http://127.0.0.1:9' })).id;
      const { hex } = await rows.conversation(user.id, { ...inOcto, sandboxId: sandbox });
      const shown = (by: Headers): Promise<boolean> =>
        get(`${CONVERSATIONS}?ids=${hex}`, by).then(({ text }) => /"session_api_key":"/.test(text));

      expect([await shown(user.headers), await shown(headers)]).toEqual([true, false]);
    });

    it('is streamed until its repository is another one', async () => {
      const { id, hex } = await rows.conversation(user.id, inOcto, FOLLOWED_ELSEWHERE);
      await app.app
        .get(EventStore, { strict: false })
        .store(id, [messageEvent(randomUUID(), 'user', 'hello')]);
      const path = `${app.url}/api/v1/conversation/${hex}/events/stream`;
      const [stream, whole] = [
        await EventSource.connect(path, headers),
        await EventSource.connect(path, user.headers),
      ];
      await Promise.all([stream.untilCount(1), whole.untilCount(1)]);
      await app.as(user).patch(`${CONVERSATIONS}/${hex}`, { selected_repository: 'acme/secret' }).expect(200);
      await stream.untilEnded();
      expect(whole.ended).toBe(false);
      whole.close();
      const again = await EventSource.connect(path, headers);
      expect(again.response.statusCode).toBe(404);
      again.close();
    });
  });

  describe('makes keys', () => {
    it.each([
      [undefined, ['github:octo/app', 'gitlab:group/*']],
      [null, ['github:octo/app', 'gitlab:group/*']],
      [
        ['gitlab:Group/Sub/*', 'gitlab:group/sub/*', 'github:OCTO/app'],
        ['gitlab:group/sub/*', 'github:octo/app'],
      ],
    ])('for %j within its own', async (repositories, expected) => {
      const { body } = await issue(headers, { scopes: ['read'], repositories }).expect(201);
      expect(body.repositories).toEqual(expected);
      const { body: current } = await get('/api/keys/current', { 'X-Session-API-Key': body.key }).expect(200);
      expect(current).toMatchObject({ repositories: expected, scopes: ['read'] });
    });

    it.each([[['github:octo/*']], [['github:octo/app', 'github:acme/secret']], [['gitlab:groups/*']]])(
      'for no other one: %j',
      async (repositories) => {
        const { body } = await issue(headers, { repositories }).expect(403);
        expect(body).toMatchObject({ code: 'outside_repositories' });
      },
    );

    it('that are listed and noted with theirs', async () => {
      const { body: listed } = await get(KEYS, user.headers).expect(200);
      expect(listed).toContainEqual(
        expect.objectContaining({
          id: key.slice(4, 12),
          repositories: ['github:octo/app', 'gitlab:group/*'],
        }),
      );
      const [entry] = await app.dataSource.query<{ details: object }[]>(
        `SELECT details FROM audit_entries WHERE action = 'api_key.create' AND resource_id = $1`,
        [key.slice(4, 12)],
      );
      expect(entry?.details).toMatchObject({ repositories: ['github:octo/app', 'gitlab:group/*'] });
    });
  });

  it('is the same to SQL as to the service', async () => {
    const entries = await app.dataSource.query<{ entries: string[] }[]>(
      `SELECT repository_entries('gitlab', 'Group/Sub/Name') AS entries
       UNION ALL SELECT repository_entries('github', 'octo/app') UNION ALL SELECT repository_entries(NULL, 'octo/app')`,
    );
    expect(entries.map((row) => row.entries?.toSorted() ?? null)).toEqual([
      ['gitlab:group/*', 'gitlab:group/sub/*', 'gitlab:group/sub/name'],
      ['github:octo/*', 'github:octo/app'],
      null,
    ]);
  });

  it('ends with the user, as others do', async () => {
    const gone = await app.createUser();
    const limited = await keyOf(gone.headers, { repositories: ['github:octo/app'] });
    await post(`/api/v1/users/${gone.id}/disable`, {}, app.admin.headers).expect(200);
    await until(async () => (await get(`${CONVERSATIONS}/count`, limited)).status === 401);
  });
});

function member(operation: DocumentedOperation['operation'], name: string): unknown {
  return Object(operation)[name];
}
