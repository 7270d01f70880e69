import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { type SpanStart, traced } from '../../../common/spans.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { RunningSandboxQueries } from '../../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { agentDialect } from '../agent-request/agent-dialect.js';
import { ConversationMetrics } from '../conversation.metrics.js';
import { ConversationRepository } from '../conversation.repository.js';
import { PendingMessagesWorker } from '../pending/pending-messages.worker.js';
import type { AgentConfiguration } from '../agent-request/agent-inputs.reader.js';
import type { CheckedConfiguration } from '../agent-request/agent-request.builder.js';
import { isFinished, type StartTask } from '../start-task.entity.js';
import { isForeign, type WorkPlace } from '../work-places/work-place.js';
import { StartSuperseded, StartTaskRepository } from '../start-task.repository.js';
import { AwaitSandboxStep, KEEP_ALIVE_SECONDS } from './await-sandbox.step.js';
import { BeginConversationStep } from './begin-conversation.step.js';
import { PrepareRepositoryStep } from './prepare-repository.step.js';
import { SetUpStep } from './set-up.step.js';
import { StartRequestResolver } from './start-request.resolver.js';
import { type StartContext, StartFailure, type StartFailureKind } from './start-step.js';

const KEEP_ALIVE_EVERY_MS = (KEEP_ALIVE_SECONDS * 1000) / 2;

