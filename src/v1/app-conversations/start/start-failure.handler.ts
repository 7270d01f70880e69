import { Injectable } from '@nestjs/common';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { ConversationRepository } from '../conversation.repository.js';
import { SandboxRemovalService } from '../sandbox-removal.service.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import type { StartFailureKind } from './start-failure.js';
import { StartMetrics } from './start.metrics.js';

/** Ends starts in ERROR. Only the task stays, which says why. */
@Injectable()
export class StartFailureHandler {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly sandboxes: SandboxRemovalService,
    private readonly worker: SandboxWorkerSignal,
    private readonly metrics: StartMetrics,
  ) {}

  async fail(task: StartTask, kind: StartFailureKind, detail: string): Promise<void> {
    const isSandboxRemoved = await this.tasks.transaction(async (manager) => {
      await this.tasks.advance(task, 'ERROR', { detail }, manager);
      if (task.status === 'STARTING_CONVERSATION') {
        await this.conversations.remove(manager, task.appConversationId);
      }
      // A sandbox created for this conversation has no other use.
      return (
        task.request.sandbox_id === null &&
        (await this.sandboxes.removeIfUnused(manager, task.userId, task.sandboxId, 'start_failed'))
      );
    });
    this.metrics.failed(task, kind);
    if (isSandboxRemoved) {
      this.worker.wake();
    }
  }

  /** After the last attempt; leaves a finished task alone. */
  async giveUp(id: string, detail: string): Promise<void> {
    const task = await this.tasks.takeUp(id);
    if (task) {
      await this.fail(task, 'attempts', detail);
    }
  }
}
