import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { parseHexId } from '../../common/hex-id.js';
import { AgentServerClient } from '../agent-servers/agent-server.client.js';
import { ConversationLogs } from '../events/conversation-logs.js';
import { RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { SandboxRemoval } from './sandbox-removal.js';
import { unknownConversation } from './unknown-conversation.js';

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
