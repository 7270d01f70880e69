import { TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { SendOutcome } from './otlp-sender.js';

interface SpanQueueOptions {
  /** How long a finished span waits for others. */
  delayMs: number;
  send: (spans: ReadableSpan[]) => Promise<SendOutcome>;
  /** Spans that the collector rejected in a request that it accepted. */
  rejectedOf: (answer: Uint8Array) => number;
  /** Called once for each outage, and once when it is over. */
  report: (outage: { reason: string } | null) => void;
}

/** Why spans never reached the collector. */
export type DropReason = 'queue_full' | 'refused' | 'stopped';

/** The defaults of OpenTelemetry's batches. */
const MAX_QUEUED = 2048;
const MAX_BATCH = 512;
const MIN_BACK_OFF_MS = 1_000;
const MAX_BACK_OFF_MS = 60_000;

/**
 * Finished spans on their way to the collector: a bounded queue, one request at a time. While the collector is away the
 * queue keeps what it has, tries again with growing pauses, and drops what comes on top of it.
 */
export class SpanQueue implements SpanProcessor {
  /** Spans by what became of them; only ever grows. */
  readonly dropped = new Map<DropReason, number>([
    ['queue_full', 0],
    ['refused', 0],
    ['stopped', 0],
  ]);
  readonly #options: SpanQueueOptions;
  #queue: ReadableSpan[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | null = null;
  /** Milliseconds until the next attempt; 0 while the collector accepts requests. */
  #backOffMs = 0;
  #isOut = false;
  #isStopped = false;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
  }

  onStart(): void {
    // Only ended spans are exported.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) {
      return;
    }
    if (this.#isStopped) {
      this.#drop('stopped', 1);
    } else if (this.#queue.length >= MAX_QUEUED) {
      this.#drop('queue_full', 1);
    } else {
      this.#queue.push(span);
      this.#schedule();
    }
  }

  /** Sends what is queued, unless the collector is away. */
  async forceFlush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
      this.#schedule();
    });
    await this.#sending;
  }

  /** Sends what is queued; what comes later, or is left then, is dropped. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    // What was added while a request was in flight is sent too.
    await this.#sending;
    await this.forceFlush();
    this.giveUp();
  }

  /** Drops what is queued. */
  giveUp(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#drop('stopped', this.#queue.length);
    this.#queue = [];
  }

  #schedule(): void {
    if (this.#queue.length === 0 || this.#isStopped || this.#sending !== null) {
      return;
    }
    const isFull = this.#queue.length >= MAX_BATCH;
    if (isFull && this.#backOffMs === 0) {
      void this.forceFlush();
    } else {
      const pauseMs = Math.max(this.#options.delayMs, this.#backOffMs);
      this.#timer ??= setTimeout(() => void this.forceFlush(), pauseMs).unref();
    }
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, MAX_BATCH);
      const outcome = await this.#options.send(batch);
      if (outcome.kind === 'later') {
        this.#backOff(outcome.afterMs);
        this.#reportOutage(outcome.reason);
        return;
      }
      // `giveUp` may have emptied it meanwhile.
      this.#queue = this.#queue.slice(batch.length);
      this.#backOffMs = 0;
      if (outcome.kind === 'refused') {
        this.#drop('refused', batch.length);
        this.#reportOutage(outcome.reason);
      } else {
        this.#drop('refused', this.#rejected(outcome.answer, batch.length));
        this.#reportRecovery();
      }
    }
  }

  #rejected(answer: Uint8Array | null, sent: number): number {
    return answer === null ? 0 : Math.min(this.#options.rejectedOf(answer), sent);
  }

  #backOff(afterMs: number | null): void {
    const next = this.#backOffMs === 0 ? MIN_BACK_OFF_MS : Math.min(this.#backOffMs * 2, MAX_BACK_OFF_MS);
    this.#backOffMs = Math.max(next, afterMs ?? 0);
  }

  #drop(reason: DropReason, count: number): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }

  #reportOutage(reason: string): void {
    if (!this.#isOut) {
      this.#isOut = true;
      this.#options.report({ reason });
    }
  }

  #reportRecovery(): void {
    if (this.#isOut) {
      this.#isOut = false;
      this.#options.report(null);
    }
  }
}
