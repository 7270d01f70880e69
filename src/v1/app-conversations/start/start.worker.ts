import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import { RepeatedWork } from '../../../common/async.js';
import { Clock } from '../../../common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { errorStack } from '../../../common/errors/error-message.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import type { JobAttempt } from '../../../database/jobs/job-queue.worker.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { StartTask } from '../start-task.entity.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { StartSuperseded } from './start-errors.js';
import { DEAD_STARTS, readStartJob, startQueue } from './start-queue.js';
import { StartEnds, StartWorkflow } from './start-workflow.js';

const LOOK_MS = 30_000;
/** How long a host may be away: one that is started again goes on with its starts. */
const PATIENCE_SECONDS = 60;

/** Ends the starts of hosts that are gone: their jobs are in queues that nobody works on any more. */
@Injectable()
export class AbandonedStarts implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(AbandonedStarts.name);
  private readonly loop = new RepeatedWork(
    LOOK_MS,
    () => this.giveUp(),
    (error) => {
      this.logger.error('looking for starts of hosts that are gone failed', errorStack(error));
    },
  );

  /**
   * Since when hosts are missed, epoch milliseconds. One that stops takes its sign of life away, and after an outage of
   * the database everybody's is old: what one look finds says nothing.
   */
  private missed = new Map<string, number>();

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly ends: StartEnds,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  /** Looks now, instead of within half a minute. */
  async look(): Promise<void> {
    await this.loop.now();
  }

  private async giveUp(): Promise<void> {
    const missedBefore = this.missed;
    // A look that fails has missed nobody.
    this.missed = new Map();
    const tasks = await this.tasks.withoutHost(this.host.id, PATIENCE_SECONDS);
    const now = this.clock.now();
    tasks.forEach(({ hostId }) => this.missed.set(hostId, missedBefore.get(hostId) ?? now));
    const isGone = ({ hostId }: StartTask): boolean =>
      now - (this.missed.get(hostId) ?? now) >= PATIENCE_SECONDS * 1000;
    await Promise.all(tasks.filter(isGone).map((task) => this.end(task)));
  }

  /** As it was found only: another process may have ended it meanwhile, or its host be back. */
  private async end(task: StartTask): Promise<void> {
    const { id, hostId } = task;
    try {
      await this.ends.fail(task, `Its host ${hostId} does nothing about it: no process of that host runs.`);
      this.logger.warn('ended a start whose host is gone', { task_id: id, host_id: hostId });
    } catch (error) {
      if (!(error instanceof StartSuperseded)) {
        throw error;
      }
    }
  }
}

/** Works on the starts of this host, and ends those that were given up anywhere. */
@Injectable()
export class StartWorker implements OnModuleInit {
  private readonly logger = new Logger(StartWorker.name);

  constructor(
    private readonly jobs: DurableJobs,
    private readonly host: HostIdentity,
    private readonly walker: StartWorkflow,
    private readonly ends: StartEnds,
  ) {}

  onModuleInit(): void {
    this.jobs.handle(startQueue(this.host.id), (attempt) => this.work(attempt));
    this.jobs.handle(DEAD_STARTS, (attempt) => this.bury(attempt));
  }

  private async work({ data, signal }: JobAttempt): Promise<void> {
    try {
      await this.walker.run(readStartJob(data).taskId, signal);
    } catch (error) {
      if (signal.aborted || error instanceof AgentServerError || error instanceof DomainError) {
        throw error;
      }
      // Whatever the last attempt fails with is shown to the user: nothing from inside.
      this.logger.error('a start failed', errorStack(error));
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
