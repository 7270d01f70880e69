import { Injectable } from '@nestjs/common';
import { SandboxRemoval } from '../sandbox-removal.js';
import type { StartTask } from '../start-task.entity.js';
import { ConversationRows } from './conversation-rows.js';
import { StartTaskStore } from './start-task.store.js';

/** Ends starts that did not succeed. Nothing of them is left but the task that says why. */
@Injectable()
export class StartEnds {
  constructor(
    private readonly tasks: StartTaskStore,
    private readonly rows: ConversationRows,
    private readonly sandboxes: SandboxRemoval,
  ) {}

  /** @throws StartEnded */
  async fail(task: StartTask, detail: string): Promise<void> {
    const removed = await this.tasks.transaction(async (manager) => {
      await this.tasks.advance(task, 'ERROR', { detail }, manager);
      if (task.status === 'STARTING_CONVERSATION') {
        await this.rows.remove(manager, task.appConversationId);
      }
      // One that was made for this conversation is of no use to anybody; what it had to tell is in the detail.
      return (
        task.request.sandbox_id === null &&
        (await this.sandboxes.removeIfUnused(manager, task.userId, task.sandboxId))
      );
    });
    if (removed) {
      this.sandboxes.kick(task.sandboxId);
    }
  }

  /** Ends a task whose workers all failed, unless it is over or gone. */
  async giveUp(id: string, detail: string): Promise<void> {
    const task = await this.tasks.takeUp(id);
    if (task) {
      await this.fail(task, detail);
    }
  }
}
