import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { actionEvent } from '../fakes/sample-events.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const SCHEMA = { type: 'object', properties: { passed: { type: 'boolean' } }, required: ['passed'] };

const app = useTestApp({ PUBLIC_URL: 'https://agents.example.com/' });
const rows = new ConversationRows(app);
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

function get(path: string, who: TestUser = user): request.Test {
  return request(app.url).get(`${CONVERSATIONS}${path}`).set(who.headers);
}

/** Titles on the pages that follow one another from a path. */
async function titlesByPage(path: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let pageId = ''; ;) {
    const { body } = await get(`${path}${pageId === '' ? '' : `&page_id=${pageId}`}`).expect(200);
    pages.push(body.items.map(({ title }: { title: string }) => title));
    if (body.next_page_id === null) {
      return pages;
    }
    pageId = body.next_page_id;
  }
}

describe('a conversation', () => {
  it('has every member of the wire, and its sandbox with key and address while that runs', async () => {
    const sandbox = await rows.sandbox(user.id, { key: 'key-of-the-sandbox', address: 'http://127.0.0.1:1' });
    const metrics = {
      model_name: 'provider/model-1',
      accumulated_cost: 0.5,
      max_budget_per_task: null,
      accumulated_token_usage: null,
    };
    const parent = await rows.conversation(user.id);
    const { hex, createdAt, updatedAt } = await rows.conversation(
      user.id,
      {
        sandboxId: sandbox.id,
        selectedRepository: 'octo/app',
        selectedBranch: 'main',
        gitProvider: 'github',
        title: 'Parser',
        trigger: 'gui',
        prNumber: [7, 8],
        llmModel: 'provider/model-1',
        parentConversationId: parent.id,
        tags: { team: 'a' },
        public: false,
      },
      { executionStatus: 'running', metrics },
    );

    const { body } = await get(`?ids=${hex}`).expect(200);

    expect(body).toEqual([
      {
        id: hex,
        created_by_user_id: user.id,
        created_by_email: expect.stringContaining('@'),
        visibility: 'private',
        sandbox_id: sandbox.id,
        selected_repository: 'octo/app',
        selected_branch: 'main',
        git_provider: 'github',
        title: 'Parser',
        trigger: 'gui',
        pr_number: [7, 8],
        llm_model: 'provider/model-1',
        agent_kind: 'openhands',
        metrics,
        parent_conversation_id: parent.hex,
        sub_conversation_ids: [],
        public: false,
        tags: { team: 'a' },
        metadata: {},
        branch: null,
        pull_requests: [],
        result: null,
        follow: null,
        created_at: createdAt.toISOString(),
        updated_at: updatedAt.toISOString(),
        sandbox_status: 'RUNNING',
        execution_status: 'running',
        error: null,
        conversation_url: `https://agents.example.com/api/v1/sandboxes/${sandbox.id}/agent-server/api/conversations/${hex}`,
        session_api_key: 'key-of-the-sandbox',
        acp_server: null,
        launched_agent_profile: null,
      },
    ]);
    expect(hex).toMatch(/^[0-9a-f]{32}$/);
  });

  it.each([
    ['STARTING', 'STARTING', false],
    ['PAUSING', 'RUNNING', true],
    ['PAUSED', 'PAUSED', false],
    ['ERROR', 'ERROR', false],
    ['DELETING', 'MISSING', false],
    ['gone', 'MISSING', false],
  ] as const)(
    'shows a sandbox that is %s as %s, with key, address and status: %s',
    async (status, shown, isOpen) => {
      const members = { key: `key while ${status}`, address: 'http://127.0.0.1:1' };
      const sandbox = status !== 'gone' && (await rows.sandbox(user.id, { status, ...members }));
      const { hex, sandboxId } = await rows.conversation(user.id, sandbox ? { sandboxId: sandbox.id } : {}, {
        executionStatus: 'running',
      });

      const { body } = await get(`?ids=${hex}`).expect(200);

      expect(body).toEqual([
        expect.objectContaining({
          sandbox_id: sandboxId,
          sandbox_status: shown,
          execution_status: isOpen ? 'running' : null,
          conversation_url: isOpen ? expect.stringContaining(hex) : null,
          session_api_key: isOpen ? members.key : null,
        }),
      ]);
    },
  );
});

