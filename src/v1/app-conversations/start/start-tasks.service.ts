import { Injectable } from '@nestjs/common';
import { InvalidInputError } from '../../../common/errors/domain-error.js';
import { parseHexId } from '../../../common/identifiers.js';
import { AppConfig } from '../../../config/app-config.js';
import { TOKEN_VARIABLES } from '../../../git-providers/agent-git-tokens.reader.js';
import { GitProviderError, type ProviderType } from '../../../git-providers/git-provider.js';
import { GitProviderRegistry } from '../../../git-providers/git-provider.registry.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import type { StartConversationDto } from '../api/dto/start-conversation.dto.js';
import type { StartRequest, StartTask } from '../start-task.entity.js';
import { StartTaskQueries, type StartTaskRow } from '../start-task.queries.js';
import type { TaskGitServer } from '../suggested-task/suggested-task-prompt.js';
import { ConversationStarter, toStartRequest, withSuggestedTask } from './conversation-starter.js';

/** Finds the git server of a suggested task as the user's agent will see it. */
@Injectable()
export class TaskGitServerResolver {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly config: AppConfig,
  ) {}

  /** @throws GitProviderError for enterprise_sso that is not configured */
  async resolve(userId: string, provider: ProviderType): Promise<TaskGitServer> {
    const hosts = await this.tokens.hosts(userId);
    const host = hosts.get(provider) ?? null;
    const adapter = await this.registry.providerFor(provider, host);
    const hasToken = hosts.has(provider) && this.config.agent.exposeGitTokens;
    return {
      kind: adapter.kind,
      apiUrl: adapter.restUrl(host),
      tokenVariable: hasToken ? TOKEN_VARIABLES[adapter.kind] : null,
    };
  }
}

/** What clients do with the starts of their conversations. */
@Injectable()
export class StartTasksService {
  constructor(
    private readonly starter: ConversationStarter,
    private readonly queries: StartTaskQueries,
    private readonly gitServers: TaskGitServerResolver,
  ) {}

  /**
   * Starts a conversation and returns at once.
   *
   * @param idempotencyKey a repetition under it returns the task of the first request
   * @throws InvalidInputError for what cannot be started
   */
  async start(
    userId: string,
    body: StartConversationDto,
    idempotencyKey: string | null,
  ): Promise<StartTaskRow> {
    const request = await this.toRequest(userId, body);
    const task = await this.starter.start(userId, request, idempotencyKey);
    // The task of a repeated request may have come far: then the state of its sandbox matters.
    const current =
      task.status === 'WORKING' ? null : (await this.queries.findAll(userId, [task.id])).get(task.id);
    return current ?? toRow(task);
  }

  /** In the order of the ids; null for each that is unknown, another user's, or not an id. */
  async findAll(userId: string, givenIds: readonly string[]): Promise<(StartTaskRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const found = await this.queries.findAll(
      userId,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }

  /** @throws InvalidInputError for members that exclude each other, and a provider that is not configured */
  private async toRequest(userId: string, body: StartConversationDto): Promise<StartRequest> {
    const request = toStartRequest(body);
    const task = body.suggested_task ?? null;
    if (task === null) {
      return request;
    }
    if (request.initial_message) {
      throw invalid(
        ['initial_message'],
        'Expected no message beside suggested_task, which makes the message.',
      );
    }
    return withSuggestedTask(request, task, await this.gitServer(userId, task.git_provider));
  }

  private async gitServer(userId: string, provider: ProviderType): Promise<TaskGitServer> {
    try {
      return await this.gitServers.resolve(userId, provider);
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'unsupported') {
        throw invalid(['suggested_task', 'git_provider'], 'Expected a provider that is configured here.');
      }
      throw error;
    }
  }
}

function invalid(member: string[], msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['body', ...member], msg, type: 'value_error' }]);
}

/** A task that has just begun; nothing is known of its sandbox yet. */
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
    expose_port: null,
    cursor_at: '',
  };
}
