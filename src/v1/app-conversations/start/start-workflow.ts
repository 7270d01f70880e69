import { Injectable, Logger } from '@nestjs/common';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxKeepAlive } from '../../sandboxes/sandbox-activity.queries.js';
import { AgentRequests } from '../agent-request/agent-request.js';
import { agentDialect } from '../agent-request/agent-settings.js';
import { ConversationRepository } from '../conversation.repository.js';
import { SandboxRemoval } from '../conversations.service.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { SandboxReadiness, StartTargets } from './await-sandbox.js';
import { BeginConversationStep } from './begin-conversation.step.js';
import { PrepareRepositoryStep } from './prepare-repository.step.js';
import { SetUpStep } from './set-up.step.js';
import { StartSuperseded, StartFailure } from './start-errors.js';
import { HELD_SECONDS } from './start-sandbox.js';

/** The steps of a start that are done inside of its sandbox. */
@Injectable()
export class StartSandboxSteps {
  constructor(
    private readonly tasks: StartTaskRepository,
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

/** Ends starts that did not succeed. Nothing of them is left but the task that says why. */
@Injectable()
export class StartEnds {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly rows: ConversationRepository,
    private readonly sandboxes: SandboxRemoval,
  ) {}

  /** @throws StartSuperseded */
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

/** The way of a start: what is done in each status before the next one. Each step can be repeated. */
@Injectable()
export class StartSteps {
  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly requests: AgentRequests,
    private readonly specs: SandboxSpecs,
    private readonly readiness: SandboxReadiness,
    private readonly inSandbox: StartSandboxSteps,
  ) {}

  /**
   * Does what the task's status asks for.
   *
   * @returns the task in its next status
   * @throws StartFailure when the start cannot succeed
   * @throws StartSuperseded when it is in other hands; the signal's reason; anything else when it may succeed another time
   */
  async next(task: StartTask, signal: AbortSignal): Promise<StartTask> {
    switch (task.status) {
      case 'WORKING':
        await this.judgeSettings(task);
        return this.tasks.advance(task, 'WAITING_FOR_SANDBOX', { detail: task.detail });
      case 'WAITING_FOR_SANDBOX':
        return this.tasks.advance(await this.readiness.untilRunning(task, signal), 'PREPARING_REPOSITORY');
      default:
        return this.inSandbox.next(task, signal);
    }
  }

  /** Nobody waits for a sandbox in which nothing could begin. */
  private async judgeSettings({ userId, request }: StartTask): Promise<void> {
    // What is in a given sandbox is known later; it is judged again then.
    const dialect =
      request.sandbox_id === null
        ? agentDialect(this.specs.find(request.sandbox_spec_id ?? this.specs.default.id))
        : 'stock';
    const problem = await this.requests.problem(userId, request, dialect);
    if (problem !== null) {
      throw new StartFailure(problem);
    }
  }
}

const HOLD_MS = (HELD_SECONDS * 1000) / 2;

/** Walks starts from where they are to their end. */
@Injectable()
export class StartWorkflow {
  private readonly logger = new Logger(StartWorkflow.name);

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly steps: StartSteps,
    private readonly ends: StartEnds,
    private readonly holds: SandboxKeepAlive,
  ) {}

  /**
   * Nothing happens when the task is over, or gone.
   *
   * @throws what keeps it from going on now, though it may go on another time
   */
  async run(taskId: string, signal: AbortSignal): Promise<void> {
    const first = await this.tasks.takeUp(taskId);
    if (!first) {
      return;
    }
    this.hold(first);
    const holding = setInterval(() => this.hold(first), HOLD_MS).unref();
    try {
      await this.walkOn(first, signal);
    } catch (error) {
      if (!(error instanceof StartSuperseded)) {
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
    this.holds.keepAlive(sandboxId, HELD_SECONDS).catch((error: unknown) => {
      this.logger.warn('a sandbox is not held', { sandbox_id: sandboxId, error: String(error) });
    });
  }
}
