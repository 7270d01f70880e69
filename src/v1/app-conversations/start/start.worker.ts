import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { mayAct } from '../../../auth/user.repository.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { type Lease, type LeaseEnd, LeasedRows, type LeasedTable } from '@slipway/database/leased-rows.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../../../database/leased-work.module.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { StartTask } from '../start-task.entity.js';
import { DUE_STARTS_CHANNEL, StartSuperseded, StartTaskRepository } from '../start-task.repository.js';
import { StartWorkflow } from './start-workflow.js';

const OPTIONS: LeasedWorkOptions = {
  queue: 'conversation-start',
  // Starts mostly wait: for quota, for a sandbox, for a clone. A few users may have as many wait as there are places.
  places: 100,
  reserved: 25,
  leaseMs: 15_000,
  pollMs: 2_000,
  mostAttempts: 4,
};
/** Pause before looking again at a start that a process of the previous release has taken over. */
const LOOK_AGAIN_MS = 60_000;

export interface LeasedStart extends Lease {
  traceparent: string | null;
}

const IS_UNFINISHED = `r.status NOT IN ('READY', 'ERROR') AND ${mayAct('r.user_id')}`;

/** Unfinished starts of a host. What takes one up counts in `attempt`, which the release before this one does too. */
export function startsOf(hostId: string): LeasedTable {
  return {
    table: 'app_conversation_start_tasks',
    key: { column: 'id', type: 'uuid' },
    owner: 'r.user_id',
    condition: `${IS_UNFINISHED} AND r.host_id = $8`,
    counted: IS_UNFINISHED,
    values: [hostId],
    returning: 'r.traceparent',
    channel: DUE_STARTS_CHANNEL,
    payload: hostId,
  };
}

@Injectable()
export class StartWorker extends ServiceLeasedWorker<LeasedStart> {
  constructor(
    dataSource: DataSource,
    shared: LeasedWork,
    host: HostIdentity,
    private readonly workflow: StartWorkflow,
  ) {
    const rows = new LeasedRows<LeasedStart>(dataSource, shared.clock, startsOf(host.id));
    super(OPTIONS, shared, rows, new Logger(StartWorker.name));
    shared.count(OPTIONS.queue, () => rows.backlog());
  }

  protected async work({ id }: LeasedStart, signal: AbortSignal): Promise<LeaseEnd> {
    try {
      await this.workflow.run(id, signal);
      return { dueAt: new Date(this.shared.clock.now() + LOOK_AGAIN_MS) };
    } catch (error) {
      if (signal.aborted || error instanceof AgentServerError || error instanceof DomainError) {
        throw error;
      }
      // Nothing internal: the user sees the last attempt's error.
      this.logger.error('failed to start a conversation', { task_id: id }, errorStack(error));
      throw new Error('Something went wrong in the service; its log says what.', { cause: error });
    }
  }

  protected override async giveUp({ id }: LeasedStart, failure: string | null): Promise<void> {
    const cause = failure ?? 'The processes that worked on it ended before it was done.';
    await this.workflow.giveUp(id, `The start was given up after several attempts. ${cause}`);
  }

  protected override traceparentOf({ traceparent }: LeasedStart): string | null {
    return traceparent;
  }
}

const SWEEP_MS = 30_000;
/** A host that is only restarted goes on with its starts. */
const GRACE_SECONDS = 60;

/** Fails the starts of lost hosts, which no process of another one may take. */
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
      this.logger.warn('abandoned start of a lost host ended', { task_id: id, host_id: hostId });
    } catch (error) {
      if (!(error instanceof StartSuperseded)) {
        throw error;
      }
    }
  }
}
