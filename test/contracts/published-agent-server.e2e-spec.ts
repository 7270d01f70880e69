import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import request from 'supertest';
import { toHexId } from '@slipway/common/identifiers.js';
import {
  AgentServerClient,
  isAgentEvent,
  toRemoteConversation,
} from '@slipway/agent-client/agent-server.client.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerConnections } from '@slipway/agent-client/agent-server.connections.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import { AgentServerWatch } from '@slipway/agent-client/agent-server.watch.js';
import { AGENT_DIALECTS } from '../../src/v1/app-conversations/agent-request/agent-dialects.js';
import { agentSettings } from '@slipway/settings/agent-settings.js';
import type { AgentStart } from '../../src/v1/app-conversations/agent-request/agent-dialect.js';
import { ConversationWorkspaceService } from '../../src/v1/app-conversations/conversation-workspace.service.js';
import { ChangesReader } from '../../src/v1/app-conversations/kept-changes/changes.reader.js';
import {
  type CheckoutPlan,
  RepositoryCheckout,
} from '../../src/v1/app-conversations/start/repository-checkout.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { type FakeRequest, type FakeResponse, FakeServer } from '../fakes/fake-server.js';
import { STOCK_EVENTS, stockConversation } from '../fakes/stock-agent-samples.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import {
  publishedAlternatives,
  publishedProblems,
  publishedRoute,
  publishedValues,
  requestProblems,
} from '../../packages/agent-server/test/support/published-agent-server.js';
import { commandServer, remoteServer } from '../support/sample-tool-servers.js';

const ID = randomUUID();
const KEY = randomUUID();

/** The responses of the stock agent server, as far as they matter to callers. */
function stockResponse({ method, path: route, query }: FakeRequest): FakeResponse {
  switch (`${method} ${route.replace(ID, '{id}')}`) {
    case 'GET /server_info':
      return { body: { uptime: 2, idle_time: 1 } };
    case 'GET /api/conversations/search':
    case 'GET /api/conversations/{id}/events/search':
      return { body: { items: [], next_page_id: null } };
    case 'POST /api/conversations':
    case 'GET /api/conversations/{id}':
      return { body: stockConversation(ID) };
    case 'GET /api/git/changes':
      return { body: ['a.txt', 'b.txt'].map((name) => ({ status: 'UPDATED', path: name })) };
    case 'POST /api/bash/start_bash_command':
      return { body: { kind: 'BashCommand', id: ID, command: 'true' } };
    case 'GET /api/bash/bash_events/search': {
      // Two pieces, the second one for a caller that has seen the first.
      const order = query.has('order__gt') ? 1 : 0;
      return { body: { items: [{ kind: 'BashOutput', order, exit_code: order === 1 ? 0 : null }] } };
    }
    default:
      return { body: { success: true } };
  }
}

const START: AgentStart = {
  acp: null,
  conversationId: ID,
  workingDir: '/workspace/project',
  ports: [{ name: 'WORKER_1', url: 'http://worker-1-x.localhost:3000/' }],
  request: { initial_message: null, system_message_suffix: null, agent_type: 'default' },
  model: 'openai/gpt-4o',
  facts: { price: null, contextWindow: null },
  settings: {
    ...agentSettings(null, { llm_api_key: null, search_api_key: null, sandbox_api_key: null }),
    llm_model: 'openai/gpt-4o',
  },
  config: { llmTimeoutSeconds: 120, condenserTokens: null, tavilyApiUrl: 'https://api.tavily.com' },
  mcpConfig: null,
  secrets: new Map(),
  git: null,
  outboundAllowlist: null,
  skills: [{ name: 'notes', description: 'Notes', content: 'One line each.', triggers: ['changelog'] }],
};

