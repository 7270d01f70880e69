import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pRetry, { AbortError } from 'p-retry';
import { z } from 'zod';
import { branchSchema } from '@slipway/agent-protocol/git.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { clipText } from '../clipped-text.js';
import { namedPause } from '../engine/native/refusal-words.js';
import { WorkspaceFileError, WorkspaceFiles } from '../files/workspace-files.js';
import type { PushElsewhere, RemoteAccess } from '../git/remote-access.js';
import type { GitOutcome } from '../git/run-git.js';
import { type ToolView, withHome } from '../tool-view.js';
import { mcpSchemaTool, required, type Tool, ToolInputError } from './tool.js';

const remoteSchema = z.object({
  operation: z.enum(['fetch', 'push', 'clone']),
  branch: branchSchema.optional().describe('For `push`: the local branch with your commits.'),
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('For `clone`: http(s) address of the repository.'),
  folder: z.string().min(1).optional().describe('For `clone`: a new folder of the workspace.'),
});

export function gitRemoteTool(access: RemoteAccess, view: ToolView, currentDir: () => string): Tool {
  return mcpSchemaTool({
    name: 'git_remote',
    description:
      'Fetch, push or clone with the credentials of the user, which git in your shell does not have. `fetch` brings the ' +
      'remote branches of origin (and upstream) up to date, `push` sends one of your branches to origin under the same name, `clone` ' +
      'gets another repository. Merging, committing and all else is done in the shell.',
    needsConfirmation: true,
    schema: remoteSchema,
    run: async (input, { workingDir, signal }) => {
      const { ok, timedOut, output } = await execute();
      const outcome = ok ? 'succeeded' : timedOut ? 'timed out' : 'failed';
      return { text: `${output}\ngit ${input.operation} ${outcome}.`.trim(), isError: !ok };

      async function execute(): Promise<GitOutcome> {
        switch (input.operation) {
          case 'fetch':
            return await access.fetch(currentDir(), signal);
          case 'push':
            return await access.push(currentDir(), required(input.branch, 'branch'), signal);
          default: {
            const url = required(input.url, 'url');
            const given = path.resolve(workingDir, withHome(view, required(input.folder, 'folder')));
            const files = new WorkspaceFiles(view, [workingDir]);
            const folder = await files.resolve(given).catch((error: unknown) => {
              throw error instanceof WorkspaceFileError ? new ToolInputError(`${error.message}.`) : error;
            });
            return await access.clone(url, folder, signal);
          }
        }
      }
    },
  });
}

const pullRequestSchema = z.object({
  source_branch: branchSchema.describe('The local branch with your commits; it is pushed.'),
  target_branch: branchSchema.optional().describe('The branch to merge into; by default the main branch.'),
  title: z.string().min(1).max(256),
  body: z.string().describe('What changed and why, in Markdown.'),
  draft: z.boolean().optional(),
});

const responseSchema = z.object({ number: z.number().int(), url: z.string() });

const pushedSchema = z.object({ output: z.string() });

/** Uses the service that holds the user's token. Errors have a reason that the model may read. */
type OpenPullRequest = (
  request: z.output<typeof pullRequestSchema>,
  signal: AbortSignal,
) => Promise<z.output<typeof responseSchema>>;

export interface PullRequestOptions {
  /** Whether the tool is offered. */
  mayPush: () => boolean;
  open: OpenPullRequest;
  push: (folder: string, branch: string, signal: AbortSignal) => Promise<GitOutcome>;
}

export function createPullRequestTool(
  { open, push }: Pick<PullRequestOptions, 'open' | 'push'>,
  currentDir: () => string,
): Tool {
  return mcpSchemaTool({
    name: 'create_pull_request',
    description:
      'Push a branch of the repository and open a pull request (merge request) for it. Commit your work to the branch ' +
      'first. Where the user may not push, a fork of theirs is made and pushed to. Answers number and address.',
    needsConfirmation: true,
    schema: pullRequestSchema,
    run: async (input, { signal }) => {
      const { ok, timedOut, output } = await push(currentDir(), input.source_branch, signal);
      if (!ok) {
        return { text: `git push failed${timedOut ? ' (timed out)' : ''}:\n${output}`, isError: true };
      }
      try {
        const { number, url } = await open(input, signal);
        return { text: `Opened pull request ${number}: ${url}\n${output}`.trim(), isError: false };
      } catch (error) {
        const reason = errorWithCauses(error);
        const text = `The branch is pushed, but the pull request could not be opened: ${reason}`;
        return { text, isError: true };
      }
    },
  });
}

/** Long enough for the next minute of a rate limit, and for a service that starts again. */
const CALLBACK_TIMEOUT_MS = 120_000;
/** A fork is made before, and waited for. */
const PUSH_TIMEOUT_MS = 260_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const MAX_REASON = 500;

interface PullRequestCallback {
  url: string;
  sessionKey: string;
  conversationId: string;
}

/** Has the service open the pull request, because it holds the user's token and we do not. */
export function postPullRequest(callback: PullRequestCallback): OpenPullRequest {
  return async (request, signal) =>
    await post(callback, '', request, responseSchema, [signal, CALLBACK_TIMEOUT_MS]);
}

/** Has the service push the branch from here to where its user may push, which may be a fork that it makes. */
export function postPush(callback: PullRequestCallback): PushElsewhere {
  return async (directory, branch, signal) => {
    const request = { branch, directory };
    const { output } = await post(callback, '/push', request, pushedSchema, [signal, PUSH_TIMEOUT_MS]);
    return { ok: true, timedOut: false, output };
  };
}

/**
 * The same work of a branch may be asked for twice. So a service that is away or asks to wait is asked again: the requests of a
 * user's console and sandboxes count together, and a busy minute must not cost an agent its pull request.
 */
async function post<T>(
  callback: PullRequestCallback,
  resource: string,
  request: object,
  schema: z.ZodType<T>,
  [given, timeoutMs]: [AbortSignal, number],
): Promise<T> {
  const signal = AbortSignal.any([given, AbortSignal.timeout(timeoutMs)]);
  return await pRetry(async () => await postOnce(callback, resource, request, schema, signal), {
    retries: Infinity,
    minTimeout: FIRST_PAUSE_MS,
    maxTimeout: LONGEST_PAUSE_MS,
    signal,
    onFailedAttempt: async ({ error }) => {
      if (error instanceof BusyServiceError) {
        await delay(error.pauseMs, undefined, { signal });
      }
    },
  });
}

class BusyServiceError extends Error {
  constructor(
    message: string,
    readonly pauseMs: number,
  ) {
    super(message);
  }
}

/** @throws BusyServiceError where it asks to wait, AbortError for any other refusal, TypeError where it cannot be reached */
async function postOnce<T>(
  { url, sessionKey, conversationId }: PullRequestCallback,
  resource: string,
  request: object,
  schema: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const response = await fetch(`${url}${resource}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-session-api-key': sessionKey },
    body: JSON.stringify({ conversation_id: conversationId, ...request }),
    redirect: 'error',
    signal,
  });
  const { status, headers } = response;
  const body = parseJson(await response.text());
  const answer = schema.safeParse(body);
  if (response.ok && answer.success) {
    return answer.data;
  }
  const reason = jsonText(body, 'detail') ?? 'no reason given';
  const message = `the service responded ${status}: ${clipText(reason, MAX_REASON)}`;
  throw status === 429 || status === 503
    ? new BusyServiceError(
        message,
        namedPause({ 'retry-after': headers.get('retry-after') ?? undefined }, '', Date.now()),
      )
    : new AbortError(message);
}
