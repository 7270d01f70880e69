import { Injectable } from '@nestjs/common';
import type { StartTask } from '../start-task.entity.js';
import { BeginConversationStep } from './begin-conversation.step.js';
import { PrepareRepositoryStep } from './prepare-repository.step.js';
import { SetUpStep } from './set-up.step.js';
import { StartTargets } from './start-targets.js';
import { StartTaskStore } from './start-task.store.js';

/** The steps of a start that are done inside of its sandbox. */
@Injectable()
export class SandboxSteps {
  constructor(
    private readonly tasks: StartTaskStore,
    private readonly targets: StartTargets,
    private readonly repository: PrepareRepositoryStep,
    private readonly setUp: SetUpStep,
    private readonly conversation: BeginConversationStep,
  ) {}

  /** As `StartSteps.next`. */
  async next(given: StartTask, signal: AbortSignal): Promise<StartTask> {
    const start = await this.targets.find(given, signal);
    const { task } = start;
    const hasRepository = task.request.selected_repository !== null;
    switch (task.status) {
      case 'PREPARING_REPOSITORY': {
        const workingDir = await this.repository.run(start, signal);
        return this.tasks.advance(task, 'RUNNING_SETUP_SCRIPT', { workingDir });
      }
      case 'RUNNING_SETUP_SCRIPT':
        if (hasRepository) {
          await this.setUp.runScript(start, signal);
        }
        return this.tasks.advance(task, 'SETTING_UP_GIT_HOOKS');
      case 'SETTING_UP_GIT_HOOKS':
        if (hasRepository) {
          await this.setUp.installHook(start, signal);
        }
        return this.tasks.advance(task, 'STARTING_CONVERSATION');
      case 'STARTING_CONVERSATION':
        return this.conversation.run(start);
      default:
        throw new Error(`a start in status ${task.status} has no next step`);
    }
  }
}
