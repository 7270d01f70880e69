import type { EntityManager } from 'typeorm';
import { NamedStatement } from '../../../database/named-statement.js';
import type { StartTask } from '../start-task.entity.js';

/** A task as it begins; the rest follows. */
export type NewStartTask = Omit<StartTask, 'user' | 'detail' | 'attempt' | 'createdAt' | 'updatedAt'>;

const INSERT = new NamedStatement<{ created_at: Date; updated_at: Date }>(
  'start_task_insert',
  `INSERT INTO app_conversation_start_tasks
    (id, user_id, status, app_conversation_id, sandbox_id, host_id, request, request_secrets, notes, sandbox_made,
     working_dir)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  RETURNING created_at, updated_at`,
);

/** Stores a new task in the caller's transaction. */
export async function insertStartTask(manager: EntityManager, task: NewStartTask): Promise<StartTask> {
  const [row] = await INSERT.within(manager, [
    task.id,
    task.userId,
    task.status,
    task.appConversationId,
    task.sandboxId,
    task.hostId,
    JSON.stringify(task.request),
    task.requestSecrets,
    task.notes,
    task.sandboxMade,
    task.workingDir,
  ]);
  if (!row) {
    throw new Error('a start task was not stored');
  }
  return { ...task, detail: null, attempt: 0, createdAt: row.created_at, updatedAt: row.updated_at };
}
