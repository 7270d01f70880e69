import { GIT_MODES } from '@slipway/agent-protocol/git.js';
import { z } from 'zod';
import { PROVIDER_TYPES } from '@slipway/git-providers/git-provider.js';
import { TASK_TYPES } from '../suggested-tasks/collect-candidates.js';
import { FORK_POLICIES } from '../v1/app-conversations/work-places/work-place.js';

/** Answered before a client (60 s, by default of the SDK) or a proxy in between gives up. */
const USUAL_WAIT_SECONDS = 45;
const LONGEST_WAIT_SECONDS = 60;

const id = z.string().max(100).describe('What start_conversation answered.');
const message = z.string().min(1);
const provider = z.enum(PROVIDER_TYPES);
const taskType = z.enum(TASK_TYPES);
// What calls take is strict, as models misspell arguments: a start would go on without its repository.
export const conversation = z.strictObject({ conversation_id: id });
export const progress = z.object({
  conversation_id: z.string(),
  status: z
    .string()
    .describe(
      'starting, start_failed, idle, running, paused, waiting_for_confirmation, finished, error or stuck.',
    ),
  is_working: z.boolean().describe('Whether the agent works, or is about to.'),
  detail: z.string().nullable().describe('What a start waits for, or why the work ended.'),
});
export type Progress = z.output<typeof progress>;

export const selection = z.strictObject({
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
export const tasks = z.object({
  tasks: z.array(task),
  providers: z.array(z.object({ provider, status: z.string().describe('ok, partial, stale or error.') })),
});
export const start = z.strictObject({
  message: message.describe('What the agent shall do; it knows nothing else.'),
  repository: z.string().nullish().describe('Full name of the repository to work in, such as octo/app.'),
  provider: provider.nullish().describe('Where the repository is.'),
  branch: z.string().nullish().describe('Branch to check out; by default a new one.'),
  git: z
    .enum(GIT_MODES)
    .nullish()
    .describe(
      'What the agent may do with the repository: write (by default), read, or none after the clone.',
    ),
  fork: z
    .enum(FORK_POLICIES)
    .nullish()
    .describe(
      "Whether a fork of the user's is made where they may not push; by default as in their settings.",
    ),
});
export const wait = z.strictObject({
  conversation_id: id,
  seconds: z.number().min(0).max(LONGEST_WAIT_SECONDS).default(USUAL_WAIT_SECONDS).describe('At most.'),
});
export const outcome = progress.extend({
  title: z.string().nullable(),
  answer: z.string().nullable().describe('What the agent said last.'),
  result: z.unknown().describe('Null unless the conversation was started with a result_schema.'),
  cost: z.number().nullable().describe('USD.'),
  repository: z.string().nullable(),
  branch: z.string().nullable(),
  pull_requests: z.array(z.object({ number: z.number(), url: z.string(), title: z.string() })),
});
export type Outcome = z.output<typeof outcome>;

export const changes = z.object({
  conversation_id: z.string(),
  changes: z.array(z.object({ status: z.string(), path: z.string() })).describe('At most 1,000.'),
  count: z.number().describe('How many there are in all.'),
});
export const said = z.strictObject({ conversation_id: id, message });
export const pullRequest = z.strictObject({
  conversation_id: id,
  title: z.string().nullish().describe("By default the conversation's title."),
  body: z.string().nullish().describe('What changed and why, in Markdown.'),
  draft: z.boolean().optional(),
});
export const opened = z.object({ conversation_id: z.string(), number: z.number(), url: z.string() });