/** Every member differs in form from START. */
const EVERYTHING: AgentStart = {
  ...START,
  request: {
    initial_message: {
      role: 'user',
      content: [
        { type: 'text', text: 'Look at this.' },
        { type: 'image', image_urls: ['data:image/png;base64,aGVsbG8='] },
      ],
      run: true,
    },
    system_message_suffix: 'Be brief.',
    agent_type: 'plan',
  },
  facts: { price: { input: 2.5, output: 10 }, contextWindow: 128_000 },
  settings: {
    ...START.settings,
    llm_base_url: 'https://llm.example.com/v1',
    agent: 'CodeActAgent',
    max_iterations: 7,
    max_budget_per_task: 0.5,
    confirmation_mode: true,
    security_analyzer: 'llm',
    enable_default_condenser: true,
    language: 'fr',
    git_user_name: 'Ada',
    git_user_email: 'ada@example.com',
    llm_api_key: 'sk-model',
    search_api_key: 'tvly',
  },
  mcpConfig: [
    commandServer('files', { args: ['-y', 'files'], env: new Map([['TOKEN', 'k2']]) }),
    remoteServer('https://sse.example.com', { transport: 'sse', apiKey: 'k1' }),
    remoteServer('https://http.example.com'),
  ],
  secrets: new Map([
    ['A', { value: '1', description: 'one' }],
    ['B', { value: '2', description: null }],
  ]),
  outboundAllowlist: ['models.example.com'],
};

const withSettings = (settings: Partial<AgentStart['settings']>): AgentStart => ({
  ...START,
  settings: { ...START.settings, ...settings },
});

let agent: FakeServer;
let app: TestApp;
let sandbox: Sandbox;

beforeAll(async () => {
  agent = await FakeServer.start(stockResponse);
  app = await createTestApp();
  const rows = new ConversationRows(app);
  sandbox = await rows.sandbox(app.user.id, { specId: 'stock', key: KEY, address: agent.origin });
  await rows.conversation(app.user.id, { id: ID, sandboxId: sandbox.id, workingDir: '/workspace/project' });
});

afterAll(async () => {
  await app.close();
  await agent.close();
});

beforeEach(() => {
  agent.requests.length = 0;
});

const http = new AgentServerHttp(new AgentServerConnections());
const client = new AgentServerClient(http);
const commands = new AgentServerCommands(http);
const checkout = new RepositoryCheckout(client, commands, http);
const { signal } = new AbortController();
const target = () => ({ address: agent.origin, sessionKey: KEY });
const look = (route: string) =>
  request(app.url)
    .get(`/api/v1/app-conversations/${toHexId(ID)}/${route}`)
    .set(app.user.headers)
    .expect(200);
const act = (action: string, body?: object) =>
  request(app.url)
    .post(`/api/v1/app-conversations/${toHexId(ID)}/${action}`)
    .set(app.user.headers)
    .send(body)
    .expect(200);

/** What a method sends to the stock agent server. */
interface Sender {
  call: () => PromiseLike<unknown>;
  /** Published routes, each once. */
  sends: string[];
  /** What the published document (1.58.2) lacks. */
  unknown?: string[];
}

const by = (call: () => PromiseLike<unknown>, ...sends: string[]): Sender => ({ call, sends });
const CONVERSATION = '/api/conversations/{conversation_id}';
const EVENTS = `GET ${CONVERSATION}/events/search`;
const COMMAND = ['POST /api/bash/start_bash_command', 'GET /api/bash/bash_events/search'];
const SEARCH = 'GET /api/conversations/search';
const CHECKOUT: CheckoutPlan = {
  provider: 'github',
  name: 'octo/app',
  url: 'https://github.com/octo/app.git',
  credential: { username: 'x-access-token', password: 'ghp_1' },
  folder: '/workspace/app',
  branch: null,
  newBranch: 'work',
  submodules: false,
  lfs: false,
  depth: null,
  filter: null,
  identity: { name: 'Ada', email: 'ada@example.com' },
};

