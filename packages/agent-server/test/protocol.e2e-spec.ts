import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import { eventSchema } from '@slipway/agent-protocol/event-schemas.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { WEBHOOK_DEFAULTS } from '../src/webhooks/webhook-sender.js';
import { NativeEngine } from '../src/engine/native/native.engine.js';
import { FakeServer } from '../../../test/fakes/fake-server.js';
import { RemoteMcpServer } from './fakes/mcp-servers/remote-mcp-server.js';
import { call, calls, fails, say, type ScriptedAnswer } from './fakes/scripted-llm.answers.js';
import { type ChatRequest, ScriptedLlm } from './fakes/scripted-llm.js';
import { eventProblems, infoProblems } from './support/published-agent-server.js';
import { SESSION_KEY, startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

/** What our own agent does; it calls its tools itself. */
const EVENT_KINDS = new Set(
  [
    'MessageEvent ActionEvent ObservationEvent AgentErrorEvent UserRejectObservation SystemPromptEvent',
    'ConversationStateUpdateEvent PauseEvent ConversationErrorEvent Condensation',
  ].flatMap((names) => names.split(' ')),
);

/** Members of events that have a schema of their own. */
const NESTED_KINDS = [
  ...['Terminal', 'FileEditor', 'TaskTracker', 'Finish', 'Think', 'MCPTool'].flatMap((tool) => [
    `${tool}Action`,
    `${tool}Observation`,
  ]),
  'MCPToolDefinition',
];

/** The model's responses to the user's last message, step by step. */
const STEPS: Record<string, ScriptedAnswer[]> = {
  work: [
    call('task_tracker', { command: 'plan', task_list: [{ title: 'look', status: 'in_progress' }] }),
    call('terminal', { command: 'echo hello; exit 2', timeout: 60 }, { text: 'Let me look.' }),
    calls(
      { name: 'file_editor', arguments: { command: 'create', path: 'a.txt', file_text: 'one\n' } },
      { name: 'file_editor', arguments: { command: 'view', path: 'a.txt', view_range: [1, 1] } },
      { name: 'file_editor', arguments: { command: 'insert', path: 'a.txt', insert_line: 1, new_str: 'b' } },
      { name: 'file_editor', arguments: { command: 'view', path: '/etc/passwd' } },
      { name: 'no_such_tool', arguments: {} },
      { name: 'terminal', arguments: '{"command":' },
      { name: 'add', arguments: { a: 1, b: null } },
      { name: 'web_search', arguments: { query: 'x' } },
    ),
    { kind: 'answer', reasoning: 'I think.', calls: [{ name: 'think', arguments: { thought: 'hm' } }] },
    call('finish', { message: 'Done.' }),
  ],
  fail: [fails(400, 'no such model')],
  ask: [call('terminal', { command: 'rm a.txt' })],
  answer: [say('Nothing more.')],
};

function script({ messages, text }: ChatRequest): ScriptedAnswer {
  if (text.includes('You condense the earlier part')) {
    return say('SUMMARY');
  }
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const asked = JSON.stringify(messages[lastUser]?.content);
  const steps = Object.entries(STEPS).find(([word]) => asked.includes(word))?.[1] ?? [];
  const done = messages.slice(lastUser).filter(({ role }) => role === 'assistant').length;
  return steps[done] ?? say('Done.');
}

describe('what the agent server says', () => {
  let server: TestAgentServer;
  let llm: ScriptedLlm;
  let mcp: RemoteMcpServer;
  let service: FakeServer;
  let id: string;
  let frames: unknown[];

  beforeAll(async () => {
    llm = await ScriptedLlm.start(script);
    mcp = await RemoteMcpServer.start();
    service = await FakeServer.start(() => ({ status: 200, body: {} }));
    server = await startTestAgentServer({
      createEngine: async () => new NativeEngine(),
      webhook: { ...WEBHOOK_DEFAULTS, baseUrl: service.origin },
    });
    const { client } = server;
    id = await client.start(
      startRequest({
        agent: {
          kind: 'Agent',
          llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url },
          mcp_config: {
            mcpServers: { calculator: { url: mcp.httpUrl }, dead: { command: 'no-such-program' } },
          },
        },
        security_analyzer: { kind: 'LLMSecurityAnalyzer' },
        secrets: { TOKEN: { kind: 'StaticSecret', value: 'a-secret', description: 'A secret' } },
        slipway: { search_api_key: 'tvly', tavily_api_url: service.origin, max_budget: 5, language: 'de' },
      }),
    );
    frames = [];
    const socket = new WebSocket(`${client.url.replace('http', 'ws')}/sockets/events/${id}?resend_all=true`, {
      headers: { 'X-Session-API-Key': SESSION_KEY },
    });
    socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString('utf8'))));
    await until(() => frames.length > 0);

    await client.talk(id, 'work');
    await client.talk(id, 'fail', 'error');
    const policy = { kind: 'AlwaysConfirm' };
    await client.act(id, 'confirmation_policy', { policy });
    await client.talk(id, 'ask', 'waiting_for_confirmation');
    const answer = { accept: false, reason: 'not this file' };
    await client.act(id, 'events/respond_to_confirmation', answer);
    await client.untilStatus(id, 'idle');
    await client.act(id, 'run');
    await client.untilStatus(id, 'finished');
    await client.say(id, 'answer', false);
    await client.act(id, 'pause');
    await client.act(id, 'run');
    await client.untilStatus(id, 'finished');
    await client.act(id, 'condense');
    socket.send('no message');
    await until(() => frames.some((frame) => jsonText(frame, 'kind') === 'ServerErrorEvent'));
    socket.close();
  });

  afterAll(async () => {
    await server.stop();
    await llm.close();
    await mcp.close();
    await service.close();
  });

  it('sends every kind of event, each with exactly the members that clients know', async () => {
    const page = await server.client.get(`/api/conversations/${id}/events/search?limit=100`);
    expect(jsonList(page, 'items').flatMap(eventProblems)).toEqual([]);
    const kinds = jsonList(page, 'items').map((event) => jsonText(event, 'kind'));
    expect(new Set(kinds)).toEqual(EVENT_KINDS);
    expect(jsonList(page, 'items').map((event) => eventSchema.safeParse(event).error)).toEqual(
      kinds.map(() => undefined),
    );
    const inside = JSON.stringify(page);
    for (const kind of NESTED_KINDS) {
      expect(inside).toContain(`"kind":"${kind}"`);
    }
    expect(inside).not.toMatch(/a-secret|llm-key/);
  });

  it('sends the same over sockets and webhooks', async () => {
    const events = frames.filter((frame) => jsonText(frame, 'kind') !== 'ServerErrorEvent');
    expect(events.flatMap(eventProblems)).toEqual([]);
    expect(jsonAt(events[0], 'key')).toBe('full_state');
    const states = events.filter((event) => jsonAt(event, 'key') === 'full_state');
    expect(states.flatMap((state) => infoProblems(jsonAt(state, 'value')))).toEqual([]);
    const told = () => service.requests.filter((request) => request.path.startsWith('/events/'));
    const log = await server.client.events(id);
    await until(
      () => told().flatMap(({ body }) => jsonList({ list: JSON.parse(body) }, 'list')).length >= log.length,
    );
    expect(told().flatMap(({ body }) => Array.from(JSON.parse(body)).flatMap(eventProblems))).toEqual([]);
    const infos = service.requests.filter((request) => request.path === '/conversations');
    expect(infos.flatMap(({ body }) => infoProblems(JSON.parse(body)))).toEqual([]);
  });

  it('responds with what clients know', async () => {
    const { client } = server;
    const [found] = jsonList(await client.get(`/api/conversations?ids=${id}`));
    const listed = jsonList(await client.get('/api/conversations/search?status=finished'), 'items');
    const infos = [await client.info(id), found, ...listed];
    expect(infos.map(infoProblems)).toEqual(infos.map(() => []));
    expect(listed).toHaveLength(1);
    expect(await client.get('/api/tools')).toEqual(expect.arrayContaining(['terminal', 'file_editor']));
  });
});
