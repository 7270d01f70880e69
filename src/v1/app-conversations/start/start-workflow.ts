import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { type SpanStart, traced } from '@slipway/common/spans.js';
import { SandboxWorkerSignal } from '../../sandboxes/sandbox-events.js';
import { SandboxRepository } from '../../sandboxes/sandbox.repository.js';
import { ConversationMetrics } from '../conversation.metrics.js';
import { ConversationRepository } from '../conversation.repository.js';
import { PendingMessagesWorker } from '../pending/pending-messages.worker.js';
import { isFinished, type StartTask } from '../start-task.entity.js';
import { StartSuperseded, StartTaskRepository } from '../start-task.repository.js';
import { KEEP_ALIVE_SECONDS } from './await-sandbox.step.js';
import { StartRequestResolver } from './start-request.resolver.js';
import { StartFailure, type StartFailureKind } from './start-failure.js';
import { StartSteps } from './start-steps.js';

const KEEP_ALIVE_EVERY_MS = (KEEP_ALIVE_SECONDS * 1000) / 2;

/** Takes a start from any status to READY or ERROR. Steps are repeatable: a new worker begins with the last one. */
@Injectable()
export class StartWorkflow {
  private readonly logger = new Logger(StartWorkflow.name);

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly conversations: ConversationRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly worker: SandboxWorkerSignal,
    private readonly requests: StartRequestResolver,
    private readonly steps: StartSteps,
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
      if (task.request.sandbox_id === null) {
        // Where it stays, others may begin agents in it.
        await this.sandboxes.closeSetup(manager, task.sandboxId);
      }
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
        task = await traced(stepSpan(current), () => this.steps.run(current, settings, signal));
        this.metrics.stepFinished(current.status, performance.now() - begunAt);
      } catch (error) {
        if (!(error instanceof StartFailure)) {
          throw error;
        }
        await this.fail(task, error.kind, error.message);
        return;
      }
    }
    this.metrics.ready(task);
    this.pendingMessages.deliver();
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
