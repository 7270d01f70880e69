import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ConversationLogs } from '../../events/conversation-logs.js';
import { initialTitle } from '../conversation-title.js';
import type { StartTask } from '../start-task.entity.js';

const INSERT = `
  INSERT INTO app_conversations
    (id, user_id, sandbox_id, selected_repository, selected_branch, git_provider, title, title_is_users, trigger,
     pr_number, llm_model, parent_conversation_id, public, tags, working_dir)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
  ON CONFLICT (id) DO NOTHING`;

/** The row of a conversation, as its start makes it. */
@Injectable()
export class ConversationRows {
  constructor(private readonly logs: ConversationLogs) {}

  /** Stores the conversation and opens its log, in the caller's transaction. Repeatable. */
  async insert(
    manager: EntityManager,
    { appConversationId: id, userId, sandboxId, request }: StartTask,
    { model, workingDir }: { model: string; workingDir: string },
  ): Promise<void> {
    await manager.query(INSERT, [
      id,
      userId,
      sandboxId,
      request.selected_repository,
      request.selected_branch,
      request.git_provider,
      request.title ?? initialTitle(id),
      request.title !== null,
      request.trigger,
      request.pr_number,
      model,
      request.parent_conversation_id,
      request.public,
      JSON.stringify(request.tags),
      workingDir,
    ]);
    await this.logs.open(manager, { conversationId: id, userId, sandboxId });
  }

  /** Notes which start of the sandbox knows the conversation's credentials. */
  async setGeneration(manager: EntityManager, id: string, generation: number): Promise<void> {
    await manager.query('UPDATE app_conversations SET sandbox_generation = $2 WHERE id = $1', [
      id,
      generation,
    ]);
  }

  /** Takes back what `insert` did: the start failed after it. */
  async remove(manager: EntityManager, id: string): Promise<void> {
    await manager.query('DELETE FROM app_conversations WHERE id = $1', [id]);
    await this.logs.remove(manager, id);
  }
}
