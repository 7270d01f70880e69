import { jsonAt, jsonList, jsonText } from '../src/common/json-access.js';
import { DEMO_ISSUE, DEMO_REPOSITORY } from './demo-repository.js';
import { eventLine, isAtRest } from './event-line.js';
import type { Demo } from './start-demo.js';
import type { Storyteller } from './storyteller.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const asJson = (body: unknown) => [JSON.stringify(body)];

/** An agent works on one of the tasks, in a sandbox that really runs, with a script in place of a model. */
export async function tellConversation(demo: Demo, teller: Storyteller): Promise<void> {
  teller.say(
    'An agent shall do one of these tasks. It needs a model (here a script behind an OpenAI-compatible API).',
  );
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

  teller.say(
    'The task as it came goes into a conversation. The start goes on in the background, also past a crash.',
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
    (body) => [text(body, 'status'), text(body, 'detail')].join('  ').trimEnd(),
    (body) => ['READY', 'ERROR'].includes(text(body, 'status')),
  );
  const id = text(ready, 'app_conversation_id');
  const sandbox = text(ready, 'sandbox_id');

  teller.say(
    'Everything that happens comes as server-sent events. The clone, the shell and the commit are real.',
  );
  const events = `/api/v1/conversation/${id}/events/stream`;
  const lastEventId = await teller.stream(events, eventLine, isAtRest);

  teller.say(
    'The agent server inside the sandbox is reached through the service, with the key of the sandbox.',
  );
  const [conversation] = jsonList(
    await teller.request({ method: 'GET', path: `${CONVERSATIONS}?ids=${id}` }, (body) => [
      `${text(body, 'title')}: ${text(body, 'execution_status')}, ${metrics(body)}`,
    ]),
  );
  const sandboxKey = jsonText(conversation, 'session_api_key') ?? '';
  teller.introduceSandboxKey(sandboxKey);
  const shown = await teller.request(
    {
      method: 'POST',
      path: `/api/v1/sandboxes/${sandbox}/agent-server/api/bash/execute_bash_command`,
      body: { command: 'git log -1 --format="%h %an: %s" && git diff HEAD~1 --stat', cwd: `storefront` },
      sandboxKey,
    },
    (body) => `${jsonText(body, 'stdout') ?? ''}${jsonText(body, 'stderr') ?? ''}`.trimEnd().split('\n'),
  );
  if (!jsonText(shown, 'stdout')?.includes('fix: try the address lookup twice')) {
    throw new Error('the agent has not committed what it said');
  }

  teller.say('Paused, a sandbox keeps its files and its log, and needs neither processor nor memory.');
  await teller.request({ method: 'POST', path: `/api/v1/sandboxes/${sandbox}/pause` }, asJson);
  await teller.request({ method: 'POST', path: `/api/v1/sandboxes/${sandbox}/resume` }, asJson);
  await teller.follow(
    `/api/v1/sandboxes?id=${sandbox}`,
    (body) => text(body, 'status'),
    (body) => text(body, 'status') === 'RUNNING',
  );

  teller.say('The conversation goes on where it was; the stream goes on after the last event that was seen.');
  await teller.request(
    {
      method: 'POST',
      path: `${CONVERSATIONS}/${id}/send-message`,
      body: { content: [{ type: 'text', text: 'What did you change, and under whose name?' }], run: true },
    },
    asJson,
  );
  await teller.stream(events, eventLine, isAtRest, lastEventId);

  teller.say('Deleted, the conversation takes its sandbox along.');
  await teller.request({ method: 'DELETE', path: `${CONVERSATIONS}/${id}` }, asJson);
}

/** A member of the first element of a list. */
function text(body: unknown, member: string): string {
  return jsonText(jsonList(body)[0], member) ?? '';
}

function metrics(body: unknown): string {
  const usage = jsonAt(jsonList(body)[0], 'metrics', 'accumulated_token_usage');
  const count = (member: string): string => `${Number(jsonAt(usage, member) ?? 0)}`;
  return `${count('prompt_tokens')} tokens in, ${count('completion_tokens')} out`;
}
