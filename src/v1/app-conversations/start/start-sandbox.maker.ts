import { Injectable } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import { pausedNotes } from '../../sandboxes/paused-notes.js';
import { noPlace } from '../../sandboxes/sandbox-problems.js';
import { SandboxResume } from '../../sandboxes/sandbox-resume.js';
import type { StartTask } from '../start-task.entity.js';
import { StartFailure } from './start-failure.js';
import { StartSandboxes } from './start-sandboxes.js';
import { StartTaskStore } from './start-task.store.js';

/** What became of an attempt to get a sandbox going. */
export interface SandboxAttempt {
  /** False: all places of the user are taken by busy sandboxes. */
  placed: boolean;
  /** As it is now. */
  task: StartTask;
}

/** Ends a transaction that has found no place. */
class NoPlace extends Error {}

/** Gets sandboxes of starts going, as soon as their users have a place for them. */
@Injectable()
export class StartSandboxMaker {
  constructor(
    private readonly tasks: StartTaskStore,
    private readonly sandboxes: StartSandboxes,
    private readonly resumes: SandboxResume,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /**
   * Makes the row of the task's sandbox.
   *
   * @throws StartFailure when the task has waited long enough for a place, or is not to wait for one, or its user may
   *   have no sandbox
   */
  async make(task: StartTask): Promise<SandboxAttempt> {
    return this.attempt(task, async () => {
      const { sandboxId: id, userId, hostId } = task;
      const plan = await this.sandboxes.plan(userId, task.request.sandbox_spec_id);
      const made = await this.tasks.transaction(async (manager) => {
        // First, so that a task that was deleted meanwhile leaves nothing behind.
        const change = { sandboxMade: true, detail: null, notes: plan.notes };
        const changed = await this.tasks.note(task, change, manager);
        const place = await this.sandboxes.make(manager, { id, userId, hostId }, plan);
        if (place === 'busy') {
          throw new NoPlace();
        }
        const notes = [...plan.notes, ...pausedNotes(place.paused)];
        return this.tasks.note(changed, { notes }, manager);
      });
      this.sandboxes.kick(id);
      return made;
    });
  }

  /**
   * Has the task's sandbox resumed.
   *
   * @throws StartFailure as `make` does
   */
  async resume(task: StartTask): Promise<SandboxAttempt> {
    return this.attempt(task, async () => {
      const paused = await this.resumes.request(task.userId, task.sandboxId);
      return this.tasks.note(task, { notes: [...task.notes, ...pausedNotes(paused)] });
    });
  }

  private async attempt(task: StartTask, get: () => Promise<StartTask>): Promise<SandboxAttempt> {
    try {
      return { placed: true, task: await get() };
    } catch (error) {
      if (error instanceof NoPlace || (error instanceof DomainError && error.code === 'sandbox_limit')) {
        return { placed: false, task: await this.wait(task) };
      }
      if (error instanceof DomainError && error.kind === 'not_found') {
        // Deleted just now: whoever looks again sees that.
        return { placed: true, task };
      }
      if (error instanceof DomainError && (error.kind === 'forbidden' || error.kind === 'conflict')) {
        throw new StartFailure(error.message, { cause: error });
      }
      throw error;
    }
  }

  private async wait(task: StartTask): Promise<StartTask> {
    const { maxRunning, waitSeconds, limitPolicy } = this.config.sandboxes;
    if (limitPolicy === 'reject') {
      throw new StartFailure(noPlace(this.config.sandboxes).message);
    }
    const all = `All ${maxRunning} sandboxes that you may have running are in use`;
    if (this.clock.now() >= task.createdAt.getTime() + waitSeconds * 1000) {
      throw new StartFailure(
        `${all}, and none became free within ${waitSeconds} seconds. Pause or delete one, then start again.`,
      );
    }
    return this.tasks.note(task, { detail: `${all}: waiting for one to become free.` });
  }
}
