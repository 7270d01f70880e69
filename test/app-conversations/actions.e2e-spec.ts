import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import request from 'supertest';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { AppConversation, initialTitle } from '../../src/v1/app-conversations/conversation.entity.js';
import { FollowedConversation } from '../../src/v1/events/followed-conversation.entity.js';
import { ConversationUpdates } from '../../src/v1/events/store/event-store.js';
import { newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';
import { MODEL } from '../../packages/agent-server/test/support/agent-server-client.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { until } from '../support/until.js';
import { useAgentSandboxes } from '../support/use-agent-sandboxes.js';
import { useTestApp } from '../support/use-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const ACTIONS = ['send-message', 'respond-to-confirmation', 'pause', 'run'] as const;
const BODIES: Partial<Record<(typeof ACTIONS)[number], object>> = {
  'send-message': { content: [{ type: 'text', text: 'say hello' }] },
  'respond-to-confirmation': { accept: true },
};

let folder: string;
let user: TestUser;
let sandbox: Sandbox;

const app = useTestApp({}, {}, ({ dataSource }) => requireDocumentedEvents(dataSource));
const rows = new ConversationRows(app);
const sandboxes = useAgentSandboxes(app);

beforeEach(async () => {
  user = await app.createUser();
  ({ sandbox, folder } = await sandboxes.open(user.id));
});

afterEach(async () => {
  await app.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
});

/** Whether use of the sandbox was noted. */
async function hasTraffic(): Promise<boolean> {
  const [row] = await app.dataSource.query<{ traffic_at: Date | null }[]>(
    'SELECT traffic_at FROM sandboxes WHERE id = $1',
    [sandbox.id],
  );
  return row?.traffic_at instanceof Date;
}

/** A conversation that the agent server has as well. */
async function begin(followed: Partial<FollowedConversation> = {}): Promise<{ id: string; hex: string }> {
  const members = {
    sandboxId: sandbox.id,
    workingDir: folder,
    llmModel: MODEL.llm_model,
    llmBaseUrl: MODEL.llm_base_url,
  };
  const row = await rows.conversation(user.id, members, followed);
  await sandboxes.agent.client.start({ conversation_id: row.id });
  return row;
}

function post(id: string, action: string, body?: object, who: TestUser = user): request.Test {
  const call = request(app.url).post(`${CONVERSATIONS}/${id}/${action}`).set(who.headers);
  return body === undefined ? call : call.send(body);
}

const say = (id: string, text: string, run = true): request.Test =>
  post(id, 'send-message', { content: [{ text }], run });

async function statusOf(id: string): Promise<string | null> {
  return jsonText(await sandboxes.agent.client.get(`/api/conversations/${id}`), 'execution_status');
}

/** The status that the service shows. */
async function shown(hex: string): Promise<string | null> {
  const { body } = await request(app.url).get(`${CONVERSATIONS}?ids=${hex}`).set(user.headers).expect(200);
  return body[0].execution_status;
}

async function untilStatus(id: string, status: string): Promise<void> {
  await until(async () => (await statusOf(id)) === status);
}

async function userTexts(id: string): Promise<unknown[]> {
  const page = await sandboxes.agent.client.get(`/api/conversations/${id}/events/search?kind=MessageEvent`);
  const { items } = page as { items: { source: string; llm_message: { content: unknown[] } }[] };
  return items.filter(({ source }) => source === 'user').map(({ llm_message: { content } }) => content);
}

describe('send-message', () => {
  it('takes a hundred messages that the agent does not go on with, and more once it has run', async () => {
    const { id, hex } = await begin();
    await app.dataSource.query('UPDATE followed_conversations SET unread_messages = 99 WHERE id = $1', [id]);

    await say(hex, 'say hello', false).expect(200);
    const { body } = await say(hex, 'once more', false).expect(507);
    expect(body).toMatchObject({ code: 'storage_full', detail: expect.stringContaining('run: true') });

    await say(hex, 'say hello').expect(200);
    await until(async () => (await shown(hex)) === 'finished');
    await say(hex, 'once more', false).expect(200);
    await app.dataSource.query('UPDATE followed_conversations SET unread_bytes = 9999900 WHERE id = $1', [
      id,
    ]);
    await say(hex, 'x'.repeat(200), false).expect(507);
  });

  it('gives the message to the agent, which works on it', async () => {
    const { id, hex } = await begin();

    const { body } = await post(hex, 'send-message', {
      content: [
        { type: 'text', text: 'say hello' },
        { type: 'image', image_urls: ['data:image/png;base64,aGVsbG8='] },
        { type: 'image_url', image_url: { url: 'https://images.example.com/a.png' } },
      ],
    }).expect(200);

    expect(body).toEqual({ success: true, sandbox_status: 'RUNNING', message: null });
    await untilStatus(id, 'finished');
    expect(await userTexts(id)).toEqual([
      [
        { type: 'text', text: 'say hello' },
        { type: 'image', image_urls: ['data:image/png;base64,aGVsbG8='] },
        { type: 'image', image_urls: ['https://images.example.com/a.png'] },
      ],
    ]);
  });

  it.each([
    ['running', true],
    ['idle', false],
  ])('has made the conversation %s by the time that it is acknowledged', async (status, run) => {
    const { id, hex } = await begin();
    await sandboxes.agent.client.say(id, 'say hello');
    await until(async () => (await shown(hex)) === 'finished');
    for (let round = 0; round < 2; round += 1) {
      await say(hex, run ? 'step' : 'later', run).expect(200);
      expect(await shown(hex)).toBe(status);
      if (run) {
        await post(hex, 'pause').expect(200);
      }
      await until(async () => (await shown(hex)) === (run ? 'paused' : 'idle'));
      // That the agent has answered already is not hidden either.
      await say(hex, 'say hello').expect(200);
      await until(async () => (await shown(hex)) === 'finished');
    }
  });

  it.each([
    [{ content: [{ type: 'text', text: ' ' }] }, ['content'], 'value_error'],
    [{ content: [{ type: 'image' }] }, ['content', '0', 'image_urls'], 'missing'],
    [
      { content: [{ type: 'image', image_urls: ['file:///etc/passwd'] }] },
      ['content', '0', 'image_urls', '0'],
      'value_error',
    ],
    [{ content: [{ image_url: { url: 'x' } }] }, ['content', '0', 'image_url', 'url'], 'value_error'],
  ])('refuses %j', async (body, loc, type) => {
    const { detail } = (await post(randomUUID(), 'send-message', body).expect(422)).body;

    expect(detail).toEqual([{ loc: ['body', ...loc], msg: expect.any(String), type }]);
  });
});

describe('respond-to-confirmation', () => {
  it.each([
    [{ accept: true }, 'ObservationEvent', undefined],
    [{ accept: false, reason: 'not now' }, 'UserRejectObservation', 'not now'],
    [{ accept: false, reason: null }, 'UserRejectObservation', expect.stringMatching(/./)],
  ])('passes %j on', async (answer, kind, reason) => {
    const { id, hex } = await begin();
    await say(hex, 'ask rm').expect(200);
    await untilStatus(id, 'waiting_for_confirmation');

    expect((await post(hex, 'respond-to-confirmation', answer).expect(200)).body).toEqual({ success: true });

    await untilStatus(id, 'finished');
    const page = await sandboxes.agent.client.get(`/api/conversations/${id}/events/search?kind=${kind}`);
    expect(jsonList(page, 'items').map((event) => jsonAt(event, 'rejection_reason'))).toEqual([reason]);
  });
});

describe('pause and run', () => {
  it('stop the agent and run it again', async () => {
    const { id, hex } = await begin();
    await say(hex, 'step').expect(200);
    await untilStatus(id, 'running');

    // As clients send it.
    expect((await post(hex, 'pause', {}).expect(200)).body).toEqual({ success: true });
    await untilStatus(id, 'paused');
    expect((await post(hex, 'run').expect(200)).body).toEqual({ success: true });
    await untilStatus(id, 'running');
    await post(hex, 'pause').expect(200);
    await untilStatus(id, 'paused');
  });

  it('refuse what the state forbids, in the words of the agent server', async () => {
    const { id, hex } = await begin();
    const { body: unasked } = await post(hex, 'respond-to-confirmation', { accept: true }).expect(409);
    expect(unasked).toMatchObject({ code: 'conflict', detail: 'No action waits for confirmation.' });
    expect((await post(hex, 'run').expect(409)).body.detail).toMatch(/no message yet/);
    await say(hex, 'step').expect(200);
    await untilStatus(id, 'running');

    const { body } = await post(hex, 'run').expect(409);

    expect(body).toMatchObject({ code: 'conflict', detail: expect.stringContaining('already running') });
    await post(hex, 'pause').expect(200);
    await untilStatus(id, 'paused');
  });
});

it.each(ACTIONS)(
  '%s says what a paused sandbox needs, and that an agent server does not know it',
  async (action) => {
    const act = (id: string): request.Test =>
      post(id, action === 'send-message' ? 'send-message?resume=false' : action, BODIES[action]);
    const paused = await rows.sandbox(user.id, { status: 'PAUSED' });
    const { hex } = await rows.conversation(user.id, { sandboxId: paused.id });
    expect((await act(hex).expect(409)).body).toMatchObject({
      code: 'sandbox_not_running',
      detail: expect.stringMatching(/PAUSED.*POST \/api\/v1\/sandboxes\/\w+\/resume/),
    });
    const gone = await rows.conversation(user.id, { sandboxId: sandbox.id });
    expect((await act(gone.hex).expect(502)).body.code).toBe('upstream_error');
  },
);

describe('any action', () => {
  const pause = (id: string): request.Test => post(id, 'pause');

  it.each<[SandboxRowStatus | null, number, RegExp]>([
    ['STARTING', 409, /STARTING/],
    ['PAUSING', 409, /PAUSED.*POST \/api\/v1\/sandboxes\/\w+\/resume/],
    ['ERROR', 503, /ERROR.*POST \/api\/v1\/sandboxes\/\w+\/resume/],
    ['DELETING', 410, /MISSING/],
    [null, 410, /MISSING/],
  ])('with a sandbox that is %s answers %i and says what to do', async (status, code, detail) => {
    const found = status && (await rows.sandbox(user.id, { status }));
    const { hex } = await rows.conversation(user.id, found ? { sandboxId: found.id } : {});

    const { body } = await pause(hex).expect(code);

    expect(body).toMatchObject({ code: 'sandbox_not_running', detail: expect.stringMatching(detail) });
  });

  it('answers 409 while a conversation whose id the client chose is being started', async () => {
    const { appConversationId } = await rows.startTask(user.id, { status: 'PREPARING_REPOSITORY' });
    const { appConversationId: failed } = await rows.startTask(user.id, { status: 'ERROR' });

    expect((await pause(appConversationId).expect(409)).body.detail).toContain('STARTING');
    await pause(failed).expect(404);
    expect((await pause('nonsense').expect(404)).body.code).toBe('not_found');
  });

  it('answers 502 when the agent server does not answer or refuses the key', async () => {
    for (const address of [sandbox.address, 'http://127.0.0.1:1']) {
      const key = newSessionKey();
      const refusing = await rows.sandbox(user.id, { key, address });
      const { hex } = await rows.conversation(user.id, { sandboxId: refusing.id });
      const { body } = await pause(hex).expect(502);
      expect(body.code).toBe('upstream_error');
      expect(JSON.stringify(body)).not.toContain(key);
    }
  });
});

describe('after a sandbox was resumed', () => {
  it('an action waits until the conversation has its credentials again', async () => {
    // A restart makes a new key; with the old one, a follower of this process would keep its connections.
    const { id, hex } = await begin(FOLLOWED_ELSEWHERE);
    await app.dataSource.query('UPDATE sandboxes SET generation = 2 WHERE id = $1', [sandbox.id]);

    const sending = say(hex, 'say hello').then((response) => response);
    // The request is on its way through the service; what it waits for comes only now.
    await until(hasTraffic);
    expect(await userTexts(id)).toEqual([]);
    await app.dataSource.query('UPDATE app_conversations SET sandbox_generation = 2 WHERE id = $1', [id]);

    expect((await sending).status).toBe(200);
    expect(await userTexts(id)).toHaveLength(1);
  });
});

describe('settings that have changed', () => {
  const SERVER = {
    llm_model: 'openai/other',
    llm_base_url: 'http://llm.example/v2',
    llm_api_key: 'llm-key-of-a-test',
  };

  const settings = (members: object): request.Test =>
    request(app.url).post('/api/settings').set(user.headers).send(members).expect(200);
  const seen = (id: string, members: Partial<FollowedConversation>): Promise<unknown> =>
    app.dataSource.getRepository(FollowedConversation).update({ id }, members);
  /** What the agent works with, as it answers `settings`. */
  const lastAnswer = async (id: string): Promise<unknown> => {
    await untilStatus(id, 'finished');
    return JSON.parse(String((await sandboxes.agent.client.answers(id)).at(-1)));
  };

  const ELSEWHERE = { ...SERVER, llm_base_url: 'http://other.example/v1' };
  const HAS_KEY = { llm: { apiKey: '<secret-hidden>' } };
  const LIMITS = { max_budget_per_task: 5, max_iterations: 9, language: 'de' };
  const FAILED = { executionStatus: 'error' } as const;
  const SPENT = {
    executionStatus: 'finished' as const,
    metrics: {
      model_name: 'openai/fake',
      accumulated_cost: 1,
      max_budget_per_task: 1,
      accumulated_token_usage: null,
    },
  };

  it.each<[string, object, Partial<FollowedConversation> | null, object]>([
    [
      'reach one that ended with an error',
      { ...SERVER, ...LIMITS },
      FAILED,
      { maxBudget: 5, maxIterations: 9, language: 'de' },
    ],
    ['reach one whose budget is spent', { ...SERVER, ...LIMITS }, SPENT, { maxBudget: 5, maxIterations: 9 }],
    [
      'are not read where nothing is in the way',
      { ...SERVER, ...LIMITS },
      null,
      { maxBudget: null, maxIterations: 500 },
    ],
    [
      'leave it its key where they name another server',
      { ...ELSEWHERE, ...LIMITS },
      FAILED,
      { maxBudget: 5, ...HAS_KEY },
    ],
  ])('%s', async (_what, stored, state, expected) => {
    const { id, hex } = await begin(FOLLOWED_ELSEWHERE);
    await settings(stored);
    if (state !== null) {
      await seen(id, state);
    }
    await say(hex, 'settings').expect(200);
    expect(await lastAnswer(id)).toMatchObject(expected);
  });

  it('are not read for a pause', async () => {
    const { id, hex } = await begin(FOLLOWED_ELSEWHERE);
    await settings({ ...SERVER, max_budget_per_task: 5 });
    await seen(id, { executionStatus: 'error' });
    await request(app.url).post(`/api/v1/app-conversations/${hex}/pause`).set(user.headers).expect(200);
    await seen(id, { executionStatus: 'paused' });

    await say(hex, 'settings').expect(200);

    expect(await lastAnswer(id)).toMatchObject({ maxBudget: null });
  });

  it('reach a conversation that refuses to work without its key, which then works', async () => {
    const { id, hex } = await begin(FOLLOWED_ELSEWHERE);
    await sandboxes.agent.restart();
    await app.dataSource.query('UPDATE sandboxes SET address = $2 WHERE id = $1', [
      sandbox.id,
      `http://127.0.0.1:${sandboxes.agent.port}`,
    ]);
    await settings(ELSEWHERE);

    const { body } = await say(hex, 'settings').expect(409);
    expect(body).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining("another model server than this conversation's (openai/fake at"),
    });
    expect(await userTexts(id)).toEqual([]);
    await settings(SERVER);
    await say(hex, 'settings').expect(200);

    expect(await lastAnswer(id)).toMatchObject({ llm: { apiKey: '<secret-hidden>' } });
    expect(await userTexts(id)).toHaveLength(1);
  });

  it('send their key to their own server only, where it is not known where the model was called before', async () => {
    const { id, hex } = await begin(FOLLOWED_ELSEWHERE);
    await app.dataSource.getRepository(AppConversation).update({ id }, { llmBaseUrl: null });
    await settings(ELSEWHERE);
    await seen(id, { executionStatus: 'error' });

    await say(hex, 'settings').expect(200);

    const llm = { model: 'openai/fake', apiKey: '<secret-hidden>', baseUrl: 'http://other.example/v1' };
    expect(await lastAnswer(id)).toMatchObject({ llm });
  });
});

