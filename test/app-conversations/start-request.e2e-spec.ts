import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { lockUser } from '../../src/auth/user.repository.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import {
  START_TASK_STATUSES,
  type StartTaskStatus,
} from '../../src/v1/app-conversations/start-task.entity.js';
import { START_TASKS_CHANNEL } from '../../src/v1/app-conversations/start-task.repository.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { TokensClient } from '../support/tokens-client.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const MASK = '**********';

// Nothing listens there: tokens are stored without a verdict.
const app = useTestApp({
  PUBLIC_URL: 'https://agents.example.com',
  GITHUB_API_URL: 'http://127.0.0.1:1',
});
const rows = new ConversationRows(app);
let user: TestUser;

beforeEach(async () => {
  user = await app.createUser();
});

function start(body: object, who: TestUser = user): request.Test {
  return request(app.url).post(CONVERSATIONS).set(who.headers).send(body);
}

function get(path: string, who: TestUser = user): request.Test {
  return request(app.url).get(`${CONVERSATIONS}${path}`).set(who.headers);
}

const EMPTY_ECHO = {
  sandbox_id: null,
  sandbox_spec_id: null,
  conversation_id: null,
  initial_message: null,
  system_message_suffix: null,
  processors: null,
  llm_model: null,
  llm_profile: null,
  agent: null,
  agent_profile_id: null,
  selected_repository: null,
  selected_branch: null,
  clone_submodules: false,
  fetch_lfs: false,
  git_provider: null,
  suggested_task: null,
  title: null,
  trigger: null,
  pr_number: [],
  parent_conversation_id: null,
  agent_type: 'default',
  public: null,
  visibility: 'private',
  observability_metadata: null,
  observability_tags: null,
  observability_span_name: null,
  plugins: null,
  secrets: null,
  secret_names: null,
  git: 'write',
  fork: null,
  clone_depth: null,
  clone_filter: null,
  egress: null,
  repositories_read: null,
  tags: {},
  metadata: {},
  result_schema: null,
  follow: null,
};

