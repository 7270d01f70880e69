import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nestjs/common';
import { SpanKind } from '@opentelemetry/api';
import type { JobResult, JobWithMetadata, PgBoss } from 'pg-boss';
import { within } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isDatabaseAway } from '../../common/errors/database-failure.js';
import { currentTraceparent, type SpanStart, tracedFrom } from '../../common/spans.js';

export interface JobQueue {
  name: string;
  /** In metrics, shared with the same queues of other hosts: the name or its beginning. */
  kind: string;
  /** Gets jobs whose attempts all failed; without it they are kept as failed. */
  deadLetter: string | null;
  retryLimit: number;
  /** Before the second attempt; doubled for each further one. */
  retryDelaySeconds: number;
  concurrency: number;
  /** Finds retries that fall due, and jobs whose notification was lost. */
  pollMs: number;
}

/** The queue of jobs whose attempts all failed. */
export function deadLetters(name: string): JobQueue {
  const rare = { concurrency: 10, pollMs: 5_000 };
  return { name, kind: name, deadLetter: null, retryLimit: 10, retryDelaySeconds: 1, ...rare };
}

export interface JobAttempt {
  data: unknown;
  /** Aborts when the process stops, or when another worker has got the job: the handler ends soon. */
  signal: AbortSignal;
  failure: string | null;
}

/** A throw means another attempt later, which counts unless PostgreSQL was away. */
export type JobHandler = (attempt: JobAttempt) => Promise<void>;

/** Without a heartbeat for this long, pg-boss gives a job to another worker; its minimum. */
export const HEARTBEAT_SECONDS = 10;
const HEARTBEAT_REFRESH_SECONDS = 3;
/** Workers are woken; their own polling is off. */
const NO_POLLING_SECONDS = 24 * 3600;
/** A handler that has not ended by then loses its job to another worker. */
const STOP_GRACE_MS = 10_000;
/** A statement that never succeeds may look like an outage, so outages count after these. */
const MAX_OUTAGES = 20;

/** Replaces a job with a new one with the data, so that its attempt does not count. */
export type HandBack = (job: JobWithMetadata, data: object) => Promise<void>;

/**
 * Works on one queue. Waking all pg-boss workers would cost a query each, so one idle worker is woken, and wakes the
 * next when it finds a job: a lone job costs two queries.
 */
export class JobQueueWorker {
  readonly #boss: PgBoss;
  readonly #queue: JobQueue;
  readonly #handler: JobHandler;
  readonly #handBack: HandBack;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #idle = new Set<string>();
  #workers = 0;
  #poll: NodeJS.Timeout | undefined;

  constructor(boss: PgBoss, queue: JobQueue, handler: JobHandler, handBack: HandBack, logger: Logger) {
    this.#boss = boss;
    this.#queue = queue;
    this.#handler = handler;
    this.#handBack = handBack;
    this.#logger = logger;
  }

  start(): void {
    this.#poll ??= setInterval(() => this.wake(), this.#queue.pollMs).unref();
    this.wake();
  }