/** Every method of every class that talks to agent servers and sends something of its own to the stock one. */
const SENDERS: Record<string, Sender> = {
  'AgentServerClient.isAlive': by(() => client.isAlive(agent.origin), 'GET /alive'),
  'AgentServerClient.liveness': by(() => client.liveness(agent.origin), 'GET /alive'),
  'AgentServerClient.activity': by(() => client.activity(target()), 'GET /server_info', SEARCH),
  'AgentServerClient.startConversation': by(
    () => client.startConversation(target(), AGENT_DIALECTS.stock.request(EVERYTHING)),
    'POST /api/conversations',
  ),
  'AgentServerClient.findConversation': by(
    () => client.findConversation(target(), ID),
    `GET ${CONVERSATION}`,
  ),
  'AgentServerClient.listConversations': by(async () => {
    await client.listConversations(target(), { limit: 20, pageId: null });
    await client.listConversations(target(), { limit: 1, pageId: ID });
  }, SEARCH),
  'AgentServerClient.uptimeSeconds': by(() => client.uptimeSeconds(target()), 'GET /server_info'),
  'AgentServerClient.lastEventId': by(() => client.lastEventId(target(), ID), EVENTS),
  'AgentServerClient.switchAcpModel': by(
    () => act('switch_acp_model', { model: 'another' }),
    `POST ${CONVERSATION}/switch_acp_model`,
  ),
  'AgentServerClient.switchLlm': by(
    () => client.switchLlm(target(), ID, { model: 'another' }),
    `POST ${CONVERSATION}/switch_llm`,
  ),
  'AgentServerClient.renameConversation': by(
    () => client.renameConversation(target(), ID, 'A title'),
    `PATCH ${CONVERSATION}`,
  ),
  'AgentServerClient.deleteConversation': by(
    () => client.deleteConversation(target(), ID),
    `DELETE ${CONVERSATION}`,
  ),
  'AgentServerClient.run': by(() => act('run'), `POST ${CONVERSATION}/run`),
  'AgentServerClient.pause': by(() => act('pause'), `POST ${CONVERSATION}/pause`),
  'AgentServerClient.sendMessage': by(
    () =>
      act('send-message', {
        content: [
          { type: 'text', text: 'hello' },
          { type: 'image', image_urls: ['data:image/png;base64,aGVsbG8='] },
          { type: 'image_url', image_url: { url: 'https://images.example.com/a.png' } },
        ],
      }),
    `POST ${CONVERSATION}/events`,
  ),
  'AgentServerClient.respondToConfirmation': by(async () => {
    await act('respond-to-confirmation', { accept: true });
    await act('respond-to-confirmation', { accept: false, reason: 'Not this file.' });
    await act('respond-to-confirmation', { accept: false, reason: null });
  }, `POST ${CONVERSATION}/events/respond_to_confirmation`),
  'AgentServerClient.suggestTitle': {
    ...by(() => client.suggestTitle(target(), ID)),
    unknown: [`POST /api/conversations/${ID}/generate_title: is not published`],
  },
  'AgentServerClient.events': by(async () => {
    await client.events(target(), ID, {});
    await client.events(target(), ID, { pageId: 'said', limit: 1 });
  }, EVENTS),
  'AgentServerCommands.run': by(
    async () => {
      const command = { command: 'true', timeoutSeconds: 60, signal };
      await commands.run(target(), { ...command, cwd: null });
      await commands.run(target(), { ...command, cwd: '/workspace/project' });
    },
    ...COMMAND,
  ),
  'AgentServerHttp.upload': by(() => http.upload(target(), '/tmp/secret', 'x'), 'POST /api/file/upload'),
  'ConversationWorkspaceService.file': by(() => look('file?file_path=docs/a.txt'), 'GET /api/file/download'),
  'ConversationWorkspaceService.changes': by(
    () => look('git/changes?path=.&ref=HEAD'),
    'GET /api/git/changes',
  ),
  'ConversationWorkspaceService.diff': by(() => look('git/diff?path=a.txt&ref=HEAD'), 'GET /api/git/diff'),
  'ConversationWorkspaceService.files': by(() => look('files?path=src'), ...COMMAND),
  'ConversationWorkspaceService.skills': by(() => look('skills'), 'POST /api/skills'),
  'ConversationWorkspaceService.hooks': by(() => look('hooks'), 'POST /api/hooks'),
  'ChangesReader.read': by(
    () => app.app.get(SandboxEvents).emit('stopping', sandbox.id),
    'GET /api/git/changes',
    'GET /api/git/diff',
    ...COMMAND,
    // Of the one who looks for what clients have begun there.
    SEARCH,
  ),
  'RepositoryCheckout.byCommand': by(
    () => AGENT_DIALECTS.stock.checkOut(checkout, target(), CHECKOUT, signal),
    ...COMMAND,
    'POST /api/file/upload',
  ),
};

