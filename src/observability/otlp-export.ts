import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@nestjs/common';
import { ExportResultCode } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import type { OutboundConfig } from '../config/app-config.js';
import type { TelemetryConfig } from '../config/telemetry-config.js';
import type { Metrics } from './metrics.js';
import { createExporters, type OtlpExporters } from './otlp-exporters.js';
import { PrometheusProducer } from './prometheus.producer.js';
import { type DropReason, SpanDelivery } from './span-delivery.js';
import { registerTracing, unregisterTracing } from './tracing.js';

/** How long a stop waits for the collector, once for each signal. */
const STOP_MS = 1_000;

interface OtlpExportOptions {
  config: TelemetryConfig;
  proxy: Pick<OutboundConfig, 'proxyUrl' | 'noProxy'>;
  metrics: Metrics;
  logger: Logger;
}

/** The export to the collector. A file of its own, so that it is loaded only where there is a collector. */
export class OtlpExport {
  readonly #delivery: SpanDelivery | null;
  readonly #metrics: MeterProvider | null;
  readonly #logger: Logger;

  private constructor({ config, metrics, logger }: OtlpExportOptions, exporters: OtlpExporters) {
    const resource = {
      ...config.resourceAttributes,
      'service.name': config.serviceName,
      // Replicas have the same name.
      'service.instance.id': config.resourceAttributes['service.instance.id'] ?? randomUUID(),
    };
    this.#logger = logger;
    this.#delivery =
      config.traces === 'none'
        ? null
        : new SpanDelivery({
            exporter: exporters.traces,
            delayMs: config.spanDelayMs,
            report: this.#outagesOf('traces'),
          });
    this.#metrics =
      config.metrics === 'none'
        ? null
        : new MeterProvider({
            resource: resourceFromAttributes(resource),
            readers: [
              new PeriodicExportingMetricReader({
                exporter: reporting(exporters.metrics, this.#outagesOf('metrics')),
                exportIntervalMillis: config.metricIntervalMs,
                metricProducers: [new PrometheusProducer(metrics)],
              }),
            ],
          });
    if (this.#metrics !== null) {
      metrics.addProcessMetrics();
    }
    if (this.#delivery !== null) {
      registerTracing(config, resource, this.#delivery);
    }
  }

  static async start(options: OtlpExportOptions): Promise<OtlpExport> {
    return new OtlpExport(options, await createExporters(options.config, options.proxy));
  }

  /** Spans that never reached the collector, since the start. */
  get dropped(): ReadonlyMap<DropReason, number> {
    return this.#delivery?.dropped ?? new Map();
  }

  /** Sends the metrics once more, for as long as a stop may wait, and never again. Their values need the database. */
  async stopMetrics(): Promise<void> {
    await beforeStop(this.#metrics?.shutdown());
  }

  /** Sends the spans that are left, for as long as a stop may wait. */
  async stop(): Promise<void> {
    if (this.#delivery === null) {
      return;
    }
    unregisterTracing();
    await beforeStop(this.#delivery.shutdown());
    this.#delivery.giveUp();
    const left = this.dropped.get('stopped') ?? 0;
    if (left > 0) {
      this.#logger.warn('spans dropped at the stop', { count: left });
    }
  }

  /** One line begins an outage of the collector, and one ends it. */
  #outagesOf(signal: 'traces' | 'metrics'): (failure: Error | null) => void {
    let isOut = false;
    return (failure) => {
      const spans_dropped = [...this.dropped.values()].reduce((sum, count) => sum + count, 0);
      if (failure !== null && !isOut) {
        this.#logger.warn(`failed to export ${signal}`, { reason: reasonOf(failure), spans_dropped });
      } else if (failure === null && isOut) {
        this.#logger.log(`export of ${signal} resumed`, { spans_dropped });
      }
      isOut = failure !== null;
    };
  }
}

/** The SDK learns nothing of failures, which it would log in a way of its own. */
function reporting(
  exporter: PushMetricExporter,
  report: (failure: Error | null) => void,
): PushMetricExporter {
  return {
    export: (metrics, done) =>
      exporter.export(metrics, ({ code, error }) => {
        report(code === ExportResultCode.SUCCESS ? null : (error ?? new Error('unknown')));
        done({ code: ExportResultCode.SUCCESS });
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

async function beforeStop(work: Promise<void> | undefined): Promise<void> {
  await Promise.race([work, delay(STOP_MS, undefined, { ref: false })]);
}

function reasonOf(failure: Error): string {
  const code = 'code' in failure ? failure.code : undefined;
  return typeof code === 'number' ? `status ${code}` : (errorCode(failure) ?? errorMessage(failure));
}
