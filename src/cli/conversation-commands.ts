import type { Command } from '@commander-js/extra-typings';
import { jsonText, parseJson, jsonList } from '@slipway/common/json-access.js';
import { gitHostBaseUrl, PUBLIC_GIT_SERVERS } from '@slipway/git-providers/public-git-servers.js';
import { parseList } from 'structured-headers';
import type { SuggestedTaskDto } from '../suggested-tasks/suggested-tasks.dto.js';
import type { StartTaskDto } from '../v1/app-conversations/api/dto/start-task.dto.js';
import type { OpenedPullRequestDto } from '../v1/pull-requests/pull-request.dto.js';
import type { UserInfoDto } from '../v1/sandbox-settings/sandbox-settings.dto.js';
import { CommandError, printRows, UsageError } from './command-output.js';
import { hostReasons, type Invocation, type Invoke, type ServiceClient } from './service-client.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const TASKS = '/api/user/suggested-tasks';
/** Longer than the service takes. */
const FORK_PATIENCE_MS = 240_000;
const PAGE = /^(https?:\/\/[^/]+\/.+?)\/(?:-\/)?(issues|pull|merge_requests|pull-requests)\/(\d+)/;
/** Before the name of a repository in addresses of Bitbucket Data Center, where people have projects of their own. */
const PROJECT = /^(?:projects\/|(users\/))([^/]+)\/repos\/(?=[^/]+$)/;
const SERVERS: Partial<Record<string, { host: string }>> = PUBLIC_GIT_SERVERS;
/** After these the agent does nothing until a user says or allows something. */
const RESTING = new Set(['finished', 'idle', 'paused', 'waiting_for_confirmation', 'error', 'stuck']);

export function defineConversations(program: Command, invoke: Invoke): void {
  program
    .command('tasks')
    .description('list your open work across all repositories')
    .option('--providers <list>', 'only these git providers, such as github,gitlab')
    .option('--types <list>', 'only these kinds, such as FAILING_CHECKS,OPEN_PR')
    .option('--limit <number>', 'at most so many')
    .option('--json', 'print JSON')
    .action(async ({ json, types: task_types, ...filter }) => {
      const { client, ...shown } = invoke(json);
      const response = await client.http.get(TASKS, { searchParams: { ...filter, task_types } });
      const tasks = await response.json<SuggestedTaskDto[]>();
      printRows(shown, tasks, { TASK: taskName, KIND: 'task_type', TITLE: 'title' });
      // A structured list (RFC 9651).
      for (const [provider, parameters] of parseList(response.headers.get('x-provider-status') ?? '')) {
        const { status, code, detail, age, retry_after: wait } = Object.fromEntries(parameters);
        if (String(status) === 'stale') {
          shown.output.note(`${String(provider)}: read ${String(age)} s ago, and being read again now`);
        } else if (code !== undefined) {
          shown.output.note(
            hostReasons(String(provider), [status, code, detail], typeof wait === 'number' ? wait : null),
          );
        }
      }
    });
  program
    .command('run')
    .description('let an agent work on a suggested task, or on a message in a repository')
    .argument('<task|repository>', 'github:owner/name#12, its page, or github:owner/name with a message')
    .argument('[message]', 'what the agent should do')
    .option('--json', 'print events as JSON, one a line')
    .action(async (given, message, { json }) => {
      const invocation = invoke(json);
      const { client, output } = invocation;
      const [, git_provider, selected_repository = given] = /^(\w+):(.+)$/.exec(given) ?? [];
      const initial_message = { content: [{ type: 'text', text: message }] };
      const body =
        message === undefined
          ? { suggested_task: await requireTask(client, given) }
          : { selected_repository, git_provider, initial_message };
      const { id: startId } = await client.http.post(CONVERSATIONS, { json: body }).json<StartTaskDto>();
      const id = await awaitReady(invocation, startId);
      output.note(`conversation ${id}: ${client.config.url}/console/conversations/${id}`);
      await watchConversation(invocation, id);
    });
  program
    .command('watch <conversation>')
    .description('follow a conversation until its agent stops')
    .option('--json', 'print events as JSON, one a line')
    .action(async (id, { json }) => await watchConversation(invoke(json), id));
  program
    .command('pull-request <conversation>')
    .description(
      "open the pull request of a conversation's branch, from a fork of yours where you may not push",
    )
    .option('--title <text>', 'by default that of the conversation')
    .option('--body <text>', 'its description')
    .option('--draft', 'not ready for review yet')
    .option('--source-branch <name>', 'by default the one that is checked out')
    .option('--target-branch <name>', 'by default that of the repository')
    .option('--json', 'print JSON')
    .action(async (id, { json, sourceBranch: source_branch, targetBranch: target_branch, ...options }) => {
      const { client, output } = invoke(json);
      const path = `${CONVERSATIONS}/${encodeURIComponent(id)}/pull-request`;
      const body = { ...options, source_branch, target_branch };
      // A fork is made and waited for, and then pushed to.
      const sent = client.http.post(path, { json: body, timeout: FORK_PATIENCE_MS });
      const opened = await sent.json<OpenedPullRequestDto>();
      output.result(json ? JSON.stringify(opened) : opened.url);
    });
}