  /** Fetches jobs now, unless the maximum is being worked on. */
  wake(): void {
    const [idle] = this.#idle;
    if (this.#stopping.signal.aborted) {
      return;
    }
    if (idle !== undefined) {
      this.#boss.notifyWorker(idle);
    } else if (this.#workers < this.#queue.concurrency) {
      this.#workers += 1;
      this.#addWorker().catch((error: unknown) => {
        this.#workers -= 1;
        this.#logger.error('failed to add job worker', errorStack(error));
      });
    }
  }

  /** Takes no more jobs, aborts those in work, and hands back what was not finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#poll);
    await within(STOP_GRACE_MS, this.#boss.offWork(this.#queue.name));
  }

  async #addWorker(): Promise<void> {
    const id: string = await this.#boss.work<object, unknown, typeof WORK_OPTIONS>(
      this.#queue.name,
      WORK_OPTIONS,
      async ([job]) => {
        this.#idle.delete(id);
        this.wake();
        try {
          return job === undefined ? [] : [await this.#attempt(job)];
        } finally {
          this.#idle.add(id);
          this.#boss.notifyWorker(id);
        }
      },
    );
    this.#idle.add(id);
  }

  /** The result keeps only the message: stacks and causes do not belong in the database. */
  async #attempt(job: JobWithMetadata): Promise<JobResult> {
    const signal = AbortSignal.any([this.#stopping.signal, job.signal]);
    try {
      signal.throwIfAborted();
      const failure = jsonText(job.sourceOutput, 'message') ?? jsonText(job.sourceOutput, 'value', 'message');
      await tracedFrom(jsonText(job.data, TRACEPARENT_MEMBER), attemptSpan(this.#queue, job), () =>
        this.#handler({ data: job.data, signal, failure }),
      );
      return { id: job.id, status: 'completed' };
    } catch (error) {
      return await this.#settleFailure(job, error);
    }
  }

  async #settleFailure(job: JobWithMetadata, error: unknown): Promise<JobResult> {
    const fields = { queue: this.#queue.name, job_id: job.id };
    if (job.signal.aborted) {
      // Nothing that pg-boss writes for this attempt counts any more.
      this.#logger.warn('job was given to another worker', { ...fields, error: errorMessage(error) });
    } else if (this.#stopping.signal.aborted) {
      await this.#handBack(job, job.data);
      return { id: job.id, status: 'completed' };
    } else if (isOutage(error) && outagesOf(job) < MAX_OUTAGES) {
      this.#logger.warn('failed to do job without database', { ...fields, error: errorMessage(error) });
      return await this.#handBackAfterOutage(job, error);
    } else {
      this.#logger.error('failed to do job', { ...fields, stack: errorStack(error) });
    }
    return { id: job.id, status: 'failed', output: { message: errorMessage(error) } };
  }

  async #handBackAfterOutage(job: JobWithMetadata, error: unknown): Promise<JobResult> {
    const signal = AbortSignal.any([this.#stopping.signal, job.signal]);
    const data = { ...job.data, [OUTAGES_MEMBER]: outagesOf(job) + 1 };
    try {
      await delay(this.#queue.retryDelaySeconds * 1000, undefined, { signal });
      await this.#handBack(job, data);
      return { id: job.id, status: 'completed' };
    } catch (failure) {
      if (!signal.aborted && isOutage(failure)) {
        return await this.#handBackAfterOutage(job, error);
      }
      return await this.#settleFailure({ ...job, data }, signal.aborted ? error : failure);
    }
  }
}

/** In a job's data: attempts that ended because the database was away. */
const OUTAGES_MEMBER = 'outages';

function outagesOf({ data }: JobWithMetadata): number {
  return jsonNumber(data, OUTAGES_MEMBER) ?? 0;
}

/** Also finds a failure of PostgreSQL that another error wraps. */
function isOutage(error: unknown): boolean {
  return (
    isDatabaseAway(error) || (error instanceof Error && error.cause !== undefined && isOutage(error.cause))
  );
}

/** In a job's data: the span that sent it, which the worker continues. */
const TRACEPARENT_MEMBER = 'traceparent';

export function withTraceparent(data: object): object {
  const traceparent = currentTraceparent();
  return traceparent === null ? data : { ...data, [TRACEPARENT_MEMBER]: traceparent };
}

function attemptSpan({ name }: JobQueue, { id, retryCount }: JobWithMetadata): SpanStart {
  return {
    name: `process ${name}`,
    kind: SpanKind.CONSUMER,
    attributes: {
      'messaging.system': 'pg-boss',
      'messaging.operation.type': 'process',
      'messaging.destination.name': name,
      'messaging.message.id': id,
      'slipway.job.retries': retryCount,
    },
  };
}

const WORK_OPTIONS = {
  includeMetadata: true,
  perJobResults: true,
  heartbeatRefreshSeconds: HEARTBEAT_REFRESH_SECONDS,
  pollingIntervalSeconds: NO_POLLING_SECONDS,
} as const;