describe('GET /api/v1/app-conversations with ids', () => {
  it('answers in the order asked for, with null for unknown, foreign and invalid ids', async () => {
    const first = await rows.conversation(user.id);
    const second = await rows.conversation(user.id);
    const foreign = await rows.conversation((await app.createUser()).id);

    const ids = [second.id, 'nonsense', first.hex.toUpperCase(), randomUUID(), foreign.hex, second.hex, ''];
    const { body } = await get(`?${ids.map((id) => `ids=${id}`).join('&')}`).expect(200);

    expect(body.map((found: { id: string } | null) => found && found.id)).toEqual([
      second.hex,
      null,
      first.hex,
      null,
      null,
      second.hex,
      null,
    ]);
  });

  it("lists a conversation's own sub-conversations", async () => {
    const parent = await rows.conversation(user.id);
    const children = [
      await rows.conversation(user.id, { parentConversationId: parent.id, createdAt: new Date(1000) }),
      await rows.conversation(user.id, { parentConversationId: parent.id, createdAt: new Date(2000) }),
    ];
    await rows.conversation((await app.createUser()).id, { parentConversationId: parent.id });

    const { body } = await get(`?ids=${parent.hex}`).expect(200);

    expect(body[0].sub_conversation_ids).toEqual(children.map(({ hex }) => hex));
  });
});

describe('lists of conversations', () => {
  const at = (day: number): Date => new Date(Date.UTC(2026, 0, day));
  let owner: TestUser;

  beforeAll(async () => {
    owner = await app.createUser();
    const titles = ['one', 'two 100% sure', 'three_x', 'FOUR', 'five\\x'];
    for (const [index, title] of titles.entries()) {
      await rows.conversation(owner.id, { title, createdAt: at(index + 1) });
      await app.dataSource.query(
        'UPDATE app_conversations SET updated_at = $2 WHERE user_id = $1 AND title = $3',
        [owner.id, at(index + 11), title],
      );
    }
    const stranger = await app.createUser();
    await rows.conversation(stranger.id, { title: 'one of somebody else' });
  });

  beforeEach(() => {
    user = owner;
  });

  const ALL = [['five\\x', 'FOUR'], ['three_x', 'two 100% sure'], ['one']];

  it.each([
    ['/search?limit=2', ALL],
    ['?limit=2', ALL],
    ['/search?title__contains=o&limit=2', [['FOUR', 'two 100% sure'], ['one']]],
  ])('come newest first, in pages that keep the filter (%s)', async (path, pages) => {
    expect(await titlesByPage(path)).toEqual(pages);
  });

  it('lose and repeat nothing when many were created at the same moment, and when one is added meanwhile', async () => {
    const other = await app.createUser();
    for (let index = 0; index < 7; index += 1) {
      await rows.conversation(other.id, { title: `t${index}`, createdAt: at(1) });
    }
    const seen: string[] = [];
    let pageId = '';
    do {
      const { body } = await get(`/search?limit=3${pageId && `&page_id=${pageId}`}`, other).expect(200);
      seen.push(...body.items.map(({ title }: { title: string }) => title));
      pageId = body.next_page_id ?? '';
      await rows.conversation(other.id, { title: 'newer' });
    } while (pageId !== '');

    expect(seen.toSorted()).toEqual(['t0', 't1', 't2', 't3', 't4', 't5', 't6']);
  });

  it.each([
    ['title__contains=o', ['FOUR', 'two 100% sure', 'one']],
    ['title__contains=four', ['FOUR']],
    ['title__contains=100%25', ['two 100% sure']],
    ['title__contains=_', ['three_x']],
    ['title__contains=%5C', ['five\\x']],
    ['title__contains=%25', ['two 100% sure']],
    ['created_at__gte=2026-01-04T00:00:00Z', ['five\\x', 'FOUR']],
    ['created_at__gte=2026-01-04T00:00:00', ['five\\x', 'FOUR']],
    ['created_at__gte=2026-01-04', ['five\\x', 'FOUR']],
    ['created_at__lt=2026-01-02T00:00:00Z', ['one']],
    ['created_at__gte=2026-01-02T00:00:00Z&created_at__lt=2026-01-03T00:00:00Z', ['two 100% sure']],
    ['updated_at__gte=2026-01-15T00:00:00Z', ['five\\x']],
    ['updated_at__lt=2026-01-12T00:00:00Z', ['one']],
    ['sandbox_id__eq=nonsense', []],
    ['title__contains=o&updated_at__gte=2026-01-12T00:00:00Z', ['FOUR', 'two 100% sure']],
  ])('are filtered and counted by %s', async (query, titles) => {
    expect(await titlesByPage(`/search?${query}`)).toEqual([titles]);
    const { body, type } = await get(`/count?${query}`).expect(200);
    expect(body).toBe(titles.length);
    expect(type).toBe('application/json');
  });

  it('can be restricted to one sandbox', async () => {
    user = await app.createUser();
    await rows.conversation(user.id, { title: 'elsewhere' });
    const sandbox = await rows.sandbox(user.id);
    await rows.conversation(user.id, { sandboxId: sandbox.id, title: 'there' });

    expect(await titlesByPage(`/search?sandbox_id__eq=${sandbox.id}`)).toEqual([['there']]);
  });

  it('leave out sub-conversations unless they are asked for; all are counted', async () => {
    const other = await app.createUser();
    const parent = await rows.conversation(other.id, { title: 'parent', createdAt: at(1) });
    await rows.conversation(other.id, { title: 'part', parentConversationId: parent.id, createdAt: at(2) });
    const titles = async (query: string): Promise<string[]> =>
      (await get(`/search${query}`, other).expect(200)).body.items.map(
        ({ title }: { title: string }) => title,
      );

    expect(await titles('')).toEqual(['parent']);
    expect(await titles('?include_sub_conversations=true')).toEqual(['part', 'parent']);
    expect((await get('/count', other).expect(200)).body).toBe(2);
  });
});

