import { Injectable } from '@nestjs/common';
import { parseHexId } from '../../common/hex-id.js';
import type { StartConversationDto } from './dto/start-conversation.dto.js';
import { ConversationStarter } from './start/conversation-starter.js';
import { StartRequests } from './start-requests.js';
import type { StartTaskRow } from './start-task-row.js';
import { StartTasksReader } from './start-tasks.reader.js';
import type { StartTask } from './start-task.entity.js';

/** A user's conversations on their way. */
@Injectable()
export class StartTasksService {
  constructor(
    private readonly requests: StartRequests,
    private readonly starter: ConversationStarter,
    private readonly reader: StartTasksReader,
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
