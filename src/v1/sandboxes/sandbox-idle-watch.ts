import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../common/repeated-work.js';
import { AppConfig } from '../../config/app-config.js';
import { SandboxRest } from './sandbox-rest.js';

const LONGEST_MS = 30_000;
const SHORTEST_MS = 1_000;
/** A quarter of the time that is watched: nothing is paused or removed much later than it should be. */
const SHARE = 4;

/** Looks for sandboxes that nothing happened in for too long. */
@Injectable()
export class SandboxIdleWatch implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop: RepeatedWork;

  constructor(
    private readonly rest: SandboxRest,
    { sandboxes: { idleTimeoutSeconds, retentionSeconds } }: AppConfig,
  ) {
    const times = [idleTimeoutSeconds, retentionSeconds].filter((seconds) => seconds > 0);
    const everyMs = (Math.min(...times, Number.MAX_SAFE_INTEGER) * 1000) / SHARE;
    this.loop = new RepeatedWork(
      Math.min(Math.max(everyMs, SHORTEST_MS), LONGEST_MS),
      () => this.look(),
      (error) => {
        this.logger.error(
          'looking for idle sandboxes failed',
          error instanceof Error ? error.stack : String(error),
        );
      },
    );
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  /**
   * Pauses what is idle, removes what has not run for too long, gives up what nobody works on or has, and forgets what
   * nobody will remove.
   */
  async look(): Promise<void> {
    await this.rest.pauseIdle();
    await this.rest.removeOld();
    await this.rest.giveUpAbandoned();
    await this.rest.giveUpLost();
    await this.rest.forgetUnremoved();
  }
}
