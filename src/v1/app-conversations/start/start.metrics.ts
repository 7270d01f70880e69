import { Injectable } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { type Instrument, Metrics } from '../../../observability/metrics.js';
import {
  isFinished,
  START_TASK_STATUSES,
  type StartTask,
  type StartTaskStatus,
} from '../start-task.entity.js';
import { START_FAILURE_KINDS, type StartFailureKind } from './start-failure.js';

type StepName = Exclude<StartTaskStatus, 'READY' | 'ERROR'>;

/** Each status that is not the end is a step. */
const STEPS = START_TASK_STATUSES.filter((status): status is StepName => !isFinished(status));
const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200];

@Injectable()
export class StartMetrics {
  private readonly failures: Instrument<{ step: typeof STEPS; cause: typeof START_FAILURE_KINDS }>;
  private readonly steps: Instrument<{ step: typeof STEPS }>;
  private readonly durations: Instrument<{ outcome: readonly ['READY', 'ERROR'] }>;

  constructor(
    metrics: Metrics,
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
