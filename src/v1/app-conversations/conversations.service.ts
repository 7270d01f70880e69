import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, Repository } from 'typeorm';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { ConversationLogs } from '../events/conversation-logs.js';
import { SandboxCreation } from '../sandboxes/sandbox-creation.js';
import { RunningSandboxes } from '../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import type { UpdateConversationDto } from './api/dto/conversation.dto.js';
import { AppConversation } from './conversation.entity.js';
import { type ConversationRow, ConversationQueries } from './conversation.repository.js';

/** A user's conversations and what is noted about them. */
@Injectable()
export class AppConversationsService {
  private readonly logger = new Logger(AppConversationsService.name);

  constructor(
    @InjectRepository(AppConversation) private readonly conversations: Repository<AppConversation>,
    private readonly reader: ConversationQueries,
    private readonly running: RunningSandboxes,
    private readonly agentServers: AgentServerClient,
  ) {}

  /** In the order of the ids; null for each that is unknown, somebody else's, or no id at all. */
  async findAll(userId: string, givenIds: readonly string[]): Promise<(ConversationRow | null)[]> {
    const ids = givenIds.map(parseHexId);
    const found = await this.reader.findAll(
      userId,
      ids.filter((id) => id !== null),
    );
    return ids.map((id) => (id === null ? null : (found.get(id) ?? null)));
  }

  /**
   * Changes what is given, and answers the conversation as it is then.
   *
   * @throws DomainError not_found
   */
  async update(userId: string, givenId: string, change: UpdateConversationDto): Promise<ConversationRow> {
    const id = parseHexId(givenId);
    const { title, public: isPublic, selected_repository: repository, selected_branch: branch } = change;
    const values = {
      ...(title !== undefined && { title, titleIsUsers: title !== null }),
      ...(isPublic !== undefined && { public: isPublic }),
      ...(repository !== undefined && { selectedRepository: repository }),
      ...(branch !== undefined && { selectedBranch: branch }),
      ...(change.git_provider !== undefined && { gitProvider: change.git_provider }),
    };
    if (id !== null && Object.keys(values).length > 0) {
      await this.conversations.update({ id, userId }, values);
    }
    const row = id === null ? null : await this.reader.find(userId, id);
    if (row === null) {
      throw unknownConversation();
    }
    if (typeof title === 'string') {
      this.rename(row, title).catch((error: unknown) => {
        this.logger.warn('the agent server does not know the new title', {
          conversation_id: row.id,
          error: String(error),
        });
      });
    }
    return row;
  }

  /** The agent server shows the title to those who ask it directly; ours is the one that counts, so nobody waits. */
  private async rename(row: ConversationRow, title: string): Promise<void> {
    const target = await this.running.target(row.sandbox_id);
    if (target) {
      await this.agentServers.renameConversation(target, row.id, title);
    }
  }
}

/** Locked, so that of two removals of a sandbox's last two conversations the second one sees the first. */
const LOCK = 'SELECT id FROM sandboxes WHERE id = $1 AND user_id = $2 FOR UPDATE';

const IS_USED = `
  SELECT EXISTS (SELECT FROM app_conversations WHERE sandbox_id = $1)
    OR EXISTS (
      SELECT FROM app_conversation_start_tasks WHERE sandbox_id = $1 AND status NOT IN ('READY', 'ERROR')
    ) AS used`;

/** Removes the sandboxes that conversations leave behind. */
@Injectable()
export class SandboxRemoval {
  constructor(
    private readonly store: SandboxRepository,
    private readonly creation: SandboxCreation,
  ) {}

  /**
   * Has a sandbox removed that no conversation uses, nor one that is being started; from every status.
   *
   * @returns whether it goes; call `kick` once that is committed
   */
  async removeIfUnused(manager: EntityManager, userId: string, sandboxId: string): Promise<boolean> {
    const locked = await manager.query<unknown[]>(LOCK, [sandboxId, userId]);
    if (locked.length === 0) {
      return false;
    }
    const [row] = await manager.query<{ used: boolean }[]>(IS_USED, [sandboxId]);
    return (
      row?.used === false &&
      (await this.store.move(sandboxId, 'remove', { deadlineAt: null }, { userId }, manager))
    );
  }

  /** Has the removal begun at once; without it the next sweep finds it. */
  kick(sandboxId: string): void {
    this.creation.kick(sandboxId);
  }
}

/** The task first: a worker that is about to store the conversation finds out that nobody wants it any more. */
const DELETE_TASK = `
  DELETE FROM app_conversation_start_tasks WHERE app_conversation_id = $1 AND user_id = $2 RETURNING sandbox_id`;

const DELETE_CONVERSATION = `
  DELETE FROM app_conversations WHERE id = $1 AND user_id = $2 RETURNING sandbox_id`;

const CLEAR_PARENT = `
  UPDATE app_conversations SET parent_conversation_id = NULL WHERE parent_conversation_id = $1 AND user_id = $2`;

interface SandboxOf {
  sandbox_id: string;
}

/** Ends conversations for good, whatever state they are in. */
@Injectable()
export class ConversationRemovalService {
  private readonly logger = new Logger(ConversationRemovalService.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly logs: ConversationLogs,
    private readonly sandboxes: SandboxRemoval,
    private readonly running: RunningSandboxes,
    private readonly agentServers: AgentServerClient,
  ) {}

  /**
   * Removes a conversation with its events and its start task, and its sandbox when nothing else uses that. Its
   * sub-conversations stay, on their own. One that is just being started is not started.
   *
   * @throws DomainError not_found
   */
  async remove(userId: string, givenId: string): Promise<void> {
    const id = parseHexId(givenId);
    if (id === null) {
      throw unknownConversation();
    }
    const { sandboxId, isSandboxRemoved } = await this.dataSource.transaction((manager) =>
      this.removeWithin(manager, userId, id),
    );
    if (isSandboxRemoved) {
      this.sandboxes.kick(sandboxId);
      return;
    }
    this.forgetRemotely(sandboxId, id).catch((error: unknown) => {
      // Nobody can reach it any more through us; it goes with its sandbox at the latest.
      this.logger.warn('the agent server keeps a removed conversation', {
        conversation_id: id,
        error: String(error),
      });
    });
  }

  private async removeWithin(
    manager: EntityManager,
    userId: string,
    id: string,
  ): Promise<{ sandboxId: string; isSandboxRemoved: boolean }> {
    const tasks = await removed(manager, DELETE_TASK, [id, userId]);
    const conversations = await removed(manager, DELETE_CONVERSATION, [id, userId]);
    const [gone] = [...conversations, ...tasks];
    if (gone === undefined) {
      throw unknownConversation();
    }
    await manager.query(CLEAR_PARENT, [id, userId]);
    await this.logs.remove(manager, id);
    const isSandboxRemoved = await this.sandboxes.removeIfUnused(manager, userId, gone.sandbox_id);
    return { sandboxId: gone.sandbox_id, isSandboxRemoved };
  }

  private async forgetRemotely(sandboxId: string, id: string): Promise<void> {
    const target = await this.running.target(sandboxId);
    if (target) {
      await this.agentServers.deleteConversation(target, id);
    }
  }
}

/** TypeORM answers a DELETE with its rows and their number. */
async function removed(manager: EntityManager, sql: string, values: unknown[]): Promise<SandboxOf[]> {
  const [rows] = await manager.query<[SandboxOf[], number]>(sql, values);
  return rows;
}

/** Also for other users' conversations: nobody learns that they exist. */
export function unknownConversation(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no conversation with this id.');
}