/** The others, by why they send nothing of their own to it. */
const SILENT: Record<string, string[]> = {
  'our own agent server only': [
    ...['giveCredentials', 'prepareRepository', 'listeningPorts', 'push'].map(
      (name) => `AgentServerClient.${name}`,
    ),
    'AgentServerCommands.runShort',
    'RepositoryCheckout.byRoute',
  ],
  'part of others, or what their callers pass': [
    'AgentServerCommands.outputs',
    ...['json', 'open', 'send', 'text', 'request'].map((name) => `AgentServerHttp.${name}`),
    ...['git', 'liveOrKept', 'readIfRunning'].map((name) => `ConversationWorkspaceService.${name}`),
    ...['files', 'diff', 'newestFirst', 'unlessUntold'].map((name) => `ChangesReader.${name}`),
  ],
  'OpenAPI does not cover sockets; events are read from the log': ['close', 'notify', 'end', 'ping'].map(
    (name) => `AgentServerWatch.${name}`,
  ),
  'sends nothing': [
    'AgentServerHttp.onBreach',
    'AgentServerHttp.noteBreach',
    ...['report', 'slowDown', 'clearTimers'].map((name) => `AgentServerWatch.${name}`),
    'ConversationWorkspaceService.findKept',
  ],
};

/** The classes of the table, by file. */
const CLASSES = {
  'agent-server.client.ts': AgentServerClient,
  'agent-server.commands.ts': AgentServerCommands,
  'agent-server.http.ts': AgentServerHttp,
  'agent-server.watch.ts': AgentServerWatch,
  'app-conversations/conversation-workspace.service.ts': ConversationWorkspaceService,
  'app-conversations/kept-changes/changes.reader.ts': ChangesReader,
  'app-conversations/start/repository-checkout.ts': RepositoryCheckout,
};

const senders = Object.entries(SENDERS).map(([name, sender]) => ({
  title: sender.unknown ? `${name}, except for what is unknown` : name,
  ...sender,
}));

/** Followers of the conversation open its socket at any time. */
const isSocket = ({ path: route }: FakeRequest) => route.startsWith('/sockets/');

/** Followers also read at any time; what they send is checked like everything else. */
const isFollowing = (route: string) =>
  [`GET ${CONVERSATION}`, `GET ${CONVERSATION}/events/search`].includes(route);

/** Everything that was sent and is not published, each once. */
async function problemsOfAll(): Promise<string[]> {
  const sent = agent.requests.filter((one) => !isSocket(one));
  return [...new Set((await Promise.all(sent.map(requestProblems))).flat())];
}

describe('what is sent to the stock agent server', () => {
  it('is declared for every method that may send something', () => {
    const methods = Object.values(CLASSES).flatMap(({ name, prototype }) =>
      Object.getOwnPropertyNames(prototype)
        .filter((method) => method !== 'constructor')
        .map((method) => `${name}.${method}`),
    );

    expect([...Object.keys(SENDERS), ...Object.values(SILENT).flat()].toSorted()).toEqual(methods.toSorted());
  });

  it('is sent by no other class', () => {
    const reaching = ['src/v1', 'packages/agent-client/src'].flatMap((room) => {
      const folder = path.join(import.meta.dirname, '../..', room);
      return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
        (file) =>
          file.endsWith('.ts') &&
          !/\.(module|spec)\.ts$/.test(file) &&
          /\bAgentServerHttp\b|from 'ws'/.test(readFileSync(path.join(folder, file), 'utf8')),
      );
    });

    // It only listens to what others met.
    const listening = ['sandboxes/lifecycle/row-repairs.ts'];
    expect(reaching.toSorted()).toEqual([...Object.keys(CLASSES), ...listening].toSorted());
  });

  it.each(senders)('is as published: $title', async ({ call, sends, unknown = [] }) => {
    await call();

    const routes = new Set(agent.requests.map(publishedRoute).filter((route) => route !== null));
    expect([...routes].filter((route) => sends.includes(route) || !isFollowing(route)).toSorted()).toEqual(
      sends.toSorted(),
    );
    expect(await problemsOfAll()).toEqual(unknown);
  });

  it.each<[string, AgentStart]>([
    ['plain settings', START],
    ['everything', EVERYTHING],
    ['a blank address', withSettings({ llm_base_url: '' })],
    ['no condenser', withSettings({ enable_default_condenser: false })],
    ['a size of the condenser', { ...START, config: { ...START.config, condenserTokens: 5000 } }],
    ['every call confirmed', withSettings({ confirmation_mode: true })],
    ['risky calls confirmed', withSettings({ confirmation_mode: true, security_analyzer: 'llm' })],
  ])('starts a conversation as published: %s', async (_name, start) => {
    await client.startConversation(target(), AGENT_DIALECTS.stock.request(start));

    expect(await problemsOfAll()).toEqual([]);
  });
});

