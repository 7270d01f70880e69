import { z } from 'zod';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { branchSchema } from '@slipway/agent-protocol/git.js';
import { clipText } from '../clipped-text.js';
import type { GitOutcome } from '../git/run-git.js';
import { mcpSchemaTool, type Tool } from './tool.js';

const schema = z.object({
  source_branch: branchSchema.describe('The local branch with your commits; it is pushed.'),
  target_branch: branchSchema.optional().describe('The branch to merge into; by default the main branch.'),
  title: z.string().min(1).max(256),
  body: z.string().describe('What changed and why, in Markdown.'),
  draft: z.boolean().optional(),
});

const responseSchema = z.object({ number: z.number().int(), url: z.string() });

/** Uses the service that holds the user's token. Errors have a reason that the model may read. */
type OpenPullRequest = (
  request: z.output<typeof schema>,
  signal: AbortSignal,
) => Promise<z.output<typeof responseSchema>>;

export interface PullRequestOptions {
  open: OpenPullRequest;
  push: (folder: string, branch: string, signal: AbortSignal) => Promise<GitOutcome>;
}

export function createPullRequestTool({ open, push }: PullRequestOptions, currentDir: () => string): Tool {
  return mcpSchemaTool({
    name: 'create_pull_request',
    description:
      'Push a branch of the repository and open a pull request (merge request) for it. Commit your work to the branch ' +
      'first. Answers number and address.',
    needsConfirmation: true,
    schema,
    run: async (input, { signal }) => {
      const { ok, timedOut, output } = await push(currentDir(), input.source_branch, signal);
      if (!ok) {
        return { text: `git push failed${timedOut ? ' (timed out)' : ''}:\n${output}`, isError: true };
      }
      try {
        const { number, url } = await open(input, signal);
        return { text: `Opened pull request ${number}: ${url}`, isError: false };
      } catch (error) {
        const reason = errorWithCauses(error);
        const text = `The branch is pushed, but the pull request could not be opened: ${reason}`;
        return { text, isError: true };
      }
    },
  });
}

const CALLBACK_TIMEOUT_MS = 60_000;
const MAX_REASON = 500;

interface PullRequestCallback {
  url: string;
  sessionKey: string;
  conversationId: string;
}

/** Has the service open the pull request, because it holds the user's token and we do not. */
export function postPullRequest({ url, sessionKey, conversationId }: PullRequestCallback): OpenPullRequest {
  return async (request, signal) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session-api-key': sessionKey },
      body: JSON.stringify({ conversation_id: conversationId, ...request }),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALLBACK_TIMEOUT_MS)]),
    });
    const body = parseJson(await response.text());
    const opened = responseSchema.safeParse(body);
    if (!response.ok || !opened.success) {
      const reason = jsonText(body, 'detail') ?? 'no reason given';
      throw new Error(`the service responded ${response.status}: ${clipText(reason, MAX_REASON)}`);
    }
    return opened.data;
  };
}
