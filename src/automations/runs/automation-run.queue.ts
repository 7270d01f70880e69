import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { jsonText } from '@slipway/common/json-access.js';
import { DurableJobs } from '../../database/jobs/durable-jobs.js';
import type { JobHandler, JobQueue } from '../../database/jobs/job-queue.worker.js';

const DEAD_RUNS: JobQueue = {
  name: 'automation-run-dead',
  kind: 'automation-run-dead',
  deadLetter: null,
  retryLimit: 10,
  retryDelaySeconds: 1,
  concurrency: 5,
  pollMs: 5_000,
};

/** The attempts of a run last about two hours, since what its owner may start has a limit, too. */
const RUNS: JobQueue = {
  name: 'automation-run',
  kind: 'automation-run',
  deadLetter: DEAD_RUNS.name,
  retryLimit: 10,
  retryDelaySeconds: 4,
  concurrency: 20,
  pollMs: 2_000,
};

interface RunAttempt {
  runId: string;
  failure: string | null;
}

/** Begins runs: a job exists from the commit that made or freed the run. */
@Injectable()
export class AutomationRunQueue {
  constructor(private readonly jobs: DurableJobs) {}

  /** Called before the application has started. */
  handle(
    begin: (attempt: RunAttempt) => Promise<void>,
    giveUp: (attempt: RunAttempt) => Promise<void>,
  ): void {
    this.jobs.handle(RUNS, toHandler(begin));
    this.jobs.handle(DEAD_RUNS, toHandler(giveUp));
  }

  /** Call it before the transaction of `send`. */
  async prepare(): Promise<void> {
    await this.jobs.prepare(RUNS);
  }

  async send(manager: EntityManager, runId: string): Promise<void> {
    await this.jobs.send(manager, RUNS.name, { runId });
  }
}

function toHandler(handle: (attempt: RunAttempt) => Promise<void>): JobHandler {
  return async ({ data, failure }) => {
    const runId = jsonText(data, 'runId');
    if (runId === null) {
      throw new TypeError('the job of a run has no id');
    }
    await handle({ runId, failure });
  };
}