describe('PATCH /api/v1/app-conversations/{id}', () => {
  const patch = (id: string, body: object, who: TestUser = user): request.Test =>
    request(app.url).patch(`${CONVERSATIONS}/${id}`).set(who.headers).send(body);

  it('changes the given members, nothing for an empty object, and clears members with null', async () => {
    const { id, hex } = await rows.conversation(user.id, { title: 'before', selectedBranch: 'main' });

    const { body } = await patch(hex, {
      title: '  after ',
      public: true,
      selected_repository: 'octo/app',
      git_provider: 'github',
    }).expect(200);
    expect(body).toMatchObject({
      id: hex,
      title: 'after',
      public: true,
      selected_repository: 'octo/app',
      selected_branch: 'main',
      git_provider: 'github',
    });
    expect((await get(`?ids=${hex}`)).body).toEqual([body]);
    expect((await patch(hex, {}).expect(200)).body).toEqual(body);

    // A cleared title is generated again.
    const isUsers = 'SELECT title_is_users FROM app_conversations WHERE id = $1';
    expect(await app.dataSource.query(isUsers, [id])).toEqual([{ title_is_users: true }]);
    const none = {
      title: null,
      public: null,
      selected_repository: null,
      selected_branch: null,
      git_provider: null,
    };
    expect((await patch(hex, none).expect(200)).body).toMatchObject(none);
    expect(await app.dataSource.query(isUsers, [id])).toEqual([{ title_is_users: false }]);
  });
});

