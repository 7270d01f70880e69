import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '../../../common/clock.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { StartTask } from '../start-task.entity.js';
import { StartSuperseded, StartTaskRepository } from '../start-task.repository.js';
import { StartFailureHandler } from './start-failure.handler.js';
import { StartQueue } from './start.worker.js';

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
    private readonly failures: StartFailureHandler,
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
      await this.failures.fail(
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
