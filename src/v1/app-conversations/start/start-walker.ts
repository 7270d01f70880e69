import { Injectable, Logger } from '@nestjs/common';
import { SandboxHolds } from '../../sandboxes/sandbox-holds.js';
import type { StartTask } from '../start-task.entity.js';
import { StartEnded } from './start-ended.js';
import { StartEnds } from './start-ends.js';
import { StartFailure } from './start-failure.js';
import { HELD_SECONDS } from './start-sandboxes.js';
import { StartSteps } from './start-steps.js';
import { StartTaskStore } from './start-task.store.js';

const HOLD_MS = (HELD_SECONDS * 1000) / 2;

/** Walks starts from where they are to their end. */
@Injectable()
export class StartWalker {
  private readonly logger = new Logger(StartWalker.name);

  constructor(
    private readonly tasks: StartTaskStore,
    private readonly steps: StartSteps,
    private readonly ends: StartEnds,
    private readonly holds: SandboxHolds,
  ) {}

  /**
   * Nothing happens when the task is over, or gone.
   *
   * @throws what keeps it from going on now, though it may go on another time
   */
  async walk(taskId: string, signal: AbortSignal): Promise<void> {
    const first = await this.tasks.takeUp(taskId);
    if (!first) {
      return;
    }
    this.hold(first);
    const holding = setInterval(() => this.hold(first), HOLD_MS).unref();
    try {
      await this.walkOn(first, signal);
    } catch (error) {
      if (!(error instanceof StartEnded)) {
        throw error;
      }
      // Somebody else has it, or nobody wants it any more.
    } finally {
      clearInterval(holding);
    }
  }

  private async walkOn(first: StartTask, signal: AbortSignal): Promise<void> {
    let task = first;
    while (task.status !== 'READY') {
      signal.throwIfAborted();
      try {
        task = await this.steps.next(task, signal);
      } catch (error) {
        if (!(error instanceof StartFailure)) {
          throw error;
        }
        await this.ends.fail(task, error.message);
        return;
      }
    }
  }

  private hold({ sandboxId }: StartTask): void {
    this.holds.hold(sandboxId, HELD_SECONDS).catch((error: unknown) => {
      this.logger.warn('a sandbox is not held', { sandbox_id: sandboxId, error: String(error) });
    });
  }
}