/** `github:owner/name#12`: what `slipway run` takes. */
function taskName({ git_provider, repo, issue_number }: Task): string {
  return `${git_provider}:${repo}${issue_number === 0 ? '' : `#${issue_number}`}`;
}

type Provider = SuggestedTaskDto['git_provider'];
type Task = Pick<SuggestedTaskDto, 'git_provider' | 'task_type' | 'repo' | 'issue_number' | 'title'>;

/** A suggested task by its name or page, or what the page of a known git host is about. @throws UsageError */
async function requireTask({ http }: ServiceClient, given: string): Promise<Task> {
  const [, page, kind, number = ''] = PAGE.exec(given) ?? [];
  const [provider, repo = ''] = page === undefined ? [] : await placeOf(http, page);
  const name = [provider && `${provider}:`, page === undefined ? given : `${repo}#${number}`].join('');
  const tasks = await http.get(TASKS).json<SuggestedTaskDto[]>();
  const [task, another] = tasks.filter((each) => `:${taskName(each)}`.endsWith(`:${name}`));
  if (task && another) {
    throw new UsageError(`several git hosts have ${name}: put the host before it, as in ${taskName(task)}`);
  }
  if (task) {
    return task;
  }
  if (provider === undefined) {
    throw new UsageError(`there is no suggested task ${name}: see slipway tasks, or add a message`);
  }
  const task_type = kind === 'issues' ? 'OPEN_ISSUE' : 'OPEN_PR';
  return { git_provider: provider, task_type, repo, issue_number: Number(number), title: `#${number}` };
}

/** The git host of the user's that has a page, and the repository. */
async function placeOf(http: ServiceClient['http'], page: string): Promise<[Provider | undefined, string]> {
  const { provider_tokens_set: tokens } = await http.get('/api/v1/users/me').json<UserInfoDto>();
  const home = (provider: Provider): string =>
    `${gitHostBaseUrl(tokens[provider] ?? SERVERS[provider]?.host ?? '')}/`;
  const provider = (Object.keys(tokens) as Provider[])
    .toSorted((one, other) => home(other).length - home(one).length)
    .find((each) => page.startsWith(home(each)));
  const place = page.slice(provider ? home(provider).length : page.indexOf('/', 'https://'.length) + 1);
  return [provider, place.replace(PROJECT, (_all, person, key) => `${person ? '~' : ''}${key}/`)];
}

async function awaitReady({ client, output }: Invocation, ids: string): Promise<string> {
  let last = '';
  const task = await client.poll<StartTaskDto>(`${CONVERSATIONS}/start-tasks`, { ids }, (found) => {
    if (!found || found.status === 'ERROR') {
      return true;
    }
    const line = [found.status, found.detail].filter(Boolean).join('  ');
    if (line !== last) {
      output.note(line);
      last = line;
    }
    return found.app_conversation_id !== null;
  });
  if (!task?.app_conversation_id) {
    throw new CommandError(task?.detail ?? 'the start failed');
  }
  return task.app_conversation_id;
}

/** Prints events as they happen until the agent rests. @throws CommandError when it failed, or the service stays away */
async function watchConversation({ client, output, json }: Invocation, id: string): Promise<void> {
  const path = `/api/v1/conversation/${id}/events`;
  let hasWorked = false;
  for await (const { data } of client.events(`${path}/stream`)) {
    const event = parseJson(data);
    (json ? [data] : eventLines(event)).forEach((line) => output.result(line));
    const status = executionStatus(event);
    // A message makes an agent that has finished idle until it begins to work.
    hasWorked = status === 'running' || (hasWorked && jsonText(event, 'source') !== 'user');
    const rests = status !== null && RESTING.has(status) && (hasWorked || status !== 'idle');
    if (rests && jsonText(event, 'id') === (await restingSince(client, id, path))) {
      if (status === 'error' || status === 'stuck') {
        throw new CommandError(`the agent ended with the status ${status}`);
      }
      return;
    }
  }
}

