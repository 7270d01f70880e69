import { AsyncResource } from 'node:async_hooks';
import pLimit, { type LimitFunction } from 'p-limit';
import { errorMessage } from './errors/error-message.js';

/** Returns null when the result takes longer. The work goes on; the timer keeps no process alive. */
export async function within<T>(milliseconds: number, result: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), milliseconds);
  timer.unref();
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects with what `late` makes when the work takes longer; what is waited for goes on. */
export async function inTime<T>(milliseconds: number, work: Promise<T>, late: () => Error): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(late()), milliseconds);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Limits how many tasks of each key run at once; keys do not wait for each other. */
export class KeyedLimit {
  private readonly limits = new Map<string, LimitFunction>();

  constructor(private readonly max: number) {}

  get size(): number {
    return this.limits.size;
  }

  waiting(key: string): number {
    return this.limits.get(key)?.pendingCount ?? 0;
  }

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

/** Writes values one after the other; of those that arrive during a write, only the last is written. */
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

/** Spreads what many processes began to repeat at the same moment. */
export function jittered(milliseconds: number): number {
  return milliseconds * (0.9 + Math.random() / 5);
}

/** Repeats work, one run at a time, also after failures; of equal failures in a row only the first is reported. */
export class RepeatedWork {
  /** Runs belong to no request, so their log lines must not carry the id of one. */
  private readonly scope = new AsyncResource('RepeatedWork');
  private timer: NodeJS.Timeout | undefined;
  /** Monotonic milliseconds of the next run by itself. */
  private nextAt = Infinity;
  private current: Promise<void> | null = null;
  private isRepeating = false;
  private stopped = false;
  private lastFailure: string | null = null;

  /** @param work may return the milliseconds until the next run; otherwise that is about `everyMs` later */
  constructor(
    private readonly everyMs: number,
    private readonly work: () => Promise<number | void>,
    private readonly onError: (error: unknown) => void,
  ) {}

  start(): void {
    this.isRepeating = true;
    this.within(jittered(this.everyMs));
  }

  /** Runs in so many milliseconds, unless that happens before. */
  within(milliseconds: number): void {
    const at = performance.now() + milliseconds;
    if (this.isRepeating && !this.stopped && at < this.nextAt) {
      this.nextAt = at;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.now(), milliseconds).unref();
    }
  }

  /** Runs now, or once more after the current run, which may have looked too early. */
  async now(): Promise<void> {
    await this.current;
    await this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
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
    clearTimeout(this.timer);
    this.nextAt = Infinity;
    let pauseMs: number | void = undefined;
    try {
      pauseMs = await this.work();
      this.lastFailure = null;
    } catch (error) {
      this.report(error);
    } finally {
      this.current = null;
      this.within(pauseMs ?? jittered(this.everyMs));
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

/** Waits for all, also where one fails: what goes on behind a failure would make again what is removed after it. @throws the first failure, in their order */
export async function allEnded(work: readonly unknown[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) {
    throw failed.reason;
  }
}