describe('POST /api/v1/app-conversations', () => {
  it('gives an id to one start, however many ask for it at once', async () => {
    const body = { conversation_id: randomUUID() };
    const statuses = await app.dataSource.transaction(async (manager) => {
      await lockUser(manager, user.id);
      const asked = Promise.all([start(body), start(body)].map(async (asking) => (await asking).status));
      await untilBlocked(app.dataSource, 2);
      return { asked };
    });

    expect((await statuses.asked).toSorted((a, b) => a - b)).toEqual([200, 422]);
  });

  it('responds at once with a start task that echoes every member of the request', async () => {
    const { body } = await start({}).expect(200);

    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      created_by_user_id: user.id,
      status: 'WORKING',
      detail: null,
      app_conversation_id: null,
      sandbox_id: null,
      agent_server_url: null,
      request: EMPTY_ECHO,
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
    });
    expect(Object.keys(body.request)).toEqual(Object.keys(EMPTY_ECHO));
  });

  it('accepts everything that clients send, and says which of it has no effect', async () => {
    const conversationId = randomUUID();
    const sent = {
      conversation_id: conversationId,
      initial_message: {
        role: 'user',
        content: [{ text: 'Look' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }],
        run: true,
      },
      system_message_suffix: 'Answer briefly.',
      processors: [{ kind: 'SetTitleCallbackProcessor' }, { kind: 'LoggingCallbackProcessor' }],
      llm_model: 'provider/model-1',
      agent_profile_id: 'profile',
      selected_repository: 'octo/app',
      selected_branch: 'main',
      clone_submodules: true,
      fetch_lfs: true,
      git_provider: 'github',
      title: ' Parser ',
      trigger: 'gui',
      pr_number: [7],
      agent_type: 'plan',
      public: true,
      observability_metadata: { team: 'a', runs: [1, 2] },
      observability_tags: ['nightly'],
      observability_span_name: 'span',
      plugins: [{ source: 'github:octo/plugins', parameters: { key: 'value-of-a-parameter' } }],
      secrets: { DEPLOY_TOKEN: 'value-of-a-secret' },
      secret_names: ['X'],
      tags: { team: 'a' },
      metadata: { n: [1] },
      result_schema: { type: 'object', properties: { passed: { type: 'boolean' } } },
      something_new: { a: 1 },
    };

    const { body, text } = await start(sent).expect(200);

    expect(body.request).toEqual({
      ...EMPTY_ECHO,
      ...sent,
      something_new: undefined,
      conversation_id: conversationId.replaceAll('-', ''),
      title: 'Parser',
      initial_message: {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image', image_urls: ['data:image/png;base64,aGk='] },
        ],
        run: true,
      },
      plugins: [{ source: 'github:octo/plugins', ref: null, repo_path: null }],
      secrets: { DEPLOY_TOKEN: MASK },
    });
    for (const part of [
      'agent_profile_id',
      'plugins',
      'LoggingCallbackProcessor',
      'observability_metadata, observability_tags, observability_span_name',
      'agent_type plan',
      'public',
    ]) {
      expect(body.detail).toContain(part);
    }
    expect(body.detail).not.toContain('SetTitle');
    expect(text).not.toMatch(/value-of-a-(secret|parameter)/);
    const [stored] = await app.dataSource.query<object[]>(
      'SELECT * FROM app_conversation_start_tasks WHERE app_conversation_id = $1',
      [conversationId],
    );
    expect(stored).toBeDefined();
    expect(JSON.stringify(stored)).not.toMatch(/value-of-a-(secret|parameter)/);
  });

  it.each([
    [{ agent: 'nobody' }, ['agent'], 'value_error'],
    [{ agent: 'acp:nobody' }, ['agent'], 'value_error'],
    [{ llm_profile: 'nowhere' }, ['llm_profile'], 'value_error'],
    [{ secrets: { 'no-name': 'x' } }, ['secrets', 'no-name'], 'value_error'],
    [{ secrets: { NAME: 5 } }, ['secrets', 'NAME'], 'string_type'],
  ])('refuses %j', async (body, loc, type) => {
    const { detail } = (await start(body).expect(422)).body;

    expect(detail[0]).toEqual({ loc: ['body', ...loc], msg: expect.any(String), type });
    expect((await get('/start-tasks/count')).body).toBe(0);
  });

  it('responds to a repetition under the same key with the same task, and refuses another body under it', async () => {
    const key = randomUUID();
    const send = (body: object, who: TestUser = user): request.Test =>
      start(body, who).set('Idempotency-Key', key);
    const first = (await send({ title: 'a' }).expect(200)).body;

    expect((await send({ title: 'a' }).expect(200)).body.id).toBe(first.id);
    expect((await send({ title: 'b' }).expect(422)).body.detail).toHaveLength(1);
    expect((await send({ title: 'a' }, await app.createUser()).expect(200)).body.id).not.toBe(first.id);
    expect((await get('/start-tasks/count')).body).toBe(1);
  });

  describe('with much text', () => {
    const MOST = 256 * 1024;
    const says = (text: string): object => ({ initial_message: { content: [{ type: 'text', text }] } });

    it.each([
      ['a message', says('ä'.repeat(MOST / 2 + 1))],
      ['instructions', { system_message_suffix: 'ä'.repeat(MOST / 2 + 1) }],
      ['secrets', { secrets: Object.fromEntries(Array.from('ABCDE', (name) => [name, 'x'.repeat(65_536)])) }],
      ['plugins', { plugins: Array.from({ length: 300 }, () => ({ source: 'x'.repeat(1_000) })) }],
      ['tags', { observability_tags: Array.from({ length: 300 }, () => 'x'.repeat(1_000)) }],
      ['both together', { ...says('x'.repeat(MOST - 10)), system_message_suffix: 'x'.repeat(11) }],
    ])('is refused: %s', async (_name, sent) => {
      const { body } = await start(sent).expect(422);

      expect(body.detail).toMatchObject([{ loc: ['body'], type: 'too_long' }]);
      expect((await get('/start-tasks/count')).body).toBe(0);
    });

    it('is taken up to the bound, and images beside it', async () => {
      await start(says('x'.repeat(MOST))).expect(200);
      const image = `data:image/png;base64,${'A'.repeat(600_000)}`;
      await start({
        initial_message: { content: [{ text: 'Look' }, { type: 'image', image_urls: [image] }] },
      }).expect(200);
    });
  });
});