/** The status since which the agent rests: a stream begins with the past, and may not have a message yet that was taken. */
async function restingSince({ patient }: ServiceClient, ids: string, path: string): Promise<string | null> {
  const [conversation] = await patient.get(CONVERSATIONS, { searchParams: { ids } }).json<unknown[]>();
  const searchParams = { kind__eq: 'ConversationStateUpdateEvent', sort_order: 'TIMESTAMP_DESC', limit: 100 };
  const { items } = await patient.get(`${path}/search`, { searchParams }).json<{ items: unknown[] }>();
  const isWorking = jsonText(conversation, 'execution_status') === 'running';
  return jsonText(isWorking ? null : items.find((item) => executionStatus(item) !== null), 'id');
}

/** Lines of output or of a file that are shown of one event. */
const MAX_LINES = 40;
/** These repeat what the action has said. */
const SPOKEN = new Set(['FinishObservation', 'ThinkObservation']);

/** Made of the texts at paths of an event; a list there counts as the texts in it. */
type Lines = (text: (...path: string[]) => string) => string[];

const ACTIONS = new Map(
  Object.entries<Lines>({
    TerminalAction: (text) => [`$ ${text('action', 'command')}`],
    FileEditorAction: (text) => [
      `• ${text('action', 'command') || 'edit'} ${text('action', 'path')}`,
      ...marked('-', text('action', 'old_str')),
      ...marked('+', text('action', 'new_str') || text('action', 'file_text')),
    ],
    FinishAction: (text) => titled('agent', text('action', 'message')),
    ThinkAction: (text) => titled('thinks', text('action', 'thought')),
  }),
);

const EVENTS = new Map(
  Object.entries<Lines>({
    MessageEvent: (text) =>
      titled(text('source') === 'user' ? 'you' : 'agent', text('llm_message', 'content')),
    ActionEvent: (text) => [
      ...titled('agent', text('thought')),
      ...(ACTIONS.get(text('action', 'kind'))?.(text) ?? [
        `• ${text('tool_name') || 'tool'} ${text('tool_call', 'arguments')}`,
      ]),
    ],
    ObservationEvent: (text) =>
      SPOKEN.has(text('observation', 'kind')) ? [] : marked(' ', text('observation', 'content').trimEnd()),
    ACPToolCallEvent: (text) => [`• ${text('title') || 'tool'} (${text('status') || 'pending'})`],
    AgentErrorEvent: (text) => titled('error', text('error')),
    ConversationErrorEvent: (text) => titled('error', text('detail') || text('code')),
    UserRejectObservation: (text) => titled('rejected', text('rejection_reason')),
    ConversationStateUpdateEvent: (text) =>
      text('key') === 'execution_status'
        ? [`— ${text('value')}`]
        : titled(
            'network',
            text('value', 'host') && `refused ${text('value', 'host')} (${text('value', 'reason')})`,
          ),
  }),
);

/** What a person wants to read of an event; nothing for events that say nothing new. */
export function eventLines(event: unknown): string[] {
  const text = (...path: string[]): string => {
    const parts = jsonList(event, ...path).map((part) => jsonText(part, 'text') ?? '');
    return jsonText(event, ...path) ?? parts.join('\n');
  };
  const lines = EVENTS.get(text('kind'))?.(text) ?? [];
  // Users and models choose texts that a terminal shows here.
  return lines.map((line) => line.replaceAll(/[^\P{Cc}\n\t]/gu, '\u{fffd}'));
}

export function executionStatus(event: unknown): string | null {
  return jsonText(event, 'key') === 'execution_status' ? jsonText(event, 'value') : null;
}

function titled(who: string, text: string): string[] {
  return text.trim() === '' ? [] : [`${who}: ${text.trim()}`];
}

function marked(mark: string, text: string): string[] {
  const lines = text === '' ? [] : text.split('\n');
  const shown = lines.slice(0, MAX_LINES).map((line) => `  ${mark} ${line}`);
  return lines.length > MAX_LINES ? [...shown, `    … ${lines.length - MAX_LINES} more lines`] : shown;
}
