import { AsyncResource } from 'node:async_hooks';
import { errorMessage } from './errors/error-message.js';

/** Lets at most `max` tasks run at the same time; the others wait in the order they came. */
export class ConcurrencyLimit {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  /** Runs the task as soon as there is room, and settles as the task does. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.running < this.max) {
      this.running += 1;
    } else {
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
      });
    }
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next) {
        // The place is handed over as it is: a newcomer cannot slip in between.
        next();
      } else {
        this.running -= 1;
      }
    }
  }
}

/** Runs what is asked for under one key one after the other. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Answers what the work answers, once everything that was asked for before under this key is done. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    // Whoever asked for it hears of its failure.
    const own = before.then(work, work);
    this.#last.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === own) {
        this.#last.delete(key);
      }
    }
  }
}

/** Writes values one after the other; of those that come during a write only the last one is written. */
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
    const failure = errorMessage(error);
    if (failure !== this.lastFailure) {
      this.lastFailure = failure;
      this.onError(error);
    }
  }
}
