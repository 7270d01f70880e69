import type { McpServer, ToolCallback } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { TASK_TYPES } from '../suggested-tasks/candidate.js';
import type { ToolCaller, ToolServerService } from './tool-server.service.js';

const READS = { readOnlyHint: true, openWorldHint: false };
const WORKS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };
const STOPS = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

/** Answered before a client (60 s, by default of the SDK) or a proxy in between gives up. */
const USUAL_WAIT_SECONDS = 45;
const LONGEST_WAIT_SECONDS = 60;

const id = z.string().max(100).describe('What start_conversation answered.');
const message = z.string().min(1);
const provider = z.enum(PROVIDER_TYPES);
const taskType = z.enum(TASK_TYPES);
const conversation = z.object({ conversation_id: id });
const progress = z.object({
  conversation_id: z.string(),
  status: z
    .string()
    .describe(
      'starting, start_failed, idle, running, paused, waiting_for_confirmation, finished, error or stuck.',
    ),
  is_working: z.boolean().describe('Whether the agent works, or is about to.'),
  detail: z.string().nullable().describe('What a start waits for, or why the work ended.'),
});
const selection = z.object({
  task_types: z.array(taskType).nullish(),
  providers: z.array(provider).nullish(),
  limit: z.int().min(1).max(200).nullish(),
});
const task = z.object({
  git_provider: provider,
  task_type: taskType,
  repo: z.string(),
  issue_number: z.number(),
  title: z.string(),
});
const tasks = z.object({
  tasks: z.array(task),
  providers: z.array(z.object({ provider, status: z.string().describe('ok, partial, stale or error.') })),
});
const start = z.object({
  message: message.describe('What the agent shall do; it knows nothing else.'),
  repository: z.string().nullish().describe('Full name of the repository to work in, such as octo/app.'),
  provider: provider.nullish().describe('Where the repository is.'),
  branch: z.string().nullish().describe('Branch to check out; by default a new one.'),
});
const wait = z.object({
  conversation_id: id,
  seconds: z.number().min(0).max(LONGEST_WAIT_SECONDS).default(USUAL_WAIT_SECONDS).describe('At most.'),
});
const outcome = progress.extend({
  title: z.string().nullable(),
  answer: z.string().nullable().describe('What the agent said last.'),
  result: z.unknown().describe('Null unless the conversation was started with a result_schema.'),
  cost: z.number().nullable().describe('USD.'),
  repository: z.string().nullable(),
  branch: z.string().nullable(),
  pull_requests: z.array(z.object({ number: z.number(), url: z.string(), title: z.string() })),
});
const changes = z.object({
  conversation_id: z.string(),
  changes: z.array(z.object({ status: z.string(), path: z.string() })).describe('At most 1,000.'),
  count: z.number().describe('How many there are in all.'),
});
const pullRequest = z.object({
  conversation_id: id,
  title: z.string().nullish().describe("By default the conversation's title."),
  body: z.string().nullish().describe('What changed and why, in Markdown.'),
  draft: z.boolean().optional(),
});
const opened = z.object({ conversation_id: z.string(), number: z.number(), url: z.string() });

interface Tools {
  calls: ToolServerService;
  /** @param signal ends with the request */
  caller: (signal: AbortSignal) => ToolCaller;
  /** Makes a result of what a call returns or throws. */
  answer: (work: Promise<object>) => Promise<CallToolResult>;
}

export function registerTools(server: McpServer, { calls, caller, answer }: Tools): void {
  const add = <I extends z.ZodObject>(
    name: string,
    [inputSchema, outputSchema]: [I, z.ZodObject],
    annotations: ToolAnnotations,
    description: string,
    call: (by: ToolCaller, input: z.output<I>) => Promise<object>,
  ): void => {
    const config = { title: annotations.title ?? name, description, inputSchema, outputSchema, annotations };
    const callback = (input: z.output<I>, { signal }: { signal: AbortSignal }): Promise<CallToolResult> =>
      answer(call(caller(signal), input));
    server.registerTool(name, config, callback as ToolCallback<I>);
  };
  add(
    'suggested_tasks',
    [selection, tasks],
    { title: 'Suggested tasks', ...READS, openWorldHint: true },
    "Open work in the user's repositories, the most pressing first: merge conflicts, failing checks, unresolved review comments, assigned issues.",
    (by, { task_types: types, providers, limit }) =>
      calls.suggestedTasks(by, {
        ...(types && { taskTypes: types }),
        ...(providers && { providers }),
        ...(typeof limit === 'number' && { limit }),
      }),
  );
  add(
    'start_conversation',
    [start, progress],
    { title: 'Start a conversation', ...WORKS },
    'Hands a task to an agent that works in a sandbox, and answers at once: call wait_for_conversation next. An agent that calls it shares its own sandbox and files with the new one.',
    (by, { message: text, repository, provider: host, branch }) =>
      calls.start(by, {
        message: text,
        selected_repository: repository || null,
        selected_branch: branch || null,
        git_provider: host ?? null,
      }),
  );
  add(
    'wait_for_conversation',
    [wait, progress],
    { title: 'Wait for a conversation', ...READS },
    'Waits until the agent stops working. Call it again while is_working is true.',
    (by, { conversation_id: of, seconds }) => calls.wait(by, of, seconds),
  );
  add(
    'send_message',
    [z.object({ conversation_id: id, message }), progress],
    { title: 'Send a message', ...WORKS },
    'Says something to the agent, which takes it up at once, or with its next step.',
    (by, { conversation_id: to, message: text }) => calls.send(by, to, text),
  );
  add(
    'get_result',
    [conversation, outcome],
    { title: 'Result of a conversation', ...READS },
    'What came of a conversation so far: the last words of the agent, its cost, branch and pull requests.',
    (by, { conversation_id: of }) => calls.progress.outcome(by, of),
  );
  add(
    'get_changes',
    [conversation, changes],
    { title: 'Changes of a conversation', ...READS },
    'The files that the agent has added, updated, moved or deleted. Resumes a paused sandbox.',
    (by, { conversation_id: of }) => calls.changes(by, of),
  );
  add(
    'open_pull_request',
    [pullRequest, opened],
    { title: 'Open a pull request', ...WORKS },
    "Pushes the agent's commits and opens a pull request for them; one that is open already is answered as it is.",
    (by, { conversation_id: of, ...members }) => calls.openPullRequest(by, of, members),
  );
  add(
    'stop_conversation',
    [conversation, progress],
    { title: 'Stop a conversation', ...STOPS },
    'Stops the agent after its current step. A later message lets it go on.',
    (by, { conversation_id: of }) => calls.stop(by, of),
  );
}
