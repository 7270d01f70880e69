import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Logger } from '@nestjs/common';
import { type HrTime } from '@opentelemetry/api';
import {
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { currentTracer, setTracer, type Tracer } from '../common/tracing/tracing.js';
import type { OutboundConfig } from '../config/app-config.js';
import type { TelemetryConfig } from '../config/telemetry-config.js';
import { OtelTracer } from './otel.tracer.js';
import { OtlpSender, type SendOutcome, type TelemetrySignal } from './otlp-sender.js';
import { type PrometheusMetric, toOtelMetrics } from './prometheus-bridge.js';
import { type DropReason, SpanQueue } from './span-queue.js';

/** How long a stop waits for the collector. */
const STOP_MS = 1_000;
const SCOPE = { name: 'slipway' };

interface TelemetryExportOptions {
  config: TelemetryConfig;
  proxy: Pick<OutboundConfig, 'proxyUrl' | 'noProxy'>;
  /** Null: metrics are not exported. */
  readMetrics: (() => Promise<readonly PrometheusMetric[]>) | null;
  logger: Logger;
}

/** The export to the collector. A file of its own, so that it is loaded only where there is a collector. */
export class TelemetryExport {
  readonly #sender: OtlpSender;
  readonly #queue: SpanQueue;
  readonly #tracer: OtelTracer | null;
  readonly #metrics: RepeatedWork | null;
  readonly #logger: Logger;

  constructor({ config, proxy, readMetrics, logger }: TelemetryExportOptions) {
    const isJson = config.protocol === 'http/json';
    const traces = isJson ? JsonTraceSerializer : ProtobufTraceSerializer;
    const resource = {
      ...config.resourceAttributes,
      'service.name': config.serviceName,
      // Replicas have the same name.
      'service.instance.id': config.resourceAttributes['service.instance.id'] ?? randomUUID(),
    };
    this.#logger = logger;
    this.#sender = new OtlpSender(config, proxy);
    this.#queue = new SpanQueue({
      delayMs: config.spanDelayMs,
      send: async (spans) => this.#send('traces', traces.serializeRequest(spans)),
      rejectedOf: (answer) => rejectedSpans(() => traces.deserializeResponse(answer)),
      report: (outage) => this.#report('traces', outage),
    });
    this.#tracer = config.traces === 'none' ? null : new OtelTracer(config, resource, this.#queue);
    this.#metrics =
      readMetrics === null
        ? null
        : this.#metricsExport(readMetrics, resource, config.metricIntervalMs, isJson);
    if (this.#tracer !== null) {
      setTracer(this.#tracer);
    }
    this.#metrics?.start();
  }

  /** Spans that never reached the collector, since the start. */
  get dropped(): ReadonlyMap<DropReason, number> {
    return this.#queue.dropped;
  }

  get tracer(): Tracer | null {
    return this.#tracer;
  }

  /** Sends the metrics once more, for as long as a stop may wait, and never again. Their values need the database. */
  async stopMetrics(): Promise<void> {
    const deadline = AbortSignal.timeout(STOP_MS);
    await Promise.race([this.#metrics?.now(), once(deadline, 'abort')]);
    void this.#metrics?.stop();
  }

  /** Sends the spans that are left, for as long as a stop may wait. */
  async stop(): Promise<void> {
    if (currentTracer() === this.#tracer) {
      setTracer(null);
    }
    const deadline = setTimeout(() => void this.#sender.close(), STOP_MS);
    await this.#tracer?.shutdown();
    clearTimeout(deadline);
    await this.#sender.close();
    const left = this.#queue.dropped.get('stopped') ?? 0;
    if (left > 0) {
      this.#logger.warn('spans dropped at the stop', { count: left });
    }
  }

  #metricsExport(
    readMetrics: () => Promise<readonly PrometheusMetric[]>,
    attributes: Readonly<Record<string, string>>,
    everyMs: number,
    isJson: boolean,
  ): RepeatedWork {
    const serializer = isJson ? JsonMetricsSerializer : ProtobufMetricsSerializer;
    const resource = resourceFromAttributes(attributes);
    const start = hrTime(performance.timeOrigin);
    let isOut = false;
    return new RepeatedWork(
      everyMs,
      async () => {
        const metrics = toOtelMetrics(await readMetrics(), { start, end: hrTime(Date.now()) });
        const body = serializer.serializeRequest({ resource, scopeMetrics: [{ scope: SCOPE, metrics }] });
        const outcome = await this.#send('metrics', body);
        if (outcome.kind !== 'taken' && !isOut) {
          this.#report('metrics', outcome);
        } else if (outcome.kind === 'taken' && isOut) {
          this.#report('metrics', null);
        }
        isOut = outcome.kind !== 'taken';
      },
      (error) => this.#logger.warn('failed to read metrics for export', { error: errorMessage(error) }),
    );
  }

  async #send(signal: TelemetrySignal, body: Uint8Array | undefined): Promise<SendOutcome> {
    return body === undefined
      ? { kind: 'refused', reason: 'not representable in the protocol' }
      : this.#sender.send(signal, body);
  }

  /** @param outage null: it is over */
  #report(signal: TelemetrySignal, outage: { reason: string } | null): void {
    if (outage === null) {
      this.#logger.log(`export of ${signal} resumed`, { spans_dropped: this.#total() });
    } else {
      this.#logger.warn(`failed to export ${signal}`, {
        reason: outage.reason,
        spans_dropped: this.#total(),
      });
    }
  }

  #total(): number {
    return [...this.#queue.dropped.values()].reduce((sum, count) => sum + count, 0);
  }
}

/** Whatever the response says, the collector has accepted the request. */
function rejectedSpans(read: () => { partialSuccess?: { rejectedSpans?: unknown } }): number {
  try {
    const rejected = Number(read().partialSuccess?.rejectedSpans ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    // The response did not follow the protocol.
    return 0;
  }
}

function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000);
  return [seconds, Math.round((epochMs - seconds * 1000) * 1e6)];
}
