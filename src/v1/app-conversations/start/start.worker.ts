import { createHash } from 'node:crypto';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '../../../common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { DurableJobs } from '../../../database/jobs/durable-jobs.js';
import { deadLetters, type JobAttempt, type JobQueue } from '../../../database/jobs/job-queue.worker.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { StartTask } from '../start-task.entity.js';
import { StartSuperseded, StartTaskRepository } from '../start-task.repository.js';
import { StartWorkflow } from './start-workflow.js';

/** Starts mostly wait: for quota, for a sandbox, for a clone. */
const CONCURRENCY = 100;
/** Finds jobs whose announcement was lost. */
const POLL_MS = 2_000;
const PLAIN_HOST_ID = /^[A-Za-z0-9._-]{1,100}$/;

const DEAD_STARTS = deadLetters('conversation-start-dead');

function startQueueOf(hostId: string): JobQueue {
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

interface StartJob {
  taskId: string;
}

@Injectable()
export class StartQueue {
  constructor(private readonly jobs: DurableJobs) {}

  /** Call it before the transaction of `send`: the queue of another host may not exist yet. */
  async prepare(hostId: string): Promise<void> {
    await this.jobs.prepare(startQueueOf(hostId));
  }

  /** The workflow runs from the commit until the task is finished. */
  async send(manager: EntityManager, { id, hostId }: Pick<StartTask, 'id' | 'hostId'>): Promise<void> {
    const job: StartJob = { taskId: id };
    await this.jobs.send(manager, startQueueOf(hostId).name, job);
  }

  /** For a start that was ended on behalf of its host: what waits for a lost one would alarm its operator. */
  async withdraw({ id, hostId }: Pick<StartTask, 'id' | 'hostId'>): Promise<void> {
    const job: StartJob = { taskId: id };
    await this.jobs.withdraw(startQueueOf(hostId).name, job);
  }
}

@Injectable()
export class StartWorker implements OnModuleInit {
  private readonly logger = new Logger(StartWorker.name);

  constructor(
    private readonly jobs: DurableJobs,
    private readonly host: HostIdentity,
    private readonly workflow: StartWorkflow,
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
      // Nothing internal: the user sees the last attempt's error.
      this.logger.error('failed to start a conversation', { task_id: taskId }, errorStack(error));
      throw new Error('Something went wrong in the service; its log says what.', { cause: error });
    }
  }

  private async giveUp({ data, failure }: JobAttempt): Promise<void> {
    const cause =
      failure === null || failure === 'job heartbeat timeout'
        ? 'The processes that worked on it ended before it was done.'
        : failure;
    await this.workflow.giveUp(
      parseStartJob(data).taskId,
      `The start was given up after several attempts. ${cause}`,
    );
  }
}

/** @throws TypeError for other data, which only a bug can send */
function parseStartJob(data: unknown): StartJob {
  const taskId = jsonText(data, 'taskId');
  if (taskId === null) {
    throw new TypeError('the job of a start has no task id');
  }
  return { taskId };
}

const SWEEP_MS = 30_000;
/** A host that is only restarted goes on with its starts. */
const GRACE_SECONDS = 60;

/** Fails the starts of lost hosts, whose queues no process works on. */
@Injectable()
export class AbandonedStartsReaper extends BackgroundLoop {
  /**
   * Epoch milliseconds. One sweep proves nothing: a stopping host deletes its heartbeat, and an outage of the database
   * makes all heartbeats old.
   */
  private lostSince = new Map<string, number>();

  constructor(
    private readonly tasks: StartTaskRepository,
    private readonly workflow: StartWorkflow,
    private readonly queue: StartQueue,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {
    super(SWEEP_MS, new Logger(AbandonedStartsReaper.name), 'failed to look for abandoned starts');
  }

  protected async work(): Promise<void> {
    const lostBefore = this.lostSince;
    this.lostSince = new Map();
    const tasks = await this.tasks.abandoned(this.host.id, GRACE_SECONDS);
    const now = this.clock.now();
    tasks.forEach(({ hostId }) => this.lostSince.set(hostId, lostBefore.get(hostId) ?? now));
    const isOverdue = ({ hostId }: StartTask): boolean =>
      now - (this.lostSince.get(hostId) ?? now) >= GRACE_SECONDS * 1000;
    await Promise.all(tasks.filter(isOverdue).map((task) => this.fail(task)));
  }

  /** Only if unchanged: another process may have failed it, or its host may be back. */
  private async fail(task: StartTask): Promise<void> {
    const { id, hostId } = task;
    try {
      await this.workflow.fail(
        task,
        'host_lost',
        `The start was abandoned: no process of its host ${hostId} is running.`,
      );
      await this.queue.withdraw(task);
      this.logger.warn('abandoned start of a lost host ended', { task_id: id, host_id: hostId });
    } catch (error) {
      if (!(error instanceof StartSuperseded)) {
        throw error;
      }
    }
  }
}
