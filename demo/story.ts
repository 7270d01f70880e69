import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { DEMO_ISSUE, DEMO_REPOSITORY } from './demo-world.js';
import type { Demo } from './start-demo.js';
import type { ServerSentEvent, Storyteller } from './storyteller.js';

const TASKS_PATH = '/api/user/suggested-tasks';
export const TOKENS_PATH = '/api/add-git-providers';
export const CONVERSATIONS = '/api/v1/app-conversations';
const COLUMNS = ['git_provider', 'task_type', 'repo', 'issue_number', 'title'] as const;
const WIDTH = 110;
export const asJson = (body: unknown) => [JSON.stringify(body)];

/** Tells the main job from the first token on, with a provider that fails on the way. */
export async function tellStory(demo: Demo, teller: Storyteller): Promise<void> {
  const { gitlab } = demo.worlds;
  teller.say(
    'Nadia stores a token for each of her three git hosts. The service tries every token on its host before it keeps it.',
  );
  teller.introduceKey();
  await tellTokens(demo, teller);

  teller.say('What should she (or an agent) do next? The service asks all three hosts at once.');
  await teller.request({ method: 'GET', path: TASKS_PATH }, taskTable);

  teller.say('The second time the response comes from the cache. Here are only the most urgent kinds:');
  await teller.request(
    { method: 'GET', path: `${TASKS_PATH}?task_types=MERGE_CONFLICTS,FAILING_CHECKS&limit=3` },
    taskTable,
  );

  teller.say('She replaces her GitLab token…');
  gitlab.token = 'glpat-demo-newer-token-of-nadia';
  await teller.request(
    { method: 'POST', path: TOKENS_PATH, body: { provider_tokens: { gitlab: { token: gitlab.token } } } },
    asJson,
  );

  teller.say(
    '…but GitLab has just reached its rate limit (429). The others still respond, and the header says why one is missing.',
  );
  demo.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });
  await teller.request({ method: 'GET', path: TASKS_PATH }, taskTable);
  demo.gitlab.clearFaults();
}

/**
 * Tells how an agent works on one of the tasks, in a real sandbox, with a script in place of a model; returns the id of
 * the conversation.
 */
export async function tellConversation(demo: Demo, teller: Storyteller): Promise<string> {
  teller.say(
    'Now an agent does one of these tasks. It needs a model (here a script behind an OpenAI-compatible API).',
  );
  await tellModel(demo, teller);

  teller.say(
    'She starts a conversation with that task. The start runs in the background, and would survive a crash.',
  );
  const started = await teller.request(
    {
      method: 'POST',
      path: CONVERSATIONS,
      body: {
        suggested_task: {
          git_provider: 'github',
          task_type: 'FAILING_CHECKS',
          repo: DEMO_REPOSITORY,
          issue_number: DEMO_ISSUE,
          title: 'Retry the address lookup once before giving up',
        },
      },
    },
    (body) => [`start task ${jsonText(body, 'id') ?? ''}: ${jsonText(body, 'status') ?? ''}`],
  );
  const ready = await teller.follow(
    `${CONVERSATIONS}/start-tasks?ids=${jsonText(started, 'id') ?? ''}`,
    (body) => [firstItem(body, 'status'), firstItem(body, 'detail')].join('  ').trimEnd(),
    (body) => ['READY', 'ERROR'].includes(firstItem(body, 'status')),
  );
  const id = firstItem(ready, 'app_conversation_id');
  const sandbox = firstItem(ready, 'sandbox_id');

  teller.say(
    'Everything that happens arrives as server-sent events. The clone, the shell and the commit are real.',
  );
  const events = `/api/v1/conversation/${id}/events/stream`;
  const lastEventId = await teller.stream(events, eventLine, hasStopped);

  teller.say(
    'Requests to the agent server inside the sandbox go through the service, with the key of the sandbox.',
  );
  const [conversation] = jsonList(
    await teller.request({ method: 'GET', path: `${CONVERSATIONS}?ids=${id}` }, (body) => [
      `${firstItem(body, 'title')}: ${firstItem(body, 'execution_status')}, ${metrics(body)}`,
    ]),
  );
  const sandboxKey = jsonText(conversation, 'session_api_key') ?? '';
  teller.introduceSandboxKey(sandboxKey);
  const shown = await teller.request(
    {
      method: 'POST',
      path: `/api/v1/sandboxes/${sandbox}/agent-server/api/bash/execute_bash_command`,
      body: { command: 'git log -1 --format="%h %an: %s" && git diff HEAD~1 --stat', cwd: 'storefront' },
      sandboxKey,
    },
    (body) => `${jsonText(body, 'stdout') ?? ''}${jsonText(body, 'stderr') ?? ''}`.trimEnd().split('\n'),
  );
  if (!jsonText(shown, 'stdout')?.includes('fix: try the address lookup twice')) {
    throw new Error('the commit of the agent is missing');
  }

  teller.say('A paused sandbox keeps its files and its log, and needs neither processor nor memory.');
  await teller.request({ method: 'POST', path: `/api/v1/sandboxes/${sandbox}/pause` }, asJson);
  await teller.request({ method: 'POST', path: `/api/v1/sandboxes/${sandbox}/resume` }, asJson);
  await teller.follow(
    `/api/v1/sandboxes?id=${sandbox}`,
    (body) => firstItem(body, 'status'),
    (body) => firstItem(body, 'status') === 'RUNNING',
  );

  teller.say('The conversation continues where it was, and the stream after the last event that was seen.');
  await teller.request(
    {
      method: 'POST',
      path: `${CONVERSATIONS}/${id}/send-message`,
      body: { content: [{ type: 'text', text: 'What did you change, and under whose name?' }], run: true },
    },
    asJson,
  );
  await teller.stream(events, eventLine, hasStopped, lastEventId);
  return id;
}

