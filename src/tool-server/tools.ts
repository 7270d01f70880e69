import type { McpServer, ToolCallback } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { jsonText } from '@slipway/common/json-access.js';
import type { z } from 'zod';
import type { ToolServerService } from './tool-server.service.js';
import type { ToolCaller } from './conversation-progress.js';
import * as schemas from './tools.schema.js';

const READS = { readOnlyHint: true, openWorldHint: false };
const WORKS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true };
const STOPS = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };

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
    const callback = (input: z.output<I>, { signal }: { signal: AbortSignal }): Promise<CallToolResult> => {
      const by = caller(signal);
      const reached = calls.requireReach(by, jsonText(input, 'conversation_id'));
      return answer(reached.then(() => call(by, input)));
    };
    server.registerTool(name, config, callback as ToolCallback<I>);
  };
  add(
    'suggested_tasks',
    [schemas.selection, schemas.tasks],
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
    [schemas.start, schemas.progress],
    { title: 'Start a conversation', ...WORKS },
    'Hands a task to an agent that works in a sandbox, and answers at once: call wait_for_conversation next. An agent that calls it shares its own sandbox and files with the new one, which may at most what it may itself.',
    (by, { message: text, repository, provider: host, branch, git, fork }) =>
      calls.start(by, {
        message: text,
        selected_repository: repository || null,
        selected_branch: branch || null,
        git_provider: host ?? null,
        ...(git && { git }),
        ...(fork && { fork }),
      }),
  );
  add(
    'wait_for_conversation',
    [schemas.wait, schemas.progress],
    { title: 'Wait for a conversation', ...READS },
    'Waits until the agent stops working. Call it again while is_working is true.',
    (by, { conversation_id: of, seconds }) => calls.wait(by, of, seconds),
  );
  add(
    'send_message',
    [schemas.said, schemas.progress],
    { title: 'Send a message', ...WORKS },
    'Says something to the agent, which takes it up at once, or with its next step. Agents can say something only to those that they have started.',
    (by, { conversation_id: to, message: text }) => calls.send(by, to, text),
  );
  add(
    'get_result',
    [schemas.conversation, schemas.outcome],
    { title: 'Result of a conversation', ...READS },
    'What came of a conversation so far: the last words of the agent, its cost, branch and pull requests.',
    (by, { conversation_id: of }) => calls.progress.outcome(by, of),
  );
  add(
    'get_changes',
    [schemas.conversation, schemas.changes],
    { title: 'Changes of a conversation', ...READS },
    'The files that the agent has added, updated, moved or deleted. Starts a sandbox that is paused or has failed.',
    (by, { conversation_id: of }) => calls.changes(by, of),
  );
  add(
    'open_pull_request',
    [schemas.pullRequest, schemas.opened],
    { title: 'Open a pull request', ...WORKS },
    "Pushes the agent's commits and opens a pull request for them, from a fork of the user's where they may not push; one that is open already is answered as it is.",
    (by, { conversation_id: of, ...members }) => calls.openPullRequest(by, of, members),
  );
  add(
    'stop_conversation',
    [schemas.conversation, schemas.progress],
    { title: 'Stop a conversation', ...STOPS },
    'Stops the agent after its current step. A later message lets it go on.',
    (by, { conversation_id: of }) => calls.stop(by, of),
  );
}
