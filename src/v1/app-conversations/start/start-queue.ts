import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { jsonText } from '../../../common/json-access.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { JobQueue } from '../../../database/jobs/job-queue.worker.js';
import type { StartTask } from '../start-task.entity.js';

/** Much of a start is waiting: for quota, for a sandbox, for a clone. */
const CONCURRENCY = 100;
/** Jobs are announced; polling finds those whose announcement was lost. */
const POLL_MS = 2_000;
const DEAD_POLL_MS = 5_000;
const PLAIN_HOST_ID = /^[A-Za-z0-9._-]{1,100}$/;

/** Starts whose last attempt failed. */
export const DEAD_STARTS: JobQueue = {
  name: 'conversation-start-dead',
  kind: 'conversation-start-dead',
  deadLetter: null,
  retryLimit: 10,
  retryDelaySeconds: 1,
  concurrency: 10,
  pollMs: DEAD_POLL_MS,
};

/** The starts in sandboxes of one host. */
export function startQueueOf(hostId: string): JobQueue {
  const name = PLAIN_HOST_ID.test(hostId) ? hostId : createHash('sha256').update(hostId).digest('hex');
  return {
    name: `conversation-start-${name}`,
    kind: 'conversation-start',
    deadLetter: DEAD_STARTS.name,
    retryLimit: 3,
    retryDelaySeconds: 1,
    concurrency: CONCURRENCY,
    pollMs: POLL_MS,
  };
}

/** The row is the truth, so a job carries only its id. */
interface StartJob {
  taskId: string;
}

/** Sends the jobs of starts to the hosts of their sandboxes. */
@Injectable()
export class StartQueue {
  constructor(private readonly jobs: DurableJobs) {}

  /** To be called before the transaction of `send`: the queue of another host may not exist yet. */
  async prepare(hostId: string): Promise<void> {
    await this.jobs.prepare(startQueueOf(hostId));
  }

  /** Has the workflow run for the task as soon as the caller's transaction is committed, and until it is finished. */
  async send(manager: EntityManager, { id, hostId }: Pick<StartTask, 'id' | 'hostId'>): Promise<void> {
    const job: StartJob = { taskId: id };
    await this.jobs.send(manager, startQueueOf(hostId).name, job);
  }
}

/** @throws TypeError for other data, which only a bug can send */
export function parseStartJob(data: unknown): StartJob {
  const taskId = jsonText(data, 'taskId');
  if (taskId === null) {
    throw new TypeError('the job of a start has no task id');
  }
  return { taskId };
}
