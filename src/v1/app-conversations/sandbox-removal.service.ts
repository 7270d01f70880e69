import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { ConversationRepository } from './conversation.repository.js';
import { StartTaskRepository } from './start-task.repository.js';

/** Removes the sandboxes that conversations leave behind. */
@Injectable()
export class SandboxRemovalService {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly conversations: ConversationRepository,
    private readonly startTasks: StartTaskRepository,
  ) {}

  /**
   * Removes a sandbox unless a conversation or an unfinished start uses it; without `cause`, the current request is
   * the cause. If it returns true, call `SandboxWorkerSignal.wake` after the commit.
   */
  async removeIfUnused(
    manager: EntityManager,
    userId: string,
    sandboxId: string,
    cause?: 'start_failed',
  ): Promise<boolean> {
    // Under the lock, the second of two removals sees what the first one removed.
    if (!(await this.sandboxes.lock(manager, sandboxId, userId))) {
      return false;
    }
    const isUsed =
      (await this.conversations.existsInSandbox(manager, sandboxId)) ||
      (await this.startTasks.needsSandbox(manager, sandboxId));
    return (
      !isUsed &&
      (await this.sandboxes.transition(sandboxId, 'remove', {
        change: { deadlineAt: null },
        condition: { userId },
        manager,
        cause,
      }))
    );
  }
}
