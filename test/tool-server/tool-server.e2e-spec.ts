import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import request from 'supertest';
import { jsonAt } from '@slipway/common/json-access.js';
import { AppConversation } from '../../src/v1/app-conversations/conversation.entity.js';
import type { FollowedConversation } from '../../src/v1/events/followed-conversation.entity.js';
import { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { OwnToolServer } from '../../src/v1/app-conversations/agent-request/own-tool-server.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import { MODEL, SESSION_KEY } from '../../packages/agent-server/test/support/agent-server-client.js';
import { AuditClient } from '../support/audit-client.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import type { TestUser } from '../support/create-test-app.js';
import {
  startSeparateAgentServer,
  type SeparateAgentServer,
} from '../../packages/agent-server/test/support/test-agent-server.js';
import { TokensClient } from '../support/tokens-client.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const PATH = '/mcp';
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
const UNKNOWN = 'f'.repeat(32);

const { hosts, app } = useGitHosts({ CORS_ORIGINS: 'https://tools.example.com' });
const rows = new ConversationRows(app);
let agent: SeparateAgentServer;
let user: TestUser;
let client: Client;
let conversation: { id: string; hex: string; sandboxId: string };

beforeAll(async () => {
  const key = newSessionKey();
  agent = await startSeparateAgentServer({ sessionKeys: [SESSION_KEY, key] });
  user = await app.createUser();
  const sandbox = await rows.sandbox(user.id, { key, address: `http://127.0.0.1:${agent.port}` });
  conversation = await rows.conversation(user.id, {
    sandboxId: sandbox.id,
    workingDir: agent.workspace,
    llmModel: MODEL.llm_model,
    llmBaseUrl: MODEL.llm_base_url,
  });
  await agent.client.start({ conversation_id: conversation.id });
  client = await connect(user);
});

afterAll(async () => {
  await client.close();
  await agent.stop();
});

/** The client of the protocol's own SDK. */
async function connect({ key }: TestUser, headers: Record<string, string> = {}): Promise<Client> {
  const connected = new Client({ name: 'test', version: '1' });
  const init = { headers: { Authorization: `Bearer ${key}`, ...headers } };
  await connected.connect(new StreamableHTTPClientTransport(new URL(PATH, app.url), { requestInit: init }));
  return connected;
}

interface Answer {
  isError: boolean;
  found: Record<string, unknown>;
  links: string[];
}

async function call(name: string, given: object = {}, by = client): Promise<Answer> {
  const result = await by.callTool({ name, arguments: { ...given } });
  const content = result.content as { type: string; text?: string; uri?: string }[];
  return {
    isError: result.isError === true,
    found: JSON.parse(content[0]?.text ?? ''),
    links: content.flatMap(({ uri }) => uri ?? []),
  };
}

async function callAs(key: string, name: string, given: object = {}, headers = {}): Promise<Answer> {
  const own = await connect({ ...user, key }, headers);
  try {
    return await call(name, given, own);
  } finally {
    await own.close();
  }
}

/** What was asked of the start that an answer tells of. */
async function requestOf({ found }: Answer): Promise<StartTask['request'] | undefined> {
  const tasks = await app.dataSource.getRepository(StartTask).findBy({ userId: user.id });
  return tasks.find(({ appConversationId: id }) => id.replaceAll('-', '') === found['conversation_id'])
    ?.request;
}

function post(body: object = LIST, headers: Record<string, string> = {}): request.Test {
  return request(app.url)
    .post(PATH)
    .set({ ...user.headers, ...headers })
    .send(body);
}

describe('the tool server', () => {
  it('offers eight tools, each with schemas and hints', async () => {
    const { tools } = await client.listTools();

    expect(tools.map(({ name }) => name)).toEqual([
      'suggested_tasks',
      'start_conversation',
      'wait_for_conversation',
      'send_message',
      'get_result',
      'get_changes',
      'open_pull_request',
      'stop_conversation',
    ]);
    for (const { title, description, inputSchema, outputSchema, annotations } of tools) {
      expect(title).not.toBe('');
      expect(description).not.toBe('');
      expect([inputSchema.type, outputSchema?.type]).toEqual(['object', 'object']);
      expect(annotations).toMatchObject({ readOnlyHint: expect.any(Boolean) });
    }
    const destructive = tools.filter(({ annotations }) => annotations?.destructiveHint === true);
    expect(destructive.map(({ name }) => name)).toEqual(['stop_conversation']);
    expect(client.getServerVersion()).toMatchObject({ name: 'slipway' });
  });

  it('sends a message, waits for the agent and tells what came of it', async () => {
    const { hex } = conversation;
    const sent = await call('send_message', { conversation_id: hex, message: 'say hello' });
    // The agent may have answered by then.
    expect(sent.found).toMatchObject({ conversation_id: hex, is_working: expect.any(Boolean) });
    const waited = await call('wait_for_conversation', { conversation_id: hex, seconds: 30 });
    expect(waited.found).toMatchObject({ status: 'finished', is_working: false, detail: null });

    const { found, links, isError } = await call('get_result', { conversation_id: hex });
    expect(isError).toBe(false);
    expect(found).toMatchObject({
      status: 'finished',
      answer: expect.any(String),
      result: null,
      pull_requests: [],
    });
    expect(links).toEqual([
      expect.stringMatching(`/api/v1/app-conversations\\?ids=${hex}$`),
      expect.stringMatching(`/console/conversations/${hex}$`),
    ]);
    expect((await call('get_changes', { conversation_id: hex })).found).toEqual({
      conversation_id: hex,
      changes: [],
      count: 0,
    });
  });

  it('stops an agent, as its route does, with its entry in the audit', async () => {
    const { hex } = conversation;
    expect((await call('stop_conversation', { conversation_id: hex })).isError).toBe(false);
    const entries = await new AuditClient(app).find({ action: 'conversation.pause', resource_id: hex });
    expect(entries).toMatchObject([{ actor: { user_id: user.id }, client_address: '127.0.0.1' }]);
  });

  it('answers suggested tasks of the hosts of the user', async () => {
    expect((await call('suggested_tasks')).found).toEqual({
      code: 'no_git_provider',
      detail: 'No providers set.',
    });
    await new TokensClient(app, user).post({
      provider_tokens: { gitlab: hosts.tokens.provider_tokens.gitlab },
    });
    hosts.gitlab.injectFault({ kind: 'reset' });
    expect((await call('suggested_tasks')).found).toEqual({
      code: 'git_providers_failed',
      detail: expect.stringContaining('`errors`'),
      errors: [{ provider: 'gitlab', code: 'unavailable', retry_after: null }],
    });
    hosts.clearFaults();
    await new TokensClient(app, user).post(hosts.tokens);
    const { found } = await call('suggested_tasks', { providers: ['github'], limit: 1, task_types: null });
    expect(found).toMatchObject({
      tasks: [{ git_provider: 'github', repo: expect.any(String) }],
      providers: [{ provider: 'github', status: 'ok' }],
    });
  });

  it('starts a conversation once under an idempotency key', async () => {
    const keyed = await connect(user, { 'Idempotency-Key': 'only-once' });
    const given = {
      message: 'Fix it.',
      repository: 'octo/app',
      provider: 'github',
      branch: 'main',
      fork: 'never',
    };
    const { found } = await call('start_conversation', given, keyed);
    const again = await call('start_conversation', given, keyed);
    await keyed.close();

    expect(found['conversation_id']).toMatch(/^[0-9a-f]{32}$/);
    expect(again.found['conversation_id']).toBe(found['conversation_id']);
    const tasks = await app.dataSource.getRepository(StartTask).findBy({ userId: user.id });
    expect(tasks.map((task) => task.request)).toMatchObject([
      {
        selected_repository: 'octo/app',
        selected_branch: 'main',
        git_provider: 'github',
        fork: 'never',
        parent_conversation_id: null,
        initial_message: { content: [{ type: 'text', text: 'Fix it.' }] },
      },
    ]);
  });

  it('tells of a start that has failed', async () => {
    const task = await rows.startTask(user.id, { status: 'ERROR', detail: 'No model is chosen.' });
    const id = task.appConversationId.replaceAll('-', '');
    expect((await call('wait_for_conversation', { conversation_id: id })).found).toEqual({
      conversation_id: id,
      status: 'start_failed',
      is_working: false,
      detail: 'No model is chosen.',
    });
  });

  it.each([
    ['PAUSED', 'The sandbox is PAUSED'],
    ['ERROR', 'The sandbox is in ERROR'],
  ] as const)('does not wait for an agent whose sandbox is %s', async (status, detail) => {
    const sandbox = await rows.sandbox(user.id, { status });
    const { hex } = await rows.conversation(
      user.id,
      { sandboxId: sandbox.id },
      { executionStatus: 'running' },
    );
    expect((await call('wait_for_conversation', { conversation_id: hex })).found).toEqual({
      conversation_id: hex,
      status: 'running',
      is_working: false,
      detail: expect.stringContaining(detail),
    });
  });

  it('answers with code and detail what the routes refuse', async () => {
    const other = await rows.conversation((await app.createUser()).id);
    for (const id of [UNKNOWN, other.hex, 'nonsense']) {
      for (const name of ['wait_for_conversation', 'get_result', 'get_changes', 'stop_conversation']) {
        const { isError, found } = await call(name, { conversation_id: id });
        expect([name, isError, found['code']]).toEqual([name, true, 'not_found']);
      }
    }
    const refused = await call('start_conversation', { message: 'Go.', repository: 'https://x.example/a/b' });
    expect(refused).toMatchObject({
      isError: true,
      found: { code: 'malformed_request', detail: expect.stringContaining('selected_repository') },
    });
    const { id: sandboxId } = await rows.sandbox(user.id);
    const { hex } = await rows.conversation(user.id, { sandboxId });
    await app.dataSource.query('DELETE FROM sandboxes WHERE id = $1', [sandboxId]);
    const failed = await call('send_message', { conversation_id: hex, message: 'Hello.' });
    expect(failed).toMatchObject({ isError: true, found: { code: 'sandbox_not_running' } });
    for (const misspelt of [{}, { message: 'Go.', repo: 'octo/app' }]) {
      await expect(
        client.callTool({ name: 'start_conversation', arguments: misspelt }),
      ).resolves.toMatchObject({ isError: true });
    }
  });
});

const spent = (cost: number, budget: number | null) => ({
  metrics: {
    model_name: 'm',
    accumulated_cost: cost,
    max_budget_per_task: budget,
    accumulated_token_usage: null,
  },
});

describe('an agent that starts another one', () => {
  const startAs = (id: string): Promise<Answer> =>
    callAs(user.key, 'start_conversation', { message: 'Help me.' }, { 'X-Slipway-Conversation': id });

  it('is the parent, at most three deep', async () => {
    let parentConversationId: string | null = null;
    for (const depth of [0, 1, 2, 3]) {
      const { id, hex }: { id: string; hex: string } = await rows.conversation(user.id, {
        sandboxId: conversation.sandboxId,
        parentConversationId,
      });
      const started = await startAs(hex);
      parentConversationId = id;
      if (depth < 3) {
        expect(await requestOf(started)).toMatchObject({ parent_conversation_id: id, max_budget: null });
      } else {
        expect(started).toMatchObject({ isError: true, found: { code: 'conversation_limit' } });
      }
    }
  });

  it('shares what is left of its budget, with what it has started before', async () => {
    const members = { sandboxId: conversation.sandboxId };
    const parent = await rows.conversation(user.id, members, spent(1, 5));
    const child = { ...members, parentConversationId: parent.id };
    await rows.conversation(user.id, child, { ...spent(2, 3), executionStatus: 'finished' });

    const both = await Promise.all([startAs(parent.hex), startAs(parent.hex)]);
    const budgets = await Promise.all(both.map(async (started) => (await requestOf(started))?.max_budget));
    expect(new Set(budgets)).toEqual(new Set([0.5, 1]));

    const poor = await rows.conversation(user.id, members, spent(5, 5));
    expect(await startAs(poor.hex)).toMatchObject({ isError: true, found: { code: 'budget_exceeded' } });
  });

  it('is a conversation of the same user', async () => {
    const foreign = await rows.conversation((await app.createUser()).id);
    for (const id of [foreign.hex, UNKNOWN, 'nonsense']) {
      expect(await startAs(id)).toMatchObject({ isError: true, found: { code: 'malformed_request' } });
    }
  });
});

describe('an agent with the key of its conversation', () => {
  const FORBIDDEN = { isError: true, found: { code: 'forbidden' } };
  const NOT_FOUND = { isError: true, found: { code: 'not_found' } };
  /** Of a conversation below another one, in the sandbox whose agent server is there. */
  const begun = async (
    limits: object = {},
    parent: { id: string } | null = null,
    followed: Partial<FollowedConversation> = {},
  ) => {
    const members = {
      sandboxId: conversation.sandboxId,
      workingDir: agent.workspace,
      llmModel: MODEL.llm_model,
      llmBaseUrl: MODEL.llm_base_url,
      selectedRepository: 'octo/app',
      gitProvider: 'github' as const,
      parentConversationId: parent?.id ?? null,
    };
    const row = await rows.conversation(user.id, members, followed);
    const start = await rows.startTask(user.id, {
      appConversationId: row.id,
      sandboxId: row.sandboxId,
      status: 'READY',
      request: sampleStartRequest(limits),
    });
    const key = app.app.get(OwnToolServer).keyOf(start.id);
    return { id: row.id, hex: row.hex, key };
  };
  const list = (key: string): request.Test => post(LIST, { 'X-Session-API-Key': key });
  /** What an agent may spend by itself. */
  const budgetOf = async (id: string): Promise<unknown> =>
    jsonAt(JSON.parse(String(await agent.client.answerTo(id, 'settings'))), 'maxBudget');

  it('starts children that may at most what it may', async () => {
    const limits = { secret_names: ['DEPLOY_KEY'], git: 'read', agent_type: 'plan' };
    const parent = await begun(limits);
    const child = await callAs(parent.key, 'start_conversation', { message: 'Help.', git: 'write' });
    expect(await requestOf(child)).toMatchObject({
      ...limits,
      parent_conversation_id: parent.id,
      started_by_agent: true,
      selected_repository: 'octo/app',
    });
    const elsewhere = { message: 'Help.', repository: 'octo/secret', provider: 'github' };
    expect(await callAs(parent.key, 'start_conversation', elsewhere)).toMatchObject({
      isError: true,
      found: { code: 'malformed_request', detail: expect.stringContaining('selected_repository') },
    });
    const free = await begun();
    expect(await callAs(free.key, 'start_conversation', elsewhere)).toMatchObject({ isError: false });
  });

  it('takes no idempotency key that its user, or another agent, is about to use', async () => {
    const [one, other] = [await begun(), await begun()];
    const ids = new Set<unknown>();
    for (const key of [one.key, one.key, other.key, user.key]) {
      const keyed = { 'Idempotency-Key': 'nightly' };
      const { isError, found } = await callAs(key, 'start_conversation', { message: 'Help.' }, keyed);
      expect([isError, found]).toMatchObject([false, { conversation_id: expect.any(String) }]);
      ids.add(found['conversation_id']);
    }
    expect(ids.size).toBe(3);
  });

  it('sees and moves only what is below it', async () => {
    const parent = await begun();
    const own = await begun({}, parent);
    const child = await begun({}, own);
    const grandchild = await begun({}, child);
    const beside = await begun({}, parent);
    const starting = await callAs(own.key, 'start_conversation', { message: 'Help.' });
    const startingId = String(starting.found['conversation_id']);
    for (const id of [child.hex, grandchild.hex, startingId]) {
      expect(
        (await callAs(own.key, 'wait_for_conversation', { conversation_id: id, seconds: 0 })).isError,
      ).toBe(false);
      expect((await callAs(own.key, 'get_result', { conversation_id: id })).found['conversation_id']).toBe(
        id,
      );
    }
    const others = [own.hex, parent.hex, beside.hex, conversation.hex, UNKNOWN, 'nonsense'];
    const tools = ['wait_for_conversation', 'get_result', 'get_changes', 'open_pull_request'];
    const keyed = await connect({ ...user, key: own.key });
    // A user's key that names a conversation may no more.
    const named = await connect(user, { 'X-Slipway-Conversation': own.hex });
    for (const id of others) {
      for (const name of [...tools, 'stop_conversation', 'send_message']) {
        const given = { conversation_id: id, ...(name === 'send_message' && { message: 'Hello.' }) };
        expect([id, name, await call(name, given, keyed)]).toMatchObject([id, name, NOT_FOUND]);
        expect([id, name, await call(name, given, named)]).toMatchObject([id, name, NOT_FOUND]);
      }
    }
    await Promise.all([keyed.close(), named.close()]);
    // The header of another conversation adds nothing to a conversation's key.
    const claimed = { 'X-Slipway-Conversation': parent.hex };
    const given = { conversation_id: beside.hex };
    expect(await callAs(own.key, 'get_result', given, claimed)).toMatchObject(NOT_FOUND);
  });

  it('speaks as an agent, a hundred times to one, as long as its budget lasts, and stops it as its sandbox', async () => {
    const parent = await begun();
    const child = await begun({}, parent);
    await agent.client.start({ conversation_id: child.id });
    const given = { conversation_id: child.hex, message: 'Hello, child.' };
    expect(await callAs(parent.key, 'send_message', given)).toMatchObject({ isError: false });
    const events = await agent.client.events(child.id, '&kind=MessageEvent&source=agent');
    expect(events[0]).toMatchObject({ source: 'agent', sender_conversation_id: parent.id });

    const counted = `UPDATE app_conversation_start_tasks
      SET request = request || '{"agent_messages": 99}' WHERE app_conversation_id = $1`;
    await app.dataSource.query(counted, [child.id]);
    expect(await callAs(parent.key, 'send_message', given)).toMatchObject({ isError: false });
    expect(await callAs(parent.key, 'send_message', given)).toMatchObject({
      isError: true,
      found: { code: 'conversation_limit' },
    });
    const poor = await begun({ max_budget: 0 });
    const ofPoor = { conversation_id: (await begun({}, poor)).hex, message: 'Hello, child.' };
    expect((await callAs(poor.key, 'send_message', ofPoor)).found).toMatchObject({ code: 'budget_exceeded' });

    await callAs(parent.key, 'stop_conversation', { conversation_id: child.hex });
    const paused = { action: 'conversation.pause', resource_id: child.hex };
    const actor = { kind: 'sandbox', user_id: user.id, key_id: conversation.sandboxId };
    expect(await new AuditClient(app).find(paused)).toMatchObject([{ actor }]);
  });

  it('gets back what one that has ended did not spend, which goes on with what is left for it', async () => {
    const ended = (cost: number, budget: number) =>
      ({ ...FOLLOWED_ELSEWHERE, executionStatus: 'finished', ...spent(cost, budget) }) as const;
    const parent = await begun({ max_budget: 5 }, null, ended(4, 5));
    const granted = { max_budget: 3, started_by_agent: true, parent_conversation_id: parent.id };
    const child = await begun(granted, parent, ended(0.5, 3));
    await agent.client.start({ conversation_id: parent.id, slipway: { max_budget: 5 } });
    await agent.client.start({ conversation_id: child.id, slipway: { max_budget: 3 } });
    const given = { conversation_id: child.hex };
    await callAs(parent.key, 'wait_for_conversation', given);
    expect(await budgetOf(parent.id)).toBe(4.5);
    const said = { ...given, message: 'say hello' };
    expect(await callAs(parent.key, 'send_message', said)).toMatchObject({ isError: false });
    expect([await budgetOf(parent.id), await budgetOf(child.id)]).toEqual([4, 1]);
  });

  it('is taken for a person by an agent server of others, which knows no such member', async () => {
    const parent = await begun();
    const child = await begun({}, parent);
    const address = `http://127.0.0.1:${agent.port}`;
    const { id: sandboxId } = await rows.sandbox(user.id, { key: SESSION_KEY, specId: 'others', address });
    await app.dataSource.getRepository(AppConversation).update({ id: child.id }, { sandboxId });
    await agent.client.start({ conversation_id: child.id });
    const given = { conversation_id: child.hex, message: 'Hello, child.' };
    expect(await callAs(parent.key, 'send_message', given)).toMatchObject({ isError: false });
    const [event] = await agent.client.events(child.id, '&kind=MessageEvent&source=user');
    expect(event).not.toHaveProperty('sender_conversation_id');
  });

  it.each([{ git: 'read' }, { git: 'none' }, { secret_names: [] }])(
    'gets nothing that is read or written with tokens that it lacks: %j',
    async (limits) => {
      const parent = await begun(limits);
      const child = await begun(limits, parent);
      expect(await callAs(parent.key, 'suggested_tasks')).toMatchObject(FORBIDDEN);
      const opened = await callAs(parent.key, 'open_pull_request', { conversation_id: child.hex });
      expect([opened.isError, opened.found['code'] === 'forbidden']).toEqual([true, 'git' in limits]);
    },
  );

  it('opens no other route, and nothing once the conversation is gone or its sandbox rests', async () => {
    const { key, id } = await begun();
    await list(key).expect(200);
    await app.as(key).get('/api/v1/app-conversations/search').expect(401);
    await list(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`).expect(401);

    const sandboxes = app.dataSource.getRepository(Sandbox);
    await sandboxes.update({ id: conversation.sandboxId }, { status: 'PAUSED' });
    await list(key).expect(401);
    await sandboxes.update({ id: conversation.sandboxId }, { status: 'RUNNING' });
    await list(key).expect(200);
    await app.as(user).delete(`/api/v1/app-conversations/${id}`).expect(200);
    await list(key).expect(401);
    // Under the same id, another conversation has another key.
    await rows.conversation(user.id, { id, sandboxId: conversation.sandboxId });
    await rows.startTask(user.id, { appConversationId: id, sandboxId: conversation.sandboxId });
    await list(key).expect(401);
  });
});

describe('POST /mcp', () => {
  it.each([
    ['both types', 'application/json, text/event-stream', 'application/json'],
    ['JSON alone', 'application/json', 'application/json'],
    ['a stream alone', 'text/event-stream', 'text/event-stream'],
    ['anything', '*/*', 'application/json'],
  ])('answers clients that accept %s', async (_, Accept, type) => {
    const answer = await post(LIST, { Accept }).buffer(true).expect(200);
    expect(answer.headers['content-type']).toContain(type);
    expect(answer.text).toContain('stop_conversation');
  });

  it('leaves links out for clients of revisions without them', async () => {
    const params = { name: 'get_result', arguments: { conversation_id: conversation.hex } };
    const { body } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }).expect(200);
    expect(body.result.content).toEqual([{ type: 'text', text: expect.any(String) }]);
  });

  it.each([
    ['takes null for no arguments', null],
    [
      'leaves out what n8n adds to arguments',
      { toolCallId: 'call_0', tool: 'x', sessionId: 's', action: 'sendMessage' },
    ],
  ])('%s', async (_what, given) => {
    const params = { name: 'suggested_tasks', arguments: given };
    const { body } = await post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }).expect(200);
    expect(body.result).toMatchObject({ structuredContent: { tasks: expect.any(Array) } });
  });

  it('takes a notification without an answer', async () => {
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' }).expect(202, '');
  });

  it.each([
    ['another type', LIST, { Accept: 'text/html' }, 406],
    ['an unknown version of the protocol', LIST, { 'MCP-Protocol-Version': '1999-01-01' }, 400],
    ['several messages', [LIST, LIST], {}, 400],
    ['what is no message', { hello: 'world' }, {}, 400],
    ['a page of another site', LIST, { Origin: 'https://evil.example.com' }, 403],
    ['a name that is not ours', LIST, { Host: 'evil.example.com' }, 421],
    ['a body that is too large', { ...LIST, params: 'x'.repeat(2_000_000) }, {}, 413],
    ['another key', LIST, { 'X-Session-API-Key': 'wrong' }, 401],
  ])('refuses %s', async (_, body, headers, status) => {
    await post(body, headers as Record<string, string>).expect(status);
  });

  it('answers pages of its own, and of CORS_ORIGINS', async () => {
    await post(LIST, { Origin: app.url }).expect(200);
    await post(LIST, { Origin: 'https://tools.example.com' }).expect(200);
  });

  it.each(['get', 'delete'] as const)('has no other method: %s', async (method) => {
    const { headers } = await app.as(user).ask(method, PATH).expect(405);
    expect(headers['allow']).toBe('POST');
  });
});

// zernio-dev/zernio-python#22, czlonkowski/n8n-mcp#604: clients whose key is refused look for a sign-in, and show what they
// find in place of it.
describe('a client that looks for a sign-in', () => {
  it('shows its user what to send', async () => {
    const nothing = async (): Promise<undefined> => undefined;
    const provider: OAuthClientProvider = {
      redirectUrl: 'http://127.0.0.1/callback',
      clientMetadata: { redirect_uris: ['http://127.0.0.1/callback'] },
      clientInformation: nothing,
      saveClientInformation: nothing,
      tokens: nothing,
      saveTokens: nothing,
      redirectToAuthorization: nothing,
      saveCodeVerifier: nothing,
      codeVerifier: async () => '',
    };
    const transport = new StreamableHTTPClientTransport(new URL(PATH, app.url), { authProvider: provider });
    const connected = new Client({ name: 'test', version: '1' }).connect(transport);
    await expect(connected).rejects.toThrow('send your API key in the header');
  });
});