export async function tellTokens(
  { worlds: { github, gitlab, bitbucket } }: Demo,
  teller: Storyteller,
): Promise<void> {
  await teller.request(
    {
      method: 'POST',
      path: TOKENS_PATH,
      body: {
        provider_tokens: {
          github: { token: github.token },
          gitlab: { token: gitlab.token },
          bitbucket: { token: bitbucket.token },
        },
      },
    },
    asJson,
  );
}

export async function tellModel(demo: Demo, teller: Storyteller): Promise<void> {
  await teller.request(
    {
      method: 'POST',
      path: '/api/settings',
      body: {
        llm_model: 'openai/scripted',
        llm_base_url: demo.modelUrl,
        llm_api_key: 'sk-demo',
        git_user_name: 'Nadia Okafor',
        git_user_email: 'nadia@quayside.example',
      },
    },
    asJson,
  );
}

export async function tellDeletion(id: string, teller: Storyteller): Promise<void> {
  teller.say('Deleting the conversation removes its sandbox too.');
  await teller.request({ method: 'DELETE', path: `${CONVERSATIONS}/${id}` }, asJson);
}

/** Suggested tasks as an aligned table, one line each, with the names of the members on top. */
function taskTable(tasks: unknown): string[] {
  const rows = (Array.isArray(tasks) ? tasks : []).map((task: unknown) =>
    COLUMNS.map((column) => jsonText(task, column) ?? `${jsonNumber(task, column) ?? ''}`),
  );
  const all = [[...COLUMNS], ...rows];
  const widths = COLUMNS.map((_column, index) => Math.max(...all.map((row) => row[index]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** One line for an event; null for an event that says nothing new. */
export function eventLine({ event, data }: ServerSentEvent): string | null {
  switch (event) {
    case 'MessageEvent':
      return line(jsonText(data, 'source') ?? '', textOf(jsonList(data, 'llm_message', 'content')));
    case 'ActionEvent': {
      const action = jsonAt(data, 'action');
      const said = textOf(jsonList(data, 'thought'));
      const what =
        ['command', 'message', 'title', 'operation']
          .map((member) => jsonText(action, member) ?? jsonText(action, 'data', member))
          .find((text) => text !== null) ?? '';
      return line(jsonText(data, 'tool_name') ?? '', said === '' ? what : `${said} ${what}`);
    }
    case 'ObservationEvent':
      return line('', textOf(jsonList(data, 'observation', 'content')));
    case 'ConversationErrorEvent':
      return line('error', jsonText(data, 'detail') ?? '');
    case 'ConversationStateUpdateEvent':
      return jsonText(data, 'key') === 'execution_status'
        ? line('status', jsonText(data, 'value') ?? '')
        : null;
    default:
      return null;
  }
}

/** Whether the agent has stopped working. */
export function hasStopped({ event, data }: ServerSentEvent): boolean {
  return (
    event === 'ConversationStateUpdateEvent' &&
    jsonText(data, 'key') === 'execution_status' &&
    ['finished', 'error', 'stuck'].includes(jsonText(data, 'value') ?? '')
  );
}

export function textOf(content: unknown[]): string {
  return content.map((part) => jsonText(part, 'text') ?? '').join(' ');
}

function line(who: string, text: string): string {
  const oneLine = text.replaceAll(/\s+/g, ' ').trim();
  return `${who.padEnd(9)} ${oneLine.length > WIDTH ? `${oneLine.slice(0, WIDTH)}…` : oneLine}`.trimEnd();
}

/** A member of the first element of a list. */
export function firstItem(body: unknown, member: string): string {
  return jsonText(jsonList(body)[0], member) ?? '';
}

function metrics(body: unknown): string {
  const usage = jsonAt(jsonList(body)[0], 'metrics', 'accumulated_token_usage');
  const count = (member: string): string => `${Number(jsonAt(usage, member) ?? 0)}`;
  return `${count('prompt_tokens')} tokens in, ${count('completion_tokens')} out`;
}