describe('what is accepted from the stock agent server', () => {
  const post = async (route: string, body: unknown) => {
    const response = await fetch(`${app.url}/api/v1/webhooks/${route}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Session-API-Key': KEY },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const accepted = { status: 200, body: { success: true } };

  it('is tried with every kind of event', () => {
    expect(Object.keys(STOCK_EVENTS).toSorted()).toEqual(publishedAlternatives('Event').toSorted());
  });

  it.each(Object.entries(STOCK_EVENTS))('is an event: %s', async (kind, event) => {
    expect(event['kind']).toBe(kind);
    expect(publishedProblems('Event', event)).toEqual([]);
    expect(publishedProblems(kind, event)).toEqual([]);

    expect(await post(`events/${toHexId(ID)}`, [event])).toEqual(accepted);
    expect(await post(`events/${ID}`, [event])).toEqual(accepted);
    expect(isAgentEvent(event)).toBe(true);
  });

  it.each(publishedValues('ConversationExecutionStatus'))('is a conversation: %s', async (status) => {
    const info = stockConversation(ID, status);
    expect(publishedProblems('ConversationInfo', info)).toEqual([]);

    expect(await post('conversations', info)).toEqual(accepted);
    expect(toRemoteConversation(info)).toMatchObject({ id: ID, status });
  });

  it('is a conversation with only the required members', async () => {
    const { id, agent: itsAgent, workspace } = stockConversation(ID);
    const info = { id, agent: itsAgent, workspace };
    expect(publishedProblems('ConversationInfo', info)).toEqual([]);

    expect(await post('conversations', info)).toEqual(accepted);
  });
});

describe('the check itself', () => {
  const sent = (given: Partial<FakeRequest>): FakeRequest => ({
    method: 'POST',
    path: '/api/conversations',
    query: new URLSearchParams(),
    headers: { 'content-type': 'application/json' },
    bytes: Buffer.alloc(0),
    body: '',
    at: 0,
    ...given,
  });
  const command = (body: unknown) =>
    sent({ path: '/api/bash/start_bash_command', body: JSON.stringify(body) });

  const searched = (query: string) =>
    sent({ method: 'GET', path: '/api/conversations/search', query: new URLSearchParams(query) });

  it.each<[string, FakeRequest, string]>([
    ['no body', sent({}), 'POST /api/conversations: body: is missing'],
    ['a missing member', command({}), 'body.command: is missing'],
    ['an unknown member', command({ command: 'a', tags: [] }), 'body.tags: is not known'],
    ['a wrong value', command({ command: 1 }), 'body.command: is not string'],
    ['a garbled id', sent({ method: 'DELETE', path: '/api/conversations/A' }), 'conversation_id: is no uuid'],
    ['an unknown parameter', searched('state=idle'), 'state: is not known'],
    ['a wrong parameter', searched('limit=101'), 'limit: is out of bounds'],
  ])('finds %s', async (_name, given, problem) => {
    expect(await requestProblems(given)).toEqual([expect.stringContaining(problem)]);
  });
});
