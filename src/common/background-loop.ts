import { type BeforeApplicationShutdown, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';

/** A service that repeats its work from the start of the application to its shutdown. */
export abstract class BackgroundLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected readonly loop: RepeatedWork;

  /** @param failure what the log says when the work fails; a warning where the next turn makes up for it */
  protected constructor(
    everyMs: number,
    protected readonly logger: Logger,
    failure: string,
    level: 'error' | 'warn' = 'error',
  ) {
    this.loop = new RepeatedWork(
      everyMs,
      () => this.work(),
      (error) =>
        level === 'warn'
          ? logger.warn(failure, { error: errorMessage(error) })
          : logger.error(failure, errorStack(error)),
    );
  }

  onApplicationBootstrap(): void | Promise<void> {
    this.loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  /** Works now instead of at the next turn, and waits for it. */
  async now(): Promise<void> {
    await this.loop.now();
  }

  protected abstract work(): Promise<void>;
}
