import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { jsonText } from '../../../common/json-access.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { JobQueue } from '../../../database/jobs/job-queue.worker.js';
import type { StartTask } from '../start-task.entity.js';

/** Much of a start is waiting: for a place, for a sandbox, for a clone. */
const CONCURRENCY = 100;
/** Starts are announced; this is for announcements that were missed. */
const POLL_MS = 2_000;
const DEAD_POLL_MS = 5_000;
const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/** Starts that were given up. */
export const DEAD_STARTS: JobQueue = {
  name: 'conversation-start-dead',
  deadLetter: null,
  retryLimit: 10,
  retryDelaySeconds: 1,
  concurrency: 10,
  pollMs: DEAD_POLL_MS,
};

/** The starts in sandboxes of one host. */
export function startQueue(hostId: string): JobQueue {
  const name = NAME.test(hostId) ? hostId : createHash('sha256').update(hostId).digest('hex');
  return {
    name: `conversation-start-${name}`,
    deadLetter: DEAD_STARTS.name,
    retryLimit: 3,
    retryDelaySeconds: 1,
    concurrency: CONCURRENCY,
    pollMs: POLL_MS,
  };
}

/** Sends the jobs of starts to the hosts of their sandboxes. */
@Injectable()
export class StartJobs {
  constructor(private readonly jobs: DurableJobs) {}

  /** To be called before the transaction of `send`: another host's queue may not be there yet. */
  async prepare(hostId: string): Promise<void> {
    await this.jobs.prepare(startQueue(hostId));
  }

  /** Has the task walked once the caller's transaction is committed, at once and until it is over. */
  async send(manager: EntityManager, { id, hostId }: Pick<StartTask, 'id' | 'hostId'>): Promise<void> {
    const job: StartJob = { taskId: id };
    await this.jobs.send(manager, startQueue(hostId).name, job);
  }
}

/** What the job of a start carries: the row is the truth, so only its id. */
interface StartJob {
  taskId: string;
}

/** @throws TypeError for something else, which only a fault of ours can send */
export function readStartJob(data: unknown): StartJob {
  const taskId = jsonText(data, 'taskId');
  if (taskId === null) {
    throw new TypeError('a job of a start names no task');
  }
  return { taskId };
}