describe('tags and metadata', () => {
  const patch = (id: string, body: object, who = user): request.Test =>
    request(app.url).patch(`${CONVERSATIONS}/${id}`).set(who.headers).send(body);
  const start = (body: object): request.Test =>
    request(app.url).post(CONVERSATIONS).set(user.headers).send(body);

  it('are kept with a conversation, and searched by', async () => {
    const { hex: one } = await rows.conversation(user.id, { tags: { team: 'checkout', state: 'open' } });
    const { hex: other } = await rows.conversation(user.id, { tags: { team: 'search', link: 'a:b' } });
    const stranger = await app.createUser();
    await rows.conversation(stranger.id, { tags: { team: 'checkout' } });

    const found = async (query: string): Promise<string[]> =>
      (await get(`/search?${query}`).expect(200)).body.items.map(({ id }: { id: string }) => id);
    expect(await found('tag=team:checkout')).toEqual([one]);
    expect(await found('tag=team:checkout&tag=state:open')).toEqual([one]);
    expect(await found('tag=team:checkout&tag=state:done')).toEqual([]);
    expect(await found('tag=link:a:b')).toEqual([other]);
    expect((await get('/count?tag=team:search').expect(200)).body).toBe(1);
    await get('/search?tag=team').expect(422);
  });

  it('are found by repository, provider, automation and state', async () => {
    const automation = randomUUID();
    const made: Record<string, string> = {};
    const add = async (
      state: string,
      status: 'STARTING' | 'RUNNING' | 'PAUSED' | 'ERROR' | null,
      executionStatus: 'running' | 'waiting_for_confirmation' | 'finished' | 'stuck' | 'idle',
      more: object = {},
    ): Promise<void> => {
      const sandbox = status && (await rows.sandbox(user.id, { status, address: 'http://127.0.0.1:1' }));
      const own = sandbox === null ? {} : { sandboxId: sandbox.id };
      made[state] = (await rows.conversation(user.id, { ...own, ...more }, { executionStatus })).hex;
    };
    const found = async (query: string): Promise<string[]> =>
      (await get(`/search?${query}`).expect(200)).body.items.map(({ id }: { id: string }) => id);
    await add('starting', 'STARTING', 'running');
    await add('running', 'RUNNING', 'running', { selectedRepository: 'octo/app', gitProvider: 'github' });
    await add('waiting', 'RUNNING', 'waiting_for_confirmation', { selectedRepository: 'octo/lib' });
    await add('finished', 'RUNNING', 'finished', { gitProvider: 'gitlab' });
    await add('failed', 'PAUSED', 'stuck');
    await add('paused', 'PAUSED', 'finished', {
      trigger: 'automation',
      metadata: { automation_id: automation },
    });
    await add('idle', 'RUNNING', 'idle', { metadata: { automation_id: automation } });
    await add('ended', null, 'running');

    for (const [state, id] of Object.entries(made)) {
      expect([state, await found(`state__eq=${state}`)]).toEqual([state, [id]]);
    }
    expect(await found('selected_repository__eq=octo/app')).toEqual([made['running']]);
    expect(await found('git_provider__eq=gitlab')).toEqual([made['finished']]);
    expect(await found(`automation_id__eq=${automation}`)).toEqual([made['paused']]);
    expect((await get('/count?state__eq=paused').expect(200)).body).toBe(1);
    await get('/search?state__eq=sleeping').expect(422);
  });

  it('are replaced as a whole, and cleared by null', async () => {
    const { hex } = await rows.conversation(user.id, { tags: { team: 'a' } });
    const { body } = await patch(hex, { tags: { state: 'done' }, metadata: { ticket: { id: 7 } } }).expect(
      200,
    );
    expect(body).toMatchObject({ tags: { state: 'done' }, metadata: { ticket: { id: 7 } } });
    expect((await patch(hex, { title: 'Other' }).expect(200)).body).toMatchObject({
      tags: { state: 'done' },
    });
    const cleared = await patch(hex, { tags: null, metadata: null }).expect(200);
    expect([cleared.body.tags, cleared.body.metadata]).toEqual([{}, {}]);
    await patch(hex, { tags: {} }, await app.createUser()).expect(404);
  });

  it.each([
    [{ tags: { 'no spaces': 'a' } }, ['body', 'tags', 'no spaces']],
    [{ tags: { team: 'x'.repeat(257) } }, ['body', 'tags', 'team']],
    [{ tags: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`t${n}`, ''])) }, ['body', 'tags']],
    [{ metadata: { text: 'x'.repeat(16_384) } }, ['body', 'metadata']],
    [{ result_schema: { description: 'x'.repeat(32_768) } }, ['body', 'result_schema']],
  ])('refuses %#', async (body, loc) => {
    const refused = await start(body).expect(422);
    expect(refused.body.detail[0].loc).toEqual(loc);
  });
});

describe('the result of a conversation', () => {
  const finish = (id: string, args: object) =>
    actionEvent(id, id, {
      tool_name: 'finish',
      action: { kind: 'FinishAction', message: 'Done.' },
      tool_call: { id, name: 'finish', arguments: JSON.stringify(args), origin: 'completion' },
    });

  it.each([
    ['the last one', SCHEMA, [{ passed: false }, { passed: true }], { passed: true }],
    ['none before the end', SCHEMA, [], null],
    ['none that nobody asked for', null, [{ passed: true }], null],
  ])('is %s', async (_, resultSchema, results, expected) => {
    const { id, hex } = await rows.conversation(user.id, { resultSchema });
    const events = results.map((result, index) => finish(`call${index}`, { message: 'Done.', result }));
    await app.app.get(EventStore).store(id, events);
    expect((await get(`?ids=${hex}`).expect(200)).body).toMatchObject([{ result: expected }]);
  });

  it('is not what a refused call has', async () => {
    const { id, hex } = await rows.conversation(user.id, { resultSchema: SCHEMA });
    const refused = { ...finish('call', { message: 'Done.', result: { passed: 'yes' } }), action: null };
    await app.app.get(EventStore).store(id, [refused]);
    expect((await get(`?ids=${hex}`).expect(200)).body).toMatchObject([{ result: null }]);
  });
});