describe('titles', () => {
  const titleOf = async (hex: string): Promise<string> => {
    const { body } = await request(app.url).get(`${CONVERSATIONS}?ids=${hex}`).set(user.headers).expect(200);
    return body[0].title;
  };

  const message = (source: 'user' | 'agent'): AgentEvent => ({
    id: randomUUID(),
    kind: 'MessageEvent',
    source,
    timestamp: '2026-11-21T09:30:00.000000',
    llm_message: { role: source === 'user' ? 'user' : 'assistant', content: [{ type: 'text', text: 'x' }] },
    activated_skills: [],
    extended_content: [],
  });

  it('come from the first message, through the agent server, once the user has said something', async () => {
    const { id, hex } = await begin();
    await app.dataSource.query('UPDATE app_conversations SET title = $2 WHERE id = $1', [
      id,
      initialTitle(id),
    ]);
    await say(hex, 'say hello to everybody', false).expect(200);

    app.app.get(ConversationUpdates).emit(id, { events: [message('user')] });

    await until(async () => (await titleOf(hex)) === 'say hello to everybody');
  });

  it('of agent servers replace earlier ones, but never those of users, which reach them', async () => {
    const { id, hex } = await begin();
    const listeners = app.app.get(ConversationUpdates);
    listeners.emit(id, { state: { title: 'First' } });
    await until(async () => (await titleOf(hex)) === 'First');
    listeners.emit(id, { state: { title: 'Second' } });
    await until(async () => (await titleOf(hex)) === 'Second');

    await request(app.url)
      .patch(`${CONVERSATIONS}/${hex}`)
      .set(user.headers)
      .send({ title: 'Mine' })
      .expect(200);
    const other = await begin();
    listeners.emit(id, { state: { title: 'Third' } });
    listeners.emit(id, { events: [message('user')] });
    // Told later, so that the first conversation has had its turn.
    listeners.emit(other.id, { state: { title: 'Other' } });
    await until(async () => (await titleOf(other.hex)) === 'Other');

    expect(await titleOf(hex)).toBe('Mine');
    await until(
      async () => jsonText(await sandboxes.agent.client.get(`/api/conversations/${id}`), 'title') === 'Mine',
    );
  });

  it('are asked for only once', async () => {
    const { id, hex } = await begin();
    await app.dataSource.query(`UPDATE app_conversations SET title = 'Found' WHERE id = $1`, [id]);
    await say(hex, 'say hello', false).expect(200);
    const updatedAt = async (): Promise<string> =>
      (await request(app.url).get(`${CONVERSATIONS}?ids=${hex}`).set(user.headers)).body[0].updated_at;
    const before = await updatedAt();

    app.app.get(ConversationUpdates).emit(id, { events: [message('agent')] });
    app.app.get(ConversationUpdates).emit(id, { events: [message('user')] });

    await until(async () => (await updatedAt()) !== before);
    expect(await titleOf(hex)).toBe('Found');
  });
});

