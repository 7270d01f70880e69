import { Injectable } from '@nestjs/common';
import { CONVERSATION_STATUSES } from '@slipway/agent-protocol/conversation-api.js';
import { Clock } from '@slipway/common/clock.js';
import { type Instrument, Metrics, withZeros } from '@slipway/telemetry/metrics.js';
import { LogLeaseRepository } from '../events/log-sync/log-lease.repository.js';
import {
  isFinished,
  START_TASK_STATUSES,
  type StartTask,
  type StartTaskStatus,
} from './start-task.entity.js';
import { StartTaskQueries } from './start-task.queries.js';
import { START_FAILURE_KINDS, type StartFailureKind } from './start/start-failure.js';

/** `unknown`: nothing has been read of it yet. */
const EXECUTION_STATUSES = [...CONVERSATION_STATUSES, 'unknown'];
type StepName = Exclude<StartTaskStatus, 'READY' | 'ERROR'>;

/** Each status that is not the end is a step. */
const STEPS = START_TASK_STATUSES.filter((status): status is StepName => !isFinished(status));
const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200];

@Injectable()
export class ConversationMetrics {
  private readonly failures: Instrument<{ step: typeof STEPS; cause: typeof START_FAILURE_KINDS }>;
  private readonly steps: Instrument<{ step: typeof STEPS }>;
  private readonly durations: Instrument<{ outcome: readonly ['READY', 'ERROR'] }>;

  constructor(
    metrics: Metrics,
    leases: LogLeaseRepository,
    startTasks: StartTaskQueries,
    private readonly clock: Clock,
  ) {
    this.failures = metrics.addCounter({
      name: 'slipway_conversation_start_failures_total',
      help: 'Starts of conversations that ended with ERROR, by the step that failed and the class of its cause',
      labels: { step: STEPS, cause: START_FAILURE_KINDS },
    });
    this.steps = metrics.addHistogram({
      name: 'slipway_conversation_start_step_seconds',
      help: 'How long a step of a start took that succeeded',
      labels: { step: STEPS },
      buckets: SECONDS,
    });
    this.durations = metrics.addHistogram({
      name: 'slipway_conversation_start_seconds',
      help: 'Time from the request for a conversation to READY or ERROR',
      labels: { outcome: ['READY', 'ERROR'] },
      buckets: SECONDS,
    });
    metrics.addGauge({
      name: 'slipway_conversations',
      help: 'Conversations in running sandboxes by what their agents do',
      scope: 'database',
      label: 'execution_status',
      read: async () => withZeros(EXECUTION_STATUSES, await leases.countRunning()),
    });
    metrics.addGauge({
      name: 'slipway_conversation_starts',
      help: 'Starts of conversations by status: those under way, and those that ended within the last hour',
      scope: 'database',
      label: 'status',
      read: async () => withZeros(START_TASK_STATUSES, await startTasks.countRecentByStatus()),
    });
    metrics.addGauge({
      name: 'slipway_conversation_starts_waiting',
      help: 'Starts that wait for a place within the quota of their user, or for their sandbox to run',
      scope: 'database',
      label: 'waits_for',
      read: async () => new Map((await startTasks.waiting()).map(({ waitsFor, count }) => [waitsFor, count])),
    });
    metrics.addGauge({
      name: 'slipway_conversation_starts_oldest_wait_seconds',
      help: 'Time since the request for the start that has waited longest',
      scope: 'database',
      label: 'waits_for',
      read: async () =>
        new Map((await startTasks.waiting()).map(({ waitsFor, oldestSeconds }) => [waitsFor, oldestSeconds])),
    });
  }

  stepFinished(step: StartTaskStatus, milliseconds: number): void {
    if (!isFinished(step)) {
      this.steps.record({ step }, milliseconds / 1000);
    }
  }

  ready(task: StartTask): void {
    this.durations.record({ outcome: 'READY' }, this.secondsSince(task));
  }

  /** `task` is the task before it failed. */
  failed(task: StartTask, cause: StartFailureKind): void {
    this.durations.record({ outcome: 'ERROR' }, this.secondsSince(task));
    if (!isFinished(task.status)) {
      this.failures.record({ step: task.status, cause });
    }
  }

  private secondsSince({ createdAt }: StartTask): number {
    return Math.max(0, this.clock.now() - createdAt.getTime()) / 1000;
  }
}
