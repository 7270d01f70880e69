import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { RepeatedWork } from '../../../common/repeated-work.js';
import { HostIdentity } from '../../sandboxes/host-identity.js';
import type { StartTask } from '../start-task.entity.js';
import { StartEnded } from './start-ended.js';
import { StartEnds } from './start-ends.js';
import { StartTaskStore } from './start-task.store.js';

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
      this.logger.error(
        'looking for starts of hosts that are gone failed',
        error instanceof Error ? error.stack : String(error),
      );
    },
  );

  /**
   * Since when hosts are missed, epoch milliseconds. One that stops takes its sign of life away, and after an outage of
   * the database everybody's is old: what one look finds says nothing.
   */
  private missed = new Map<string, number>();

  constructor(
    private readonly tasks: StartTaskStore,
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
      if (!(error instanceof StartEnded)) {
        throw error;
      }
    }
  }
}
