import { parseHexId } from '../../../common/identifiers.js';
import { toStartMessage } from '../api/dto/conversation-actions.dto.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import type { StartRequest } from '../start-task.entity.js';
import {
  type SuggestedTask,
  suggestedTaskPrompt,
  type TaskGitServer,
} from '../suggested-task/suggested-task-prompt.js';

/** The request of a client in the form that a start works with; `withSuggestedTask` adds its suggested task. */
export function toStartRequest(body: StartConversationDto): StartRequest {
  return {
    sandbox_id: body.sandbox_id ?? null,
    sandbox_spec_id: body.sandbox_spec_id ?? null,
    conversation_id: uuid(body.conversation_id),
    initial_message: body.initial_message ? toStartMessage(body.initial_message) : null,
    system_message_suffix: body.system_message_suffix ?? null,
    processors: body.processors?.map(({ kind }) => ({ kind })) ?? null,
    llm_model: blankAsNull(body.llm_model),
    agent_profile_id: body.agent_profile_id ?? null,
    selected_repository: body.selected_repository ?? null,
    selected_branch: body.selected_branch ?? null,
    git_provider: body.git_provider ?? null,
    suggested_task: null,
    title: blankAsNull(body.title),
    trigger: body.trigger ?? null,
    pr_number: body.pr_number ?? [],
    parent_conversation_id: uuid(body.parent_conversation_id),
    agent_type: body.agent_type ?? 'default',
    public: body.public ?? null,
    observability_metadata: body.observability_metadata ?? null,
    observability_tags: body.observability_tags ?? null,
    observability_span_name: body.observability_span_name ?? null,
    plugins:
      body.plugins?.map(({ source, ref = null, repo_path: path = null }) => ({
        source,
        ref,
        repo_path: path,
      })) ?? null,
    secrets: body.secrets ? Object.fromEntries(body.secrets) : null,
    tags: {},
  };
}

/** The task determines message, repository and pull request; a trigger of the request's own stays. */
export function withSuggestedTask(
  request: StartRequest,
  task: SuggestedTask,
  server: TaskGitServer,
): StartRequest {
  const isChangeRequest = !['OPEN_ISSUE', 'CREATE_MICROAGENT'].includes(task.task_type);
  return {
    ...request,
    suggested_task: { ...task },
    initial_message: {
      role: 'user',
      content: [{ type: 'text', text: suggestedTaskPrompt(task, server) }],
      run: true,
    },
    selected_repository: task.repo,
    git_provider: task.git_provider,
    trigger: request.trigger ?? 'suggested_task',
    pr_number:
      isChangeRequest && !request.pr_number.includes(task.issue_number)
        ? [...request.pr_number, task.issue_number]
        : request.pr_number,
  };
}

function uuid(id: string | null | undefined): string | null {
  return id === null || id === undefined ? null : parseHexId(id);
}

function blankAsNull(text: string | null | undefined): string | null {
  return text === undefined || text === null || text.trim() === '' ? null : text;
}
