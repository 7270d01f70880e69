import { setTimeout as delay } from 'node:timers/promises';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { parseList } from 'structured-headers';
import type { SuggestedTaskDto } from '../suggested-tasks/suggested-tasks.dto.js';
import type { StartTaskDto } from '../v1/app-conversations/api/dto/start-task.dto.js';
import type {
  OpenConversationPullRequestDto,
  OpenedPullRequestDto,
} from '../v1/pull-requests/pull-request.dto.js';
import { CommandError, plainText, printRows, UsageError } from './command-output.js';
import { eventLines, executionStatus } from './event-lines.js';
import type { Invocation, Query, ServiceClient } from './service-client.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const START_TASKS = '/api/v1/app-conversations/start-tasks';
const TASKS = '/api/user/suggested-tasks';
const START_POLL_MS = 250;
/** After these the agent does nothing until a user says or allows something. */
const RESTING = new Set(['finished', 'idle', 'paused', 'waiting_for_confirmation', 'error', 'stuck']);
const FAILED = new Set(['error', 'stuck']);

/** `github:owner/name#12`: what `slipway run` takes. */
function taskName({ git_provider, repo, issue_number }: SuggestedTaskDto): string {
  return `${git_provider}:${repo}${issue_number === 0 ? '' : `#${issue_number}`}`;
}

/** Prints the user's suggested tasks, and a line for each git host that failed. */
export async function listTasks(invocation: Invocation, filter: Query): Promise<void> {
  const response = await invocation.client.http.get(TASKS, { searchParams: filter });
  const tasks = await response.json<SuggestedTaskDto[]>();
  printRows(invocation, tasks, { TASK: taskName, KIND: 'task_type', TITLE: 'title' });
  failedProviders(response.headers.get('x-provider-status')).forEach((line) => invocation.output.note(line));
}

/** From `X-Provider-Status` (RFC 9651 section 3.1). */
function failedProviders(header: string | null): string[] {
  return parseList(header ?? '').flatMap(([provider, parameters]) => {
    const { status, code, detail, retry_after: wait } = Object.fromEntries(parameters);
    const reasons = [status, code, detail, wait && `try again in ${String(wait)} s`].filter(Boolean);
    return ['error', 'stale'].includes(String(status)) ? [`${String(provider)}: ${reasons.join(', ')}`] : [];
  });
}

/**
 * Starts a conversation about a suggested task, or in a repository with a message, and follows it until the agent rests.
 *
 * @throws CommandError when the start or the agent fails, or there is no such task
 */
export async function runConversation(
  invocation: Invocation,
  subject: string,
  message?: string,
): Promise<void> {
  const [, git_provider, selected_repository = subject] = /^(\w+):(.+)$/.exec(subject) ?? [];
  const content = [{ type: 'text', text: message }];
  const body =
    message === undefined
      ? { suggested_task: await requireTask(invocation.client, subject) }
      : { selected_repository, git_provider, initial_message: { content } };
  const started = await invocation.client.http.post(CONVERSATIONS, { json: body }).json<StartTaskDto>();
  const id = await awaitReady(invocation, started.id);
  invocation.output.note(`conversation ${id}`);
  await watchConversation(invocation, id);
}

async function requireTask(client: ServiceClient, name: string): Promise<SuggestedTaskDto> {
  const tasks = await client.http.get(TASKS).json<SuggestedTaskDto[]>();
  const [task, another] = tasks.filter((each) => `:${taskName(each)}`.endsWith(`:${name}`));
  if (task && !another) {
    return task;
  }
  throw new UsageError(
    task
      ? `several git hosts have ${name}: put the host before it, as in ${taskName(task)}`
      : `there is no suggested task ${name}: slipway tasks lists them; for other work add a message`,
  );
}

async function awaitReady({ client, output }: Invocation, taskId: string): Promise<string> {
  for (let last = ''; ; await delay(START_POLL_MS)) {
    const [task] = await client.patient
      .get(START_TASKS, { searchParams: { ids: taskId } })
      .json<(StartTaskDto | null)[]>();
    if (!task || task.status === 'ERROR') {
      throw new CommandError(task?.detail ?? 'the start failed');
    }
    const line = [task.status, task.detail].filter(Boolean).join('  ');
    if (line !== last) {
      output.note(line);
      last = line;
    }
    if (task.status === 'READY' && task.app_conversation_id !== null) {
      return task.app_conversation_id;
    }
  }
}

/**
 * Prints events as they happen until the agent rests.
 *
 * @throws CommandError when the agent ended with an error, or the service stays away
 */
export async function watchConversation({ client, output, json }: Invocation, id: string): Promise<void> {
  let hasWorked = false;
  for await (const { data } of client.events(`/api/v1/conversation/${id}/events/stream`)) {
    const event = parseJson(data);
    const lines = json ? [data] : eventLines(event).map(plainText);
    lines.forEach((line) => output.result(line));
    const status = executionStatus(event);
    hasWorked ||= status === 'running';
    const rests = status !== null && RESTING.has(status) && (hasWorked || status !== 'idle');
    if (rests && (await isLatestStatus(client, id, event))) {
      if (FAILED.has(status)) {
        throw new CommandError(`the agent ended with the status ${status}`);
      }
      return;
    }
  }
}

/** A stream begins with the past, in which the agent may have rested before. */
async function isLatestStatus(client: ServiceClient, id: string, event: unknown): Promise<boolean> {
  const searchParams = {
    kind__eq: 'ConversationStateUpdateEvent',
    timestamp__gte: jsonText(event, 'timestamp') ?? undefined,
    limit: 100,
  };
  const { items } = await client.patient
    .get(`/api/v1/conversation/${id}/events/search`, { searchParams })
    .json<{ items: unknown[] }>();
  const latest = items.findLast((item) => executionStatus(item) !== null);
  return jsonText(latest, 'id') === jsonText(event, 'id');
}

/** Pushes the branch of a conversation, and opens its pull request or finds the one that is open. */
export async function openPullRequest(
  { client, output, json }: Invocation,
  id: string,
  body: OpenConversationPullRequestDto,
): Promise<void> {
  const path = `/api/v1/app-conversations/${encodeURIComponent(id)}/pull-request`;
  const opened = await client.http.post(path, { json: body }).json<OpenedPullRequestDto>();
  output.result(json ? JSON.stringify(opened) : opened.url);
}