describe('a suggested task', () => {
  const TASK = {
    git_provider: 'github',
    task_type: 'FAILING_CHECKS',
    repo: 'octo/app',
    issue_number: 15,
    title: 'Retry "slow" payments',
  };

  it('determines the message, the repository, the provider and the trigger', async () => {
    await new TokensClient(app, user).postTokens({ github: { token: 'token-of-the-user' } });

    const { body } = await start({ suggested_task: TASK }).expect(200);

    expect(body.request).toEqual({
      ...EMPTY_ECHO,
      suggested_task: TASK,
      selected_repository: 'octo/app',
      git_provider: 'github',
      trigger: 'suggested_task',
      pr_number: [15],
      initial_message: { role: 'user', content: [{ type: 'text', text: expect.any(String) }], run: true },
    });
    expect(body.task_url).toBe('http://127.0.0.1:1/octo/app/pull/15');
    const [{ text }] = body.request.initial_message.content;
    expect(text).toContain('pull request #15 of octo/app');
    expect(text).toContain('$GITHUB_TOKEN');
    expect(text).toContain('http://127.0.0.1:1/repos/octo/app/pulls/15');
    expect(text).not.toContain('token-of-the-user');
    const reader = await start({ suggested_task: TASK, git: 'read' }).expect(200);
    expect(JSON.stringify(reader.body.request.initial_message)).not.toContain('$GITHUB_TOKEN');
  });

  it('promises no token where there is none, adds no pull request for an issue, and keeps the trigger', async () => {
    const { body } = await start({
      suggested_task: { ...TASK, task_type: 'OPEN_ISSUE' },
      trigger: 'automation',
    }).expect(200);

    expect(body.request.initial_message.content[0].text).toContain('There is no token');
    expect([body.request.pr_number, body.request.trigger]).toEqual([[], 'automation']);
  });

  it.each([
    ['a message beside it', { initial_message: { content: [{ text: 'x' }] } }, ['initial_message']],
    [
      'a provider that is not configured',
      { suggested_task: { ...TASK, git_provider: 'enterprise_sso' } },
      ['suggested_task', 'git_provider'],
    ],
  ])('is refused with %s', async (_what, given, loc) => {
    const { body } = await start({ suggested_task: TASK, ...given }).expect(422);
    expect(body.detail).toEqual([{ loc: ['body', ...loc], msg: expect.any(String), type: 'value_error' }]);
  });
});

describe('start tasks', () => {
  const at = (day: number): Date => new Date(Date.UTC(2026, 0, day));

  it.each(START_TASK_STATUSES)(
    'at %s show the ids and the address that there are by then',
    async (status) => {
      const sandbox = await rows.sandbox(user.id, { address: 'http://127.0.0.1:1' });
      const task = await rows.startTask(user.id, { status, sandboxId: sandbox.id, detail: 'said' });
      const url = `https://agents.example.com/api/v1/sandboxes/${sandbox.id}/agent-server`;

      const { body } = await get(`/start-tasks?ids=${task.hex}`).expect(200);

      expect(body).toEqual([
        expect.objectContaining({
          id: task.hex,
          status,
          detail: 'said',
          app_conversation_id: status === 'READY' ? task.appConversationId.replaceAll('-', '') : null,
          sandbox_id: status === 'WORKING' ? null : sandbox.id,
          agent_server_url: ['STARTING_CONVERSATION', 'READY'].includes(status) ? url : null,
        }),
      ]);
    },
  );

  it('end their detail with what could not be done as asked', async () => {
    const { hex } = await rows.startTask(user.id, {
      status: 'WAITING_FOR_SANDBOX',
      detail: 'Waiting for a place.',
      notes: ['The image has no effect.'],
      request: sampleStartRequest({ agent_type: 'plan' }),
    });

    const { body } = await get(`/start-tasks?ids=${hex}`).expect(200);

    expect(body[0].detail).toBe(
      'Waiting for a place.\nThe image has no effect.\n' +
        'agent_type plan: the usual agent, told to write a plan into PLAN.md and to change nothing else.',
    );
  });

  it('come in the order of the ids, null for what is unknown, another user’s or not an id', async () => {
    const own = await rows.startTask(user.id);
    const foreign = await rows.startTask((await app.createUser()).id);

    const { body } = await get(
      `/start-tasks?ids=${randomUUID()}&ids=${own.id}&ids=x&ids=${foreign.hex}`,
    ).expect(200);

    expect(body.map((task: { id: string } | null) => task && task.id)).toEqual([null, own.hex, null, null]);
  });

  it('are listed, filtered, ordered and counted', async () => {
    const tasks = [];
    for (const day of [1, 2, 3]) {
      tasks.push(await rows.startTask(user.id, { createdAt: at(day), status: 'ERROR' }));
    }
    await rows.startTask((await app.createUser()).id);
    // Changed in another order than made.
    for (const [index, task] of [tasks[1], tasks[0], tasks[2]].entries()) {
      await app.dataSource.query('UPDATE app_conversation_start_tasks SET updated_at = $2 WHERE id = $1', [
        task?.id,
        at(10 + index),
      ]);
    }
    const [first, second, third] = tasks.map(({ hex }) => hex);
    const pages = async (query: string): Promise<string[][]> => {
      const found: string[][] = [];
      let pageId = '';
      do {
        const { body } = await get(`/start-tasks/search?limit=2&${query}&page_id=${pageId}`).expect(200);
        found.push(body.items.map(({ id }: { id: string }) => id));
        pageId = body.next_page_id ?? '';
      } while (pageId !== '');
      return found;
    };

    expect(await pages('')).toEqual([[third, second], [first]]);
    expect(await pages('sort_order=CREATED_AT')).toEqual([[first, second], [third]]);
    expect(await pages('sort_order=CREATED_AT_DESC')).toEqual([[third, second], [first]]);
    expect(await pages('sort_order=UPDATED_AT')).toEqual([[second, first], [third]]);
    expect(await pages('sort_order=UPDATED_AT_DESC')).toEqual([[third, first], [second]]);
    expect(await pages('created_at__gte=2026-01-02T00:00:00Z')).toEqual([[third, second]]);
    const conversationId = tasks[1]?.appConversationId ?? '';
    expect(await pages(`conversation_id__eq=${conversationId.replaceAll('-', '')}`)).toEqual([[second]]);
    expect((await get('/start-tasks/count').expect(200)).body).toBe(3);
    expect((await get('/start-tasks/count?created_at__gte=2026-01-03T00:00:00Z')).body).toBe(1);
    expect((await get(`/start-tasks/count?conversation_id__eq=${conversationId}`)).body).toBe(1);
  });
});

