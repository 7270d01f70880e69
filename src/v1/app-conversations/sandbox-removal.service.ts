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
   * Moves a sandbox from any status to its removal, unless a conversation uses it or an unfinished start needs it.
   *
   * @param cause why the service does it; without one the request that is being answered asks for it
   * @returns whether it is being removed; call `SandboxWorkerSignal.wake` once that is committed
   */
  async removeIfUnused(
    manager: EntityManager,
    userId: string,
    sandboxId: string,
    cause?: 'start_failed',
  ): Promise<boolean> {
    // The lock lets the second of two removals in the same sandbox see what the first one removed.
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