describe('the workspace', () => {
  const get = (hex: string, place: string): request.Test =>
    request(app.url).get(`${CONVERSATIONS}/${hex}/${place}`).set(user.headers);

  it('shows files as JSON strings, an empty one for a missing file, and none outside of its folder', async () => {
    const { hex } = await begin();
    await mkdir(path.join(folder, 'docs'));
    await writeFile(path.join(folder, 'PLAN.md'), '# Plan "ä"\n');
    await writeFile(path.join(folder, 'docs', 'a.txt'), 'a');

    const plan = await get(hex, 'file').expect(200);
    expect([plan.body, plan.type]).toEqual(['# Plan "ä"\n', 'application/json']);
    expect((await get(hex, 'file?file_path=docs/a.txt').expect(200)).body).toBe('a');
    const absolute = encodeURIComponent(path.join(folder, 'docs', 'a.txt'));
    expect((await get(hex, `file?file_path=${absolute}`).expect(200)).body).toBe('a');
    expect((await get(hex, 'file?file_path=none.txt').expect(200)).body).toBe('');
    for (const outside of ['/etc/passwd', '../../../../../etc/passwd']) {
      expect((await get(hex, `file?file_path=${outside}`).expect(403)).body.code).toBe('forbidden');
    }
  });

  it('shows what git sees', async () => {
    const { hex } = await begin();
    const git = (command: string): Promise<unknown> =>
      sandboxes.agent.client.post('/api/bash/execute_bash_command', {
        command: `git -c user.name=a -c user.email=a@b ${command}`,
        cwd: folder,
      });
    await writeFile(path.join(folder, 'a.txt'), 'old\n');
    await git('init');
    await git('add a.txt');
    await git('commit -m first');
    await writeFile(path.join(folder, 'a.txt'), 'new\n');
    await writeFile(path.join(folder, 'b.txt'), 'b\n');

    expect((await get(hex, 'git/changes?path=.&ref=HEAD').expect(200)).body).toEqual([
      { status: 'UPDATED', path: 'a.txt' },
      { status: 'ADDED', path: 'b.txt' },
    ]);
    expect((await get(hex, 'git/diff?path=a.txt&ref=HEAD').expect(200)).body).toEqual({
      original: 'old\n',
      modified: 'new\n',
    });
    expect((await get(hex, 'git/diff?path=a.txt&ref=nowhere').expect(409)).body.detail).toMatch(/ref/);
  });

  it('is not read while its sandbox is paused', async () => {
    const paused = await rows.sandbox(user.id, { status: 'PAUSED' });
    const { hex } = await rows.conversation(user.id, { sandboxId: paused.id });
    expect((await get(hex, 'file').expect(409)).body.code).toBe('sandbox_not_running');
  });
});
