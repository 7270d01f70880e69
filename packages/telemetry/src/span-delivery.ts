import { setTimeout as delay } from 'node:timers/promises';
import { TraceFlags } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';

export type DropReason = 'queue_full' | 'refused' | 'stopped';

interface SpanDeliveryOptions {
  exporter: SpanExporter;
  /** Milliseconds that a finished span waits for others. */
  delayMs: number;
  /** Called after each attempt, with null for success. */
  report: (failure: Error | null) => void;
}

const MAX_HELD = 2048;
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** The longest timer. */
const FOREVER_MS = 2 ** 31 - 1;

/**
 * Unlike OpenTelemetry's own batch processor, keeps a batch with growing pauses while the collector is away, drops
 * spans beyond a bound, and counts them.
 */
export class SpanDelivery implements SpanProcessor {
  readonly dropped = new Map<DropReason, number>([
    ['queue_full', 0],
    ['refused', 0],
    ['stopped', 0],
  ]);
  private readonly options: SpanDeliveryOptions;
  private readonly batches: BatchSpanProcessor;
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private held = 0;

  constructor(options: SpanDeliveryOptions) {
    this.options = options;
    this.batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => void this.export(spans, done),
        shutdown: () => options.exporter.shutdown(),
      },
      scheduledDelayMillis: options.delayMs,
      maxQueueSize: MAX_HELD,
      exportTimeoutMillis: FOREVER_MS,
    });
  }

  onStart(): void {
    // Only ended spans are exported.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) {
      return;
    }
    if (this.stopping.signal.aborted) {
      this.drop('stopped', 1);
    } else if (this.held >= MAX_HELD) {
      this.drop('queue_full', 1);
    } else {
      this.held += 1;
      this.batches.onEnd(span);
    }
  }

  async forceFlush(): Promise<void> {
    await this.batches.forceFlush();
  }

  /** Makes a last attempt; later spans are dropped. */
  async shutdown(): Promise<void> {
    this.stopping.abort();
    await this.batches.shutdown();
    await Promise.all(this.underWay);
  }

  giveUp(): void {
    this.stopping.abort();
    this.drop('stopped', this.held);
    this.held = 0;
  }

  private async export(spans: ReadableSpan[], done: (result: ExportResult) => void): Promise<void> {
    const delivery = this.deliver(spans);
    this.underWay.add(delivery);
    await delivery;
    this.underWay.delete(delivery);
    done({ code: ExportResultCode.SUCCESS });
  }

  private async deliver(spans: ReadableSpan[]): Promise<void> {
    for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const isLast = this.stopping.signal.aborted;
      const { failure, isFinal } = await attempt(this.options.exporter, spans);
      this.options.report(failure);
      if (failure === null || isFinal || isLast) {
        // `giveUp` may have dropped them meanwhile.
        const count = Math.min(spans.length, this.held);
        this.held -= count;
        if (failure !== null) {
          this.drop(isFinal ? 'refused' : 'stopped', count);
        }
        return;
      }
      await delay(pauseMs, undefined, { signal: this.stopping.signal, ref: false }).catch(() => undefined);
    }
  }

  private drop(reason: DropReason, count: number): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }
}

/** Exports once; `isFinal` means that another attempt would end the same way. */
async function attempt(
  exporter: SpanExporter,
  spans: ReadableSpan[],
): Promise<{ failure: Error | null; isFinal: boolean }> {
  try {
    const { code, error } = await new Promise<ExportResult>((resolve) => {
      exporter.export(spans, resolve);
    });
    return code === ExportResultCode.SUCCESS
      ? { failure: null, isFinal: true }
      : { failure: error ?? new Error('unknown'), isFinal: error !== undefined && isRefusal(error) };
  } catch (error) {
    return { failure: error instanceof Error ? error : new Error(String(error)), isFinal: true };
  }
}

/** The exporters set no status for failed connections and responses that are worth a retry. */
function isRefusal(error: Error): boolean {
  return 'code' in error && typeof error.code === 'number';
}
