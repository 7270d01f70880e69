import { type BeforeApplicationShutdown, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { RepeatedWork, within } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';

/** What goes on beside the turns may wait for others, such as git hosts, for longer than a stop may last. */
const STOP_GRACE_MS = 10_000;

/** A service that repeats its work from the start of the application to its shutdown. */
export abstract class BackgroundLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected readonly loop: RepeatedWork;
  protected stopping = false;
  private readonly begun = new Set<Promise<void>>();

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
    this.stopping = true;
    await this.loop.stop();
    await within(STOP_GRACE_MS, Promise.all(this.begun));
  }

  /** Works now instead of at the next turn, and waits for it and for what goes on beside the turns. */
  async now(): Promise<void> {
    await this.loop.now();
    await Promise.all(this.begun);
  }

  /** Starts work that the loop's turns do not wait for, but a stop of the service does. It must not reject. */
  protected beside(work: Promise<void>): void {
    this.begun.add(work);
    void work.finally(() => this.begun.delete(work));
  }

  /** May return the milliseconds until the next turn. */
  protected abstract work(): Promise<number | void>;
}
