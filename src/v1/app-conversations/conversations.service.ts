import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import type { AuthUser } from '../../auth/auth.decorators.js';
import { requireWithin } from '../../auth/key-repositories.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { unknownConversation } from '../events/events.service.js';
import { SandboxWorkerSignal } from '../sandboxes/sandbox-events.js';
import { RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import type { UpdateConversationDto } from './api/dto/conversation.dto.js';
import { ConversationQueries } from './conversation.queries.js';
import type { ConversationRow } from './conversation-row.js';
import { ConversationRepository } from './conversation.repository.js';
import { StartTaskRepository } from './start-task.repository.js';

/** Works whatever state a conversation is in. */
@Injectable()
export class ConversationsService {
  private readonly logger = new Logger(ConversationsService.name);

  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationRepository,
    private readonly startTasks: StartTaskRepository,
    private readonly worker: SandboxWorkerSignal,
    private readonly running: RunningSandboxQueries,
    private readonly agentServers: AgentServerClient,
    private readonly audit: AuditRepository,
  ) {}

  /** Returns conversations in the order of the ids; null for each that is unknown, invalid or not for the reader. */
  async findAll(reader: AuthUser, givenIds: readonly string[]): Promise<(ConversationRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const found = await this.queries.findAll(
      reader,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }

  /** Returns the changed conversation. @throws DomainError not_found; outside_repositories for another one than the key's */
  async update(
    { id: userId, repositories }: Pick<AuthUser, 'id' | 'repositories'>,
    givenId: string,
    change: UpdateConversationDto,
  ): Promise<ConversationRow> {
    const id = parseHexId(givenId);
    if (repositories !== null) {
      const { git_provider: provider, selected_repository: known } = await this.queries.get(userId, givenId);
      const { git_provider: gitProvider = provider, selected_repository: selectedRepository = known } =
        change;
      requireWithin(repositories, { gitProvider, selectedRepository });
    }
    const {
      title,
      public: isPublic,
      visibility,
      selected_repository: repository,
      selected_branch: branch,
    } = change;
    const values = {
      ...(title !== undefined && { title, titleIsUsers: title !== null }),
      ...(isPublic !== undefined && { public: isPublic }),
      ...(visibility !== undefined && { visibility }),
      ...(repository !== undefined && { selectedRepository: repository }),
      ...(branch !== undefined && { selectedBranch: branch }),
      ...(change.git_provider !== undefined && { gitProvider: change.git_provider }),
      ...(change.tags !== undefined && { tags: Object.fromEntries(change.tags ?? []) }),
      ...(change.metadata !== undefined && { metadata: change.metadata ?? {} }),
    };
    if (id !== null && Object.keys(values).length > 0) {
      const members = Object.entries(change).flatMap(([name, value]) => (value === undefined ? [] : [name]));
      await this.conversations.update(userId, id, values, members);
    }
    const row = await this.queries.get(userId, givenId);
    if (typeof title === 'string') {
      // Only clients that ask the agent server directly see its title.
      this.tellAgentServer(row, 'failed to rename conversation at its agent server', (target) =>
        this.agentServers.renameConversation(target, row.id, title),
      );
    }
    return row;
  }

  /**
   * Removes a conversation with its events and start task, which ends the start, and its sandbox when unused.
   * Sub-conversations stay without a parent. Throws DomainError not_found.
   */
  async remove(userId: string, givenId: string): Promise<void> {
    const id = parseHexId(givenId);
    if (id === null) {
      throw unknownConversation();
    }
    const { sandboxId, isSandboxRemoved } = await this.conversations.transaction((manager) =>
      this.removeWithin(manager, userId, id),
    );
    if (isSandboxRemoved) {
      this.worker.wake();
      return;
    }
    // If that fails, it is unreachable through the service, and removed again after the sandbox's next start.
    const conversation = { id, sandbox_id: sandboxId };
    this.tellAgentServer(conversation, 'failed to remove conversation from its agent server', (target) =>
      this.agentServers.deleteConversation(target, id),
    );
  }

  private async removeWithin(
    manager: EntityManager,
    userId: string,
    id: string,
  ): Promise<{ sandboxId: string; isSandboxRemoved: boolean }> {
    // First the task: a worker that is about to store the conversation must see that it is gone.
    const startSandboxId = await this.startTasks.deleteOfConversation(manager, userId, id);
    const sandboxId = (await this.conversations.removeOfUser(manager, userId, id)) ?? startSandboxId;
    if (sandboxId === null) {
      throw unknownConversation();
    }
    await this.audit.append(manager, {
      action: 'conversation.delete',
      resourceId: toHexId(id),
      ownerId: userId,
    });
    const isSandboxRemoved = await this.startTasks.removeSandboxIfUnused(manager, userId, sandboxId);
    // Also for a removed sandbox, because its agent server is asked once more before its end.
    await this.conversations.rememberRemoved(manager, id, sandboxId);
    return { sandboxId, isSandboxRemoved };
  }

  /** If it runs; returns at once. */
  private tellAgentServer(
    { id, sandbox_id: sandboxId }: Pick<ConversationRow, 'id' | 'sandbox_id'>,
    failure: string,
    tell: (target: AgentServerTarget) => Promise<void>,
  ): void {
    this.running
      .target(sandboxId)
      .then((target) => target && tell(target))
      .catch((error: unknown) =>
        this.logger.warn(failure, { conversation_id: id, error: errorMessage(error) }),
      );
  }
}
