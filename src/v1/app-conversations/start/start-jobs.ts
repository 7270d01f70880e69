import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { StartTask } from '../start-task.entity.js';
import type { StartJob } from './start-job.js';
import { startQueue } from './start-queue.js';

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
