import { Injectable } from '@nestjs/common';
import { jsonText } from '@slipway/common/json-access.js';
import { DomainError } from '../common/errors/domain-error.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import type { DtoClass } from '@slipway/api/validation/field.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { withoutCommands } from '@slipway/git-providers/git-provider.js';
import { toSuggestedTaskDto } from '../suggested-tasks/suggested-tasks.dto.js';
import { SuggestedTasksService, type TaskSelection } from '../suggested-tasks/suggested-tasks.service.js';
import { SendMessageDto } from '../v1/app-conversations/api/dto/conversation-actions.dto.js';
import { StartConversationDto } from '../v1/app-conversations/api/dto/start-conversation.dto.js';
import { hasTokens } from '../v1/app-conversations/start-task.entity.js';
import { ConversationActionsService } from '../v1/app-conversations/conversation-actions.service.js';
import { ConversationWorkspaceService } from '../v1/app-conversations/conversation-workspace.service.js';
import { toSendMessageRequest } from '../v1/app-conversations/message-parts.js';
import { StartTaskRepository } from '../v1/app-conversations/start-task.repository.js';
import { ConversationStarter } from '../v1/app-conversations/start/conversation-starter.js';
import { Delegation } from '../v1/app-conversations/start/delegation.js';
import { OpenConversationPullRequestDto } from '../v1/pull-requests/pull-request.dto.js';
import { PullRequestsService } from '../v1/pull-requests/pull-requests.service.js';
import { ConversationProgress, type ToolCaller } from './conversation-progress.js';
import type { Progress } from './tools.schema.js';

const NO_TOKENS = 'This conversation was started without the git tokens that suggested tasks are read with.';

/** More than an agent reads. */
const MAX_CHANGES = 1_000;

/** What tools do, by the services and the rules of the routes that do the same. Throws what those throw. */
@Injectable()
export class ToolServerService {
  private readonly pipe = new InputValidationPipe();

  constructor(
    private readonly tasks: SuggestedTasksService,
    private readonly starter: ConversationStarter,
    private readonly actions: ConversationActionsService,
    readonly progress: ConversationProgress,
    private readonly workspace: ConversationWorkspaceService,
    private readonly pullRequests: PullRequestsService,
    private readonly delegation: Delegation,
    private readonly starts: StartTaskRepository,
  ) {}

  /** Agents see and move only what is below their own conversation. @throws DomainError not_found */
  async requireReach({ userId, conversationId }: ToolCaller, id: string | null): Promise<void> {
    if (conversationId !== null && id !== null) {
      await this.delegation.requireBelow(userId, conversationId, id);
    }
  }

  /** They are read with the git tokens, so an agent that may not have those does not get them. */
  async suggestedTasks({ userId, conversationId }: ToolCaller, selection: TaskSelection): Promise<object> {
    const id = parseHexId(conversationId ?? '');
    const start = id === null ? null : await this.starts.ofConversation(userId, id);
    if (conversationId !== null && !(start && hasTokens(start.request))) {
      throw new DomainError('forbidden', NO_TOKENS);
    }
    const { tasks, statuses } = await this.tasks.find(userId, selection);
    const providers = statuses.map(({ provider, status }) => ({ provider, status }));
    return { tasks: tasks.map(toSuggestedTaskDto), providers };
  }

  async start(
    { userId, conversationId, idempotencyKey }: ToolCaller,
    { message, ...members }: { message: string; [member: string]: unknown },
  ): Promise<Progress> {
    const body = await this.checked(StartConversationDto, {
      ...members,
      initial_message: { content: [{ type: 'text', text: message }] },
      parent_conversation_id: conversationId,
    });
    const terms = conversationId === null ? {} : { started_by_agent: true as const };
    const task = await this.starter.startFor({ id: userId, repositories: null }, body, idempotencyKey, terms);
    return this.progress.read(userId, toHexId(task.app_conversation_id));
  }

  /** An agent that has waited gets back what its child has not spent. */
  async wait(by: ToolCaller, id: string, seconds: number): Promise<Progress> {
    const { userId, conversationId } = by;
    const progress = await this.progress.wait(by, id, seconds);
    if (!progress.is_working && conversationId !== null) {
      try {
        await this.delegation.release(userId, conversationId);
      } catch (error) {
        // The header is not signed: what it names may not exist, or not run.
        if (!(error instanceof DomainError)) {
          throw error;
        }
      }
    }
    return progress;
  }

  async send({ userId, conversationId }: ToolCaller, id: string, message: string): Promise<Progress> {
    const body = await this.checked(SendMessageDto, { content: [{ type: 'text', text: message }] });
    if (conversationId !== null) {
      await this.delegation.allowMessage(userId, conversationId, id);
    }
    const sender = conversationId === null ? {} : { sender_conversation_id: conversationId };
    await this.actions.sendMessage(userId, id, { ...toSendMessageRequest(body), ...sender }, true);
    return this.progress.read(userId, id);
  }

  async changes({ userId }: ToolCaller, id: string): Promise<object> {
    const found = await this.workspace.changes(userId, id, { path: '.' });
    const changes = (Array.isArray(found) ? found : []).map((change: unknown) => ({
      status: jsonText(change, 'status') ?? '',
      path: jsonText(change, 'path') ?? '',
    }));
    return { conversation_id: id, changes: changes.slice(0, MAX_CHANGES), count: changes.length };
  }

  async openPullRequest(
    { userId, conversationId }: ToolCaller,
    id: string,
    members: object,
  ): Promise<object> {
    if (conversationId !== null) {
      await this.pullRequests.requireWrite(userId, id);
    }
    const request = await this.checked(OpenConversationPullRequestDto, members);
    request.body = withoutCommands(request.body ?? '');
    const { number, url } = await this.pullRequests.openForUser(userId, id, request);
    return { conversation_id: id, number, url };
  }

  async stop({ userId }: ToolCaller, id: string): Promise<Progress> {
    await this.actions.pause(userId, id);
    return this.progress.read(userId, id);
  }

  private async checked<T extends object>(metatype: DtoClass<T>, body: object): Promise<T> {
    return (await this.pipe.transform(body, { type: 'body', metatype })) as T;
  }
}
