import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DomainError } from '../../../common/errors/domain-error.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { JobAttempt } from '../../../database/jobs/job-queue.js';
import { AgentServerError } from '../../agent-servers/agent-server.error.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { readStartJob } from './start-job.js';
import { DEAD_STARTS, startQueue } from './start-queue.js';
import { StartWalker } from './start-walker.js';
import { StartEnds } from './start-ends.js';

/** Works on the starts of this host, and ends those that were given up anywhere. */
@Injectable()
export class StartWorker implements OnModuleInit {
  private readonly logger = new Logger(StartWorker.name);

  constructor(
    private readonly jobs: DurableJobs,
    private readonly host: HostIdentity,
    private readonly walker: StartWalker,
    private readonly ends: StartEnds,
  ) {}

  onModuleInit(): void {
    this.jobs.handle(startQueue(this.host.id), (attempt) => this.work(attempt));
    this.jobs.handle(DEAD_STARTS, (attempt) => this.bury(attempt));
  }

  private async work({ data, signal }: JobAttempt): Promise<void> {
    try {
      await this.walker.walk(readStartJob(data).taskId, signal);
    } catch (error) {
      if (signal.aborted || error instanceof AgentServerError || error instanceof DomainError) {
        throw error;
      }
      // Whatever the last attempt fails with is shown to the user: nothing from inside.
      this.logger.error('a start failed', error instanceof Error ? error.stack : String(error));
      throw new Error('Something went wrong in the service; its log says what.', { cause: error });
    }
  }

  private async bury({ data, failure }: JobAttempt): Promise<void> {
    const cause =
      failure === null || failure === 'job heartbeat timeout'
        ? 'The processes that worked on it ended before it was done.'
        : failure;
    await this.ends.giveUp(
      readStartJob(data).taskId,
      `The start was given up after several attempts. ${cause}`,
    );
  }
}