/** Takes a start from any status to READY or ERROR. Steps are repeatable: a new worker begins with the last one. */
@Injectable()
export class StartWorkflow {
  private readonly logger = new Logger(StartWorkflow.name);

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly running: RunningSandboxQueries,
    private readonly specs: SandboxSpecs,
    private readonly worker: SandboxWorkerSignal,
    private readonly requests: StartRequestResolver,
    private readonly awaitSandbox: AwaitSandboxStep,
    private readonly prepareRepository: PrepareRepositoryStep,
    private readonly setUp: SetUpStep,
    private readonly beginConversation: BeginConversationStep,
    private readonly pendingMessages: PendingMessagesWorker,
    private readonly metrics: ConversationMetrics,
  ) {}

  /** Does nothing when the task is finished or gone. Throws what another attempt may overcome. */
  async run(taskId: string, signal: AbortSignal): Promise<void> {
    const task = await this.tasks.takeUp(taskId);
    if (!task) {
      return;
    }
    this.keepSandboxAlive(task);
    const timer = setInterval(() => this.keepSandboxAlive(task), KEEP_ALIVE_EVERY_MS).unref();
    try {
      await this.runSteps(task, signal);
    } catch (error) {
      // Another worker has the start, or it was deleted.
      if (!(error instanceof StartSuperseded)) {
        throw error;
      }
    } finally {
      clearInterval(timer);
    }
  }

  /** Ends a start in ERROR. Only the task stays, which says why. */
  async fail(task: StartTask, kind: StartFailureKind, detail: string): Promise<void> {
    const isSandboxRemoved = await this.tasks.transaction(async (manager) => {
      await this.tasks.advance(task, 'ERROR', { detail }, manager);
      if (task.status === 'STARTING_CONVERSATION') {
        await this.conversations.remove(manager, task.appConversationId);
      }
      // A sandbox created for this conversation has no other use.
      return (
        task.request.sandbox_id === null &&
        (await this.tasks.removeSandboxIfUnused(manager, task.userId, task.sandboxId, 'start_failed'))
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

  private async runSteps(first: StartTask, signal: AbortSignal): Promise<void> {
    // Read once: a conversation begins with the settings that were checked.
    const settings = await this.requests.checkSettings(first.userId, first.request);
    let task = first;
    while (!isFinished(task.status)) {
      signal.throwIfAborted();
      try {
        const current = task;
        const begunAt = performance.now();
        task = await traced(stepSpan(current), () => this.runStep(current, settings, signal));
        this.metrics.stepFinished(current.status, performance.now() - begunAt);
      } catch (error) {
        if (!(error instanceof StartFailure)) {
          throw error;
        }
        await this.fail(task, error.kind, error.message);
        return;
      }
    }
  }

  /** Returns the task in its next status. Throws StartFailure, StartSuperseded, or what may pass. */
  private async runStep(
    task: StartTask,
    { configuration, problem }: CheckedConfiguration,
    signal: AbortSignal,
  ): Promise<StartTask> {
    switch (task.status) {
      case 'WORKING':
        // Before the start waits for a sandbox.
        if (problem !== null) {
          throw new StartFailure('settings', problem);
        }
        return this.tasks.advance(task, 'WAITING_FOR_SANDBOX', { detail: task.detail });
      case 'WAITING_FOR_SANDBOX':
        return this.tasks.advance(await this.awaitSandbox.run(task, signal), 'PREPARING_REPOSITORY');
      default:
        return this.runStepInSandbox(await this.context(task, signal), configuration, signal);
    }
  }

  /** Waits for a sandbox that was stopped meanwhile. */
  private async context(first: StartTask, signal: AbortSignal): Promise<StartContext> {
    let task = first;
    for (;;) {
      const sandbox = await this.running.target(task.sandboxId);
      if (sandbox) {
        const spec = this.specs.find(sandbox.specId);
        return { task, sandbox, dialect: agentDialect(spec), specWorkingDir: spec?.workingDir ?? null };
      }
      task = await this.awaitSandbox.run(task, signal);
    }
  }

  private async runStepInSandbox(
    context: StartContext,
    configuration: AgentConfiguration,
    signal: AbortSignal,
  ): Promise<StartTask> {
    const { task } = context;
    const { selected_repository: repository, work_place: workPlace } = task.request;
    const hasOwnScripts = repository !== null && !isForeign(workPlace);
    switch (task.status) {
      case 'PREPARING_REPOSITORY': {
        const { settings } = configuration;
        const { workingDir, notices, place } = await this.prepareRepository.run(context, settings, signal);
        const notes = [...new Set([...task.notes, ...notices])];
        const placed = place === undefined ? task : await this.place(task, place);
        return this.tasks.advance(placed, 'RUNNING_SETUP_SCRIPT', { workingDir, notes });
      }
      case 'RUNNING_SETUP_SCRIPT':
        if (hasOwnScripts) {
          await this.setUp.runScript(context, signal);
        }
        return this.tasks.advance(task, 'SETTING_UP_GIT_HOOKS');
      case 'SETTING_UP_GIT_HOOKS':
        if (hasOwnScripts) {
          await this.setUp.installHook(context, signal);
        }
        return this.tasks.advance(task, 'STARTING_CONVERSATION');
      case 'STARTING_CONVERSATION':
        return this.becomeReady(context, await this.beginConversation.run(context, configuration));
      default:
        throw new Error(`a start in status ${task.status} has no step in its sandbox`);
    }
  }

  private async place(task: StartTask, place: WorkPlace | null): Promise<StartTask> {
    if ((task.request.work_place ?? null) === null && place === null) {
      return task;
    }
    await this.tasks.amend(task.id, { work_place: place });
    return Object.assign({}, task, { request: { ...task.request, work_place: place } });
  }

  /** Clients may use the conversation: the agent server has it and its credentials. */
  private async becomeReady({ sandbox }: StartContext, task: StartTask): Promise<StartTask> {
    const ready = await this.tasks.transaction(async (manager) => {
      await this.conversations.setGeneration(task.appConversationId, sandbox.generation, manager);
      return this.tasks.advance(task, 'READY', {}, manager);
    });
    this.metrics.ready(ready);
    this.pendingMessages.deliver();
    return ready;
  }

  private keepSandboxAlive({ sandboxId }: StartTask): void {
    this.sandboxes.keepAlive(sandboxId, KEEP_ALIVE_SECONDS).catch((error: unknown) => {
      this.logger.warn('failed to keep a sandbox alive', {
        sandbox_id: sandboxId,
        error: errorMessage(error),
      });
    });
  }
}

function stepSpan({ id, status, sandboxId, appConversationId, attempt }: StartTask): SpanStart {
  return {
    name: `start step ${status}`,
    attributes: {
      'slipway.start_task.id': id,
      'slipway.start_task.attempt': attempt,
      'slipway.conversation.id': appConversationId,
      'slipway.sandbox.id': sandboxId,
    },
  };
}
