import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nestjs/common';
import type { JobWithMetadata, PgBoss } from 'pg-boss';
import { errorMessage, errorStack } from '../../common/errors/error-message.js';
import { jsonText } from '../../common/json-access.js';

/** A queue of jobs that survive the process that sent them. */
export interface JobQueue {
  /** Letters, digits, `-`, `_`, `.`. */
  name: string;
  /** Where a job goes whose attempts all failed; a queue without one keeps it as failed. */
  deadLetter: string | null;
  /** Further attempts after the first one. */
  retryLimit: number;
  /** Seconds before the second attempt; doubled for each further one. */
  retryDelaySeconds: number;
  /** Jobs of this queue that one process works on at the same time. */
  concurrency: number;
  /** How often this process looks for jobs that others sent, milliseconds. */
  pollMs: number;
}

/** One attempt at a job. */
export interface JobAttempt {
  /** As it was sent. */
  data: unknown;
  /**
   * Aborts when the process stops, and when the job was given to somebody else: whoever works on it ends as soon as it
   * can, and the job begins anew elsewhere.
   */
  signal: AbortSignal;
  /** In a queue of dead letters: what the last attempt failed with. */
  failure: string | null;
}

/**
 * Does a job. When it throws, the job is tried again later.
 */
export type JobHandler = (attempt: JobAttempt) => Promise<void>;

/** pg-boss gives a job to somebody else when it hears nothing for this long; less is not possible. */
export const HEARTBEAT_SECONDS = 10;
const TOUCH_MS = 3_000;
const MOST_AT_ONCE = 10;
/** A job that does not end by then is somebody else's after the heartbeat's time. */
const STOP_PATIENCE_MS = 10_000;

/** What a loop does with jobs that it does not finish. */
interface JobReturn {
  /** Gives a job back without counting the attempt: the process stops. */
  handBack(job: JobWithMetadata): Promise<void>;
}

/** Fetches the jobs of one queue and works on several of them at the same time. */
export class JobLoop {
  readonly #boss: PgBoss;
  readonly #queue: JobQueue;
  readonly #handler: JobHandler;
  readonly #returns: JobReturn;
  readonly #logger: Logger;
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #wakeUp = new AbortController();
  #loop: Promise<void> | null = null;

  constructor(boss: PgBoss, queue: JobQueue, handler: JobHandler, returns: JobReturn, logger: Logger) {
    this.#boss = boss;
    this.#queue = queue;
    this.#handler = handler;
    this.#returns = returns;
    this.#logger = logger;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  /** Looks for jobs now. */
  wake(): void {
    this.#wakeUp.abort();
  }

  /** Takes no more jobs, tells those in work to end, and gives back what was not finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#loop;
    const over = new AbortController();
    const patience = delay(STOP_PATIENCE_MS, undefined, { signal: over.signal }).catch(() => undefined);
    await Promise.race([Promise.all(this.#running), patience]);
    over.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#wakeUp = new AbortController();
      const found = await this.#fetch();
      for (const job of found) {
        const work: Promise<void> = this.#work(job).finally(() => {
          this.#running.delete(work);
          this.wake();
        });
        this.#running.add(work);
      }
      if (found.length === 0 || this.#room() === 0) {
        await this.#rest();
      }
    }
  }

  #room(): number {
    return this.#queue.concurrency - this.#running.size;
  }

  async #rest(): Promise<void> {
    if (this.#wakeUp.signal.aborted) {
      return;
    }
    await delay(this.#queue.pollMs, undefined, { signal: this.#wakeUp.signal, ref: false }).catch(
      (error: unknown) => {
        if (!this.#wakeUp.signal.aborted) {
          throw error;
        }
      },
    );
  }

  async #fetch(): Promise<JobWithMetadata[]> {
    const room = this.#room();
    if (room <= 0) {
      return [];
    }
    try {
      return await this.#boss.fetch<object>(this.#queue.name, {
        batchSize: Math.min(room, MOST_AT_ONCE),
        includeMetadata: true,
      });
    } catch (error) {
      // The database is away; the next round asks again.
      this.#logger.warn(`jobs cannot be fetched: ${errorMessage(error)}`);
      return [];
    }
  }

  async #work(job: JobWithMetadata): Promise<void> {
    const lost = new AbortController();
    const touching = setInterval(() => void this.#touch(job, lost), TOUCH_MS);
    try {
      await this.#handler({
        data: job.data,
        signal: AbortSignal.any([this.#stopping.signal, lost.signal]),
        failure: jsonText(job.sourceOutput, 'message') ?? jsonText(job.sourceOutput, 'value', 'message'),
      });
      await this.#boss.complete(this.#queue.name, job);
    } catch (error) {
      await this.#giveUp(job, lost.signal.aborted, error);
    } finally {
      clearInterval(touching);
    }
  }

  async #giveUp(job: JobWithMetadata, isLost: boolean, error: unknown): Promise<void> {
    try {
      if (isLost) {
        this.#logger.warn(`a job was given to another worker: ${errorMessage(error)}`);
      } else if (this.#stopping.signal.aborted) {
        await this.#returns.handBack(job);
      } else {
        this.#logger.error(`a job failed (${this.#queue.name})`, errorStack(error));
        await this.#boss.fail(this.#queue.name, job, { message: errorMessage(error) });
      }
    } catch (failure) {
      // Nobody vouches for it any more, so it is somebody's again after the heartbeat's time.
      this.#logger.warn(`a job could not be given back: ${errorMessage(failure)}`);
    }
  }

  async #touch(job: JobWithMetadata, lost: AbortController): Promise<void> {
    try {
      const answer: { affected?: number } = await this.#boss.touch(this.#queue.name, job);
      if (answer.affected === 0) {
        lost.abort(new Error('the job is not ours any more'));
      }
    } catch (error) {
      this.#logger.warn(`a job's heartbeat failed: ${errorMessage(error)}`);
    }
  }
}
