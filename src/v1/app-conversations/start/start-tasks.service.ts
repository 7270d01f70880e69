import { Injectable } from '@nestjs/common';
import { InvalidInputError } from '../../../common/errors/domain-error.js';
import { parseHexId } from '../../../common/identifiers.js';
import { GitProviderError } from '../../../git-providers/git-provider.js';
import { toStartMessage } from '../api/dto/message.dto.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import type { StartRequest, StartTask } from '../start-task.entity.js';
import { type StartTaskRow, StartTaskQueries } from '../start-task.repository.js';
import {
  type SuggestedTask,
  suggestedTaskPrompt,
  type TaskGitServer,
} from '../suggested-task/suggested-task-prompt.js';
import { TaskGitServers } from '../suggested-task/task-forges.js';
import { ConversationStarter } from './conversation-starter.js';

/** Turns what a client sends into what a start works with. */
@Injectable()
export class StartRequests {
  constructor(private readonly forges: TaskGitServers) {}

  /** @throws InvalidInputError for members that exclude each other, and a provider that is not configured */
  async resolve(userId: string, body: StartConversationDto): Promise<StartRequest> {
    const request = toStartRequest(body);
    const task = body.suggested_task ?? null;
    if (task === null) {
      return request;
    }
    if (request.initial_message) {
      throw new InvalidInputError([
        {
          loc: ['body', 'initial_message'],
          msg: 'Expected no message beside suggested_task, which makes the message.',
          type: 'value_error',
        },
      ]);
    }
    return withTask(request, task, await this.forgeOf(userId, task));
  }

  private async forgeOf(userId: string, { git_provider: provider }: SuggestedTask): Promise<TaskGitServer> {
    try {
      return await this.forges.of(userId, provider);
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'unsupported') {
        throw new InvalidInputError([
          {
            loc: ['body', 'suggested_task', 'git_provider'],
            msg: 'Expected a provider that is configured here.',
            type: 'value_error',
          },
        ]);
      }
      throw error;
    }
  }
}

/** What the task says goes before what the request says beside it, but for the trigger. */
function withTask(request: StartRequest, task: SuggestedTask, forge: TaskGitServer): StartRequest {
  const isChange = !['OPEN_ISSUE', 'CREATE_MICROAGENT'].includes(task.task_type);
  return {
    ...request,
    suggested_task: { ...task },
    initial_message: {
      role: 'user',
      content: [{ type: 'text', text: suggestedTaskPrompt(task, forge) }],
      run: true,
    },
    selected_repository: task.repo,
    git_provider: task.git_provider,
    trigger: request.trigger ?? 'suggested_task',
    pr_number:
      isChange && !request.pr_number.includes(task.issue_number)
        ? [...request.pr_number, task.issue_number]
        : request.pr_number,
  };
}

function toStartRequest(body: StartConversationDto): StartRequest {
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

function uuid(id: string | null | undefined): string | null {
  return id === null || id === undefined ? null : parseHexId(id);
}

function blankAsNull(text: string | null | undefined): string | null {
  return text === undefined || text === null || text.trim() === '' ? null : text;
}

/** A user's conversations on their way. */
@Injectable()
export class StartTasksService {
  constructor(
    private readonly requests: StartRequests,
    private readonly starter: ConversationStarter,
    private readonly reader: StartTaskQueries,
  ) {}

  /**
   * Begins a conversation and answers at once.
   *
   * @throws InvalidInputError for what cannot be started
   */
  async start(
    userId: string,
    body: StartConversationDto,
    idempotencyKey: string | null,
  ): Promise<StartTaskRow> {
    const request = await this.requests.resolve(userId, body);
    const task = await this.starter.start(userId, request, idempotencyKey);
    // A repeated request gets a task that may have come far: then its sandbox is worth a look.
    const current =
      task.status === 'WORKING' ? null : (await this.reader.findAll(userId, [task.id])).get(task.id);
    return current ?? toRow(task);
  }

  /** In the order of the ids; null for each that is unknown, somebody else's, or no id at all. */
  async findAll(userId: string, givenIds: readonly string[]): Promise<(StartTaskRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const found = await this.reader.findAll(
      userId,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }
}

/** The task as it was answered: what its sandbox does is for the next look. */
function toRow(task: StartTask): StartTaskRow {
  return {
    id: task.id,
    user_id: task.userId,
    status: task.status,
    detail: task.detail,
    app_conversation_id: task.appConversationId,
    sandbox_id: task.sandboxId,
    request: task.request,
    notes: task.notes,
    created_at: task.createdAt,
    updated_at: task.updatedAt,
    sandbox_status: null,
    address: null,
    cursor_at: '',
  };
}
