import { AsyncResource } from 'node:async_hooks';
import pLimit, { type LimitFunction } from 'p-limit';
import { errorMessage } from './errors/error-message.js';

/** Limits how many tasks of each key run at once; keys do not wait for each other. */
export class KeyedLimit {
  private readonly limits = new Map<string, LimitFunction>();

  constructor(private readonly max: number) {}

  /** Keys with tasks that run or wait. */
  get size(): number {
    return this.limits.size;
  }

  /** Tasks of a key that wait for room. */
  waiting(key: string): number {
    return this.limits.get(key)?.pendingCount ?? 0;
  }

  /** Runs the task when its key has room for it, in the order of the calls, and settles as the task does. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const limit = this.limits.get(key) ?? pLimit(this.max);
    this.limits.set(key, limit);
    try {
      return await limit(task);
    } finally {
      const isIdle = limit.activeCount + limit.pendingCount === 0;
      if (isIdle && this.limits.get(key) === limit) {
        this.limits.delete(key);
      }
    }
  }
}

/** Writes values one after the other. Of the values that arrive during a write, only the last is written. */
export class LatestWrite<T> {
  private next: { value: T } | null = null;
  private writing = false;

  constructor(
    private readonly write: (value: T) => Promise<unknown>,
    private readonly onError: (error: unknown) => void,
  ) {}

  put(value: T): void {
    this.next = { value };
    if (!this.writing) {
      this.writing = true;
      void this.drain();
    }
  }

  private async drain(): Promise<void> {
    while (this.next) {
      const { value } = this.next;
      this.next = null;
      try {
        await this.write(value);
      } catch (error) {
        this.onError(error);
      }
    }
    this.writing = false;
  }
}

/**
 * Work that is repeated, at most one run at a time. What a run throws goes to `onError` and the next run follows all the
 * same. Of equal failures in a row only the first is reported, so that an outage of hours does not fill the log. The
 * timer keeps no process alive.
 */
export class RepeatedWork {
  /** A run belongs to no request, whoever asked for it, so its log lines must not carry one's id. */
  private readonly scope = new AsyncResource('RepeatedWork');
  private timer: NodeJS.Timeout | undefined;
  private current: Promise<void> | null = null;
  private stopped = false;
  private lastFailure: string | null = null;

  /** @param everyMs from the beginning of one run to the next; a run that takes longer delays the next one */
  constructor(
    private readonly everyMs: number,
    private readonly work: () => Promise<void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  start(): void {
    this.timer ??= setInterval(() => void this.run(), this.everyMs).unref();
  }

  /**
   * Runs now, or right after the current run, which may have looked too early.
   *
   * @returns when a run that began after this call has ended
   */
  async now(): Promise<void> {
    await this.current;
    await this.run();
  }

  /** Begins no more runs, and waits for the current one. */
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
      this.report(error);
    } finally {
      this.current = null;
    }
  }

  private report(error: unknown): void {
    const failure = errorMessage(error);
    if (failure !== this.lastFailure) {
      this.lastFailure = failure;
      this.onError(error);
    }
  }
}
