import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { parseList } from 'structured-headers';
import { type CommandOutput, plainText, textTable } from './command-output.js';
import { eventLines, executionStatus } from './event-lines.js';
import { CommandError, EXIT, type ServiceAnswer, type ServiceClient } from './service-client.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const START_POLL_MS = 250;
const STREAM_RETRY_MS = 1000;
/** After these the agent does nothing until a user says or allows something. */
const RESTING = new Set(['finished', 'idle', 'paused', 'waiting_for_confirmation', 'error', 'stuck']);
const FAILED = new Set(['error', 'stuck']);

export interface TaskFilter {
  providers?: string;
  types?: string;
  limit?: string;
}

/** `github:owner/name#12`: what `slipway run` takes. */
export function taskName(task: unknown): string {
  const number = jsonNumber(task, 'issue_number') ?? 0;
  return `${jsonText(task, 'git_provider')}:${jsonText(task, 'repo')}${number === 0 ? '' : `#${number}`}`;
}

/** Prints the user's suggested tasks, and a line for each git host that failed. */
export async function listTasks(
  client: ServiceClient,
  filter: TaskFilter,
  json: boolean,
  output: CommandOutput,
): Promise<void> {
  const { body, headers } = await findTasks(client, filter);
  if (json) {
    output.result(JSON.stringify(body));
  } else {
    const rows = jsonList(body).map((task) => [
      taskName(task),
      jsonText(task, 'task_type') ?? '',
      jsonText(task, 'title') ?? '',
    ]);
    textTable([['TASK', 'KIND', 'TITLE'], ...rows]).forEach((line) => output.result(line));
  }
  failedProviders(headers.get('x-provider-status')).forEach((line) => output.note(line));
}

async function findTasks(
  client: ServiceClient,
  { providers, types, limit }: TaskFilter,
): Promise<ServiceAnswer> {
  return await client.request('/api/user/suggested-tasks', {
    query: { providers, task_types: types, limit },
  });
}

/** From `X-Provider-Status` (RFC 9651 section 3.1). */
function failedProviders(header: string | null): string[] {
  return parseList(header ?? '').flatMap(([provider, parameters]) => {
    const parameter = (name: string): string[] =>
      parameters.has(name) ? [String(parameters.get(name))] : [];
    const [status = ''] = parameter('status');
    if (status !== 'error' && status !== 'stale') {
      return [];
    }
    const wait = parameter('retry_after').map((seconds) => `try again in ${seconds} s`);
    return [
      `${String(provider)}: ${[status, ...parameter('code'), ...parameter('detail'), ...wait].join(', ')}`,
    ];
  });
}

/**
 * Starts a conversation about a suggested task, or in a repository with a message, and follows it until the agent rests.
 *
 * @throws CommandError when the start or the agent fails, or there is no such task
 */
export async function runConversation(
  client: ServiceClient,
  subject: string,
  message: string | undefined,
  json: boolean,
  output: CommandOutput,
): Promise<void> {
  const body =
    message === undefined
      ? { suggested_task: await requireTask(client, subject) }
      : { ...repositoryOf(subject), initial_message: { content: [{ type: 'text', text: message }] } };
  const started = (await client.request(CONVERSATIONS, { method: 'POST', body })).body;
  const id = await awaitReady(client, jsonText(started, 'id') ?? '', output);
  output.note(`conversation ${id}`);
  await watchConversation(client, id, json, output);
}

async function requireTask(client: ServiceClient, name: string): Promise<unknown> {
  const { body } = await findTasks(client, {});
  const found = jsonList(body).filter(
    (task) => taskName(task) === name || taskName(task).endsWith(`:${name}`),
  );
  if (found.length !== 1) {
    throw new CommandError(
      found.length === 0
        ? `there is no suggested task ${name}: slipway tasks lists them; for other work add a message`
        : `several git hosts have ${name}: put the host before it, as in ${taskName(found[0])}`,
      EXIT.usage,
    );
  }
  return found[0];
}

function repositoryOf(subject: string): { selected_repository: string; git_provider?: string } {
  const [, provider, repository = subject] = /^(\w+):(.+)$/.exec(subject) ?? [];
  return { selected_repository: repository, ...(provider !== undefined && { git_provider: provider }) };
}

async function awaitReady(client: ServiceClient, taskId: string, output: CommandOutput): Promise<string> {
  for (let last = ''; ; await delay(START_POLL_MS)) {
    const { body } = await client.outlasting(
      async () => await client.request(`${CONVERSATIONS}/start-tasks`, { query: { ids: taskId } }),
    );
    const [task] = jsonList(body);
    const status = jsonText(task, 'status') ?? 'ERROR';
    const detail = jsonText(task, 'detail');
    if (status === 'ERROR') {
      throw new CommandError(detail ?? 'the start failed');
    }
    const line = [status, detail].filter((part) => part !== null).join('  ');
    if (line !== last) {
      output.note(line);
      last = line;
    }
    const id = jsonText(task, 'app_conversation_id');
    if (status === 'READY' && id !== null) {
      return id;
    }
  }
}

/**
 * Prints events as they happen until the agent rests; a stream that breaks is continued where it broke.
 *
 * @throws CommandError when the agent ended with an error, or the service stays away
 */
export async function watchConversation(
  client: ServiceClient,
  id: string,
  json: boolean,
  output: CommandOutput,
): Promise<void> {
  let lastEventId: string | null = null;
  let hasWorked = false;
  for (;;) {
    for await (const frame of client.events(`/api/v1/conversation/${id}/events/stream`, lastEventId)) {
      const event = parseJson(frame.data);
      lastEventId = frame.id ?? lastEventId;
      for (const line of json ? [frame.data] : eventLines(event)) {
        output.result(json ? line : plainText(line));
      }
      const status = executionStatus(event);
      hasWorked ||= status === 'running';
      const rests = status !== null && RESTING.has(status) && (hasWorked || status !== 'idle');
      if (rests && (await isLatestStatus(client, id, event))) {
        return requireSuccess(status);
      }
    }
    await delay(STREAM_RETRY_MS);
  }
}

/** A stream begins with the past, in which the agent may have rested before. */
async function isLatestStatus(client: ServiceClient, id: string, event: unknown): Promise<boolean> {
  const query = {
    kind__eq: 'ConversationStateUpdateEvent',
    timestamp__gte: jsonText(event, 'timestamp'),
    limit: 100,
  };
  const { body } = await client.outlasting(
    async () => await client.request(`/api/v1/conversation/${id}/events/search`, { query }),
  );
  const statuses = jsonList(body, 'items').filter((item) => executionStatus(item) !== null);
  return jsonText(statuses.at(-1), 'id') === jsonText(event, 'id');
}

function requireSuccess(status: string): void {
  if (FAILED.has(status)) {
    throw new CommandError(`the agent ended with the status ${status}`);
  }
}

export interface NewPullRequest {
  title?: string;
  body?: string;
  draft?: boolean;
  sourceBranch?: string;
  targetBranch?: string;
}

/** Pushes the branch of a conversation, and opens its pull request or finds the one that is open. */
export async function openPullRequest(
  client: ServiceClient,
  id: string,
  { sourceBranch, targetBranch, ...options }: NewPullRequest,
  json: boolean,
  output: CommandOutput,
): Promise<void> {
  const { body } = await client.request(`${CONVERSATIONS}/${encodeURIComponent(id)}/pull-request`, {
    method: 'POST',
    body: { ...options, source_branch: sourceBranch, target_branch: targetBranch },
  });
  output.result(json ? JSON.stringify(body) : (jsonText(body, 'url') ?? JSON.stringify(body)));
}