describe('POST /api/v1/app-conversations/stream-start', () => {
  /** Reads what has come of an answer so far. */
  interface Reading {
    text: string;
    done: Promise<string>;
    cancel(): void;
    response: Response;
  }

  /** Begins a start in a sandbox of another host, whose workers alone would take it up. */
  async function stream(url: string = app.url): Promise<Reading> {
    const sandbox = await rows.sandbox(user.id, { status: 'STARTING' });
    const abort = new AbortController();
    const response = await fetch(`${url}${CONVERSATIONS}/stream-start`, {
      method: 'POST',
      headers: { ...user.headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ sandbox_id: sandbox.id }),
      signal: abort.signal,
    });
    const reading: Reading = {
      text: '',
      done: Promise.resolve(''),
      cancel: () => abort.abort(),
      response,
    };
    reading.done = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) {
        reading.text += decoder.decode(chunk, { stream: true });
      }
      return reading.text;
    })();
    reading.done.catch(() => undefined);
    await until(() => reading.text !== '');
    return reading;
  }

  async function change(
    reading: Reading,
    status: StartTaskStatus,
    detail: string | null = null,
  ): Promise<void> {
    const id = idOf(reading);
    await app.dataSource.transaction(async (manager) => {
      await manager.query('UPDATE app_conversation_start_tasks SET status = $2, detail = $3 WHERE id = $1', [
        id,
        status,
        detail,
      ]);
      await manager.query('SELECT pg_notify($1, $2)', [START_TASKS_CHANNEL, id]);
    });
  }

  const tasks = ({ text }: Reading): { id: string; status: string; detail: string | null }[] =>
    JSON.parse(text.endsWith(']') ? text : `${text}]`);
  /** As PostgreSQL tells of it. */
  const idOf = (reading: Reading): string | null => parseHexId(tasks(reading)[0]?.id ?? '');

  it('sends changes, new details and the statuses that the start has passed meanwhile, and ends with READY', async () => {
    const reading = await stream();
    expect(reading.response.headers.get('content-type')).toBe('application/json; charset=utf-8');

    await change(reading, 'WORKING', 'Waiting for a place.');
    await until(() => tasks(reading).length === 2);
    await change(reading, 'STARTING_CONVERSATION', 'Almost.');
    await until(() => tasks(reading).length === 7);
    await change(reading, 'READY');

    expect(await reading.done).toMatch(/^\[\n\{[^]*\},\n\{[^]*\}\n\]$/);
    expect(tasks(reading).map(({ status, detail }) => [status, detail])).toEqual([
      ['WORKING', null],
      ['WORKING', 'Waiting for a place.'],
      ['WAITING_FOR_SANDBOX', null],
      ['PREPARING_REPOSITORY', null],
      ['RUNNING_SETUP_SCRIPT', null],
      ['SETTING_UP_GIT_HOOKS', null],
      ['STARTING_CONVERSATION', 'Almost.'],
      ['READY', null],
    ]);
  });

  it('ends when the start has failed, and when it is deleted', async () => {
    const [failing, deleted] = [await stream(), await stream()];
    await change(failing, 'ERROR', 'No.');
    await app.dataSource.query('DELETE FROM app_conversation_start_tasks WHERE id = $1', [idOf(deleted)]);

    await Promise.all([failing.done, deleted.done]);
    expect(tasks(failing).at(-1)).toMatchObject({ status: 'ERROR', detail: 'No.' });
    expect(tasks(deleted)).toHaveLength(1);
  });

  it('does not end the start when the client hangs up', async () => {
    const reading = await stream();
    reading.cancel();
    await reading.done.catch(() => undefined);

    expect((await get(`/start-tasks?ids=${idOf(reading)}`).expect(200)).body[0].status).toBe('WORKING');
  });

  it('ends as valid JSON when the service stops', async () => {
    const replica = await createTestApp({}, app.databaseUrl);
    const reading = await stream(replica.url);

    await replica.close();

    expect(JSON.parse(await reading.done)).toHaveLength(1);
  });
});
