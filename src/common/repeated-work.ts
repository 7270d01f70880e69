import { AsyncResource } from 'node:async_hooks';

/**
 * Work that is done again and again, at most one run at a time. What it throws goes to `onError`, and the next run comes
 * all the same; of failures in a row that say the same only the first is told, so that an outage of hours fills no log.
 * The timer keeps no process alive.
 */
export class RepeatedWork {
  /** Runs belong to nobody's request, whoever asked for them: their log lines must not say so. */
  private readonly scope = new AsyncResource('RepeatedWork');
  private timer: NodeJS.Timeout | undefined;
  private current: Promise<void> | null = null;
  private stopped = false;
  private lastFailure: string | null = null;

  /** @param everyMs pause between the beginnings of two runs; a run that takes longer delays the next one */
  constructor(
    private readonly everyMs: number,
    private readonly work: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  start(): void {
    this.timer ??= setInterval(() => void this.run(), this.everyMs).unref();
  }

  /**
   * Runs at once. During a run it is run once more right after, since that run may have looked too early.
   *
   * @returns when a run that began after this call has ended
   */
  async now(): Promise<void> {
    await this.current;
    await this.run();
  }

  /** No run begins any more; returns when the current one has ended. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearInterval(this.timer);
    await this.current;
  }

  private run(): Promise<void> {
    if (this.stopped) {
      return Promise.resolve();
    }
    this.current ??= this.scope.runInAsyncScope(() => this.runOnce());
    return this.current;
  }

  private async runOnce(): Promise<void> {
    try {
      await this.work();
      this.lastFailure = null;
    } catch (error) {
      this.tell(error);
    } finally {
      this.current = null;
    }
  }

  private tell(error: unknown): void {
    const failure = error instanceof Error ? error.message : String(error);
    if (failure !== this.lastFailure) {
      this.lastFailure = failure;
      this.onError(error);
    }
  }
}
