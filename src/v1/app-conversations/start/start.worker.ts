import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { DomainError } from '../../../common/errors/domain-error.js';
import { errorStack } from '../../../common/errors/error-message.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { JobAttempt } from '../../../database/jobs/job-queue.worker.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import { StartFailureHandler } from './start-failure.handler.js';
import { DEAD_STARTS, parseStartJob, startQueueOf } from './start-queue.js';
import { StartWorkflow } from './start-workflow.js';

/** Works on the starts of this host, and fails those of any host whose last attempt failed. */
@Injectable()
export class StartWorker implements OnModuleInit {
  private readonly logger = new Logger(StartWorker.name);

  constructor(
    private readonly jobs: DurableJobs,
    private readonly host: HostIdentity,
    private readonly workflow: StartWorkflow,
    private readonly failures: StartFailureHandler,
  ) {}

  onModuleInit(): void {
    this.jobs.handle(startQueueOf(this.host.id), (attempt) => this.work(attempt));
    this.jobs.handle(DEAD_STARTS, (attempt) => this.giveUp(attempt));
  }

  private async work({ data, signal }: JobAttempt): Promise<void> {
    const { taskId } = parseStartJob(data);
    try {
      await this.workflow.run(taskId, signal);
    } catch (error) {
      if (signal.aborted || error instanceof AgentServerError || error instanceof DomainError) {
        throw error;
      }
      // The user sees the error of the last attempt: nothing internal may be in it.
      this.logger.error('failed to start a conversation', { task_id: taskId }, errorStack(error));
      throw new Error('Something went wrong in the service; its log says what.', { cause: error });
    }
  }

  private async giveUp({ data, failure }: JobAttempt): Promise<void> {
    const cause =
      failure === null || failure === 'job heartbeat timeout'
        ? 'The processes that worked on it ended before it was done.'
        : failure;
    await this.failures.giveUp(
      parseStartJob(data).taskId,
      `The start was given up after several attempts. ${cause}`,
    );
  }
}
