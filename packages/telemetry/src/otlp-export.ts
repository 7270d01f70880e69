import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  diag,
  type DiagLogger,
  DiagLogLevel,
  context,
  propagation,
  ProxyTracerProvider,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import {
  type SpanExporter,
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider as SdkTracerProvider,
} from '@opentelemetry/sdk-trace';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { connectionProblem, errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { bypassesProxy } from '@slipway/common/http/address-rules.js';
import type { Log } from '@slipway/common/log.js';
import type { Metrics } from './metrics.js';
import { PrometheusProducer } from './prometheus.producer.js';
import { type DropReason, SpanDelivery } from './span-delivery.js';

/** Bounds what a long text costs that gets into a span by mistake. */
const LIMITS = {
  attributeValueLengthLimit: 256,
  attributeCountLimit: 32,
  eventCountLimit: 0,
  linkCountLimit: 0,
};

export interface SamplerConfig {
  sampler:
    | 'always_on'
    | 'always_off'
    | 'traceidratio'
    | 'parentbased_always_on'
    | 'parentbased_always_off'
    | 'parentbased_traceidratio';
  samplerRatio: number;
}

/** What OpenTelemetry's variables say of an exporter. */
export interface OtlpConfig extends SamplerConfig {
  /** Below it are `/v1/traces` and `/v1/metrics`. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  protocol: 'http/protobuf' | 'http/json';
  timeoutMs: number;
  spanDelayMs: number;
  metricIntervalMs: number;
  serviceName: string;
  resourceAttributes: Readonly<Record<string, string>>;
  traces: 'otlp' | 'none';
  metrics: 'otlp' | 'none';
}

export interface OtlpProxy {
  proxyUrl: string | null;
  noProxy: string | null;
}

/** Starts tracing in this process; agent servers pass a service name of their own in `resource`. */
export function registerTracing(
  config: SamplerConfig,
  resource: Readonly<Record<string, string>>,
  processor: SpanProcessor,
): void {
  const root = rootSamplerOf(config);
  const ofCallers = judgedByOwnId(root);
  const sampler = new ParentBasedSampler({
    root,
    remoteParentSampled: ofCallers,
    remoteParentNotSampled: ofCallers,
  });
  const providerOf = (serviceName: string): TracerProvider =>
    new SdkTracerProvider({
      resource: resourceFromAttributes({ ...resource, 'service.name': serviceName }),
      sampler,
      spanLimits: LIMITS,
      spanProcessors: [processor],
    });
  const name = resource['service.name'] ?? 'slipway';
  const ours = new Map([
    ['slipway', providerOf(name)],
    ['slipway-agent-server', providerOf(`${name}-agent-server`)],
  ]);
  // Spans of libraries may hold addresses and texts of users.
  const others = new ProxyTracerProvider();
  unregisterTracing();
  trace.setGlobalTracerProvider({
    getTracer: (scope, ...rest) => (ours.get(scope) ?? others).getTracer(scope, ...rest),
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
}

export function unregisterTracing(): void {
  trace.disable();
  context.disable();
  propagation.disable();
}

/** Ignores a caller's sampling flag and trace id, with which callers could choose to be sampled. */
function judgedByOwnId(root: Sampler): Sampler {
  const ids = new RandomIdGenerator();
  return {
    shouldSample: (parent, _traceId, ...rest) => root.shouldSample(parent, ids.generateTraceId(), ...rest),
    toString: () => `ByOwnId{${root.toString()}}`,
  };
}

/** Decides for a trace that begins here; its spans follow, in every replica. */
function rootSamplerOf({ sampler, samplerRatio }: SamplerConfig): Sampler {
  switch (sampler) {
    case 'always_on':
    case 'parentbased_always_on':
      return new AlwaysOnSampler();
    case 'always_off':
    case 'parentbased_always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
    case 'parentbased_traceidratio':
      return new TraceIdRatioBasedSampler(samplerRatio);
  }
}

/** Milliseconds that a stop waits for the collector, per signal. */
const STOP_MS = 1_000;

interface OtlpExportOptions {
  config: OtlpConfig;
  proxy: OtlpProxy;
  metrics: Metrics;
  logger: Log;
}

/** A file of its own, so that it is loaded only with a collector. */
export class OtlpExport {
  private readonly delivery: SpanDelivery | null;
  private readonly metrics: MeterProvider | null;
  private readonly logger: Log;

  private constructor({ config, metrics, logger }: OtlpExportOptions, exporters: OtlpExporters) {
    const resource = {
      ...config.resourceAttributes,
      'service.name': config.serviceName,
      // Replicas have the same name.
      'service.instance.id': config.resourceAttributes['service.instance.id'] ?? randomUUID(),
    };
    this.logger = logger;
    diag.setLogger(errorsOnly(logger), { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true });
    this.delivery =
      config.traces === 'none'
        ? null
        : new SpanDelivery({
            exporter: exporters.traces,
            delayMs: config.spanDelayMs,
            report: this.outagesOf('traces'),
          });
    this.metrics =
      config.metrics === 'none'
        ? null
        : new MeterProvider({
            resource: resourceFromAttributes(resource),
            readers: [
              new PeriodicExportingMetricReader({
                exporter: reporting(exporters.metrics, this.outagesOf('metrics')),
                exportIntervalMillis: config.metricIntervalMs,
                metricProducers: [new PrometheusProducer(metrics)],
              }),
            ],
          });
    if (this.metrics !== null) {
      metrics.addProcessMetrics();
    }
    if (this.delivery !== null) {
      registerTracing(config, resource, this.delivery);
    }
  }

  static async start(options: OtlpExportOptions): Promise<OtlpExport> {
    return new OtlpExport(options, await createExporters(options.config, options.proxy));
  }

  get dropped(): ReadonlyMap<DropReason, number> {
    return this.delivery?.dropped ?? new Map();
  }

  /** Sends the metrics a last time; to be called before the database closes, as their values need it. */
  async stopMetrics(): Promise<void> {
    await beforeStop(this.metrics?.shutdown());
  }

  /** Sends the remaining spans, for as long as a stop may wait. */
  async stop(): Promise<void> {
    if (this.delivery === null) {
      return;
    }
    unregisterTracing();
    await beforeStop(this.delivery.shutdown());
    this.delivery.giveUp();
    const left = this.dropped.get('stopped') ?? 0;
    if (left > 0) {
      this.logger.warn('spans dropped at the stop', { count: left });
    }
  }

  /** Logs one line when an outage of the collector begins, and one when it ends. */
  private outagesOf(signal: 'traces' | 'metrics'): (failure: Error | null) => void {
    let isOut = false;
    return (failure) => {
      const spans_dropped = [...this.dropped.values()].reduce((sum, count) => sum + count, 0);
      if (failure !== null && !isOut) {
        this.logger.warn(`failed to export ${signal}`, { reason: reasonOf(failure), spans_dropped });
      } else if (failure === null && isOut) {
        this.logger.log(`export of ${signal} resumed`, { spans_dropped });
      }
      isOut = failure !== null;
    };
  }
}

/** Passes on the SDK's errors other than outages, which we report ourselves. */
function errorsOnly(logger: Log): DiagLogger {
  return {
    error: (message) => logger.error('failed to export telemetry', { error: message }),
    warn: () => undefined,
    info: () => undefined,
    debug: () => undefined,
    verbose: () => undefined,
  };
}

/** Hides failures from the SDK, which would log them in its own way. */
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
  return typeof code === 'number'
    ? `status ${code}`
    : (connectionProblem(failure) ?? errorCode(failure) ?? errorMessage(failure));
}

export interface OtlpExporters {
  traces: SpanExporter;
  metrics: PushMetricExporter;
}

export async function createExporters(
  { endpoint, headers, protocol, timeoutMs }: OtlpConfig,
  { proxyUrl, noProxy }: OtlpProxy,
): Promise<OtlpExporters> {
  const [{ OTLPTraceExporter }, { OTLPMetricExporter }] =
    protocol === 'http/json'
      ? await Promise.all([
          import('@opentelemetry/exporter-trace-otlp-http'),
          import('@opentelemetry/exporter-metrics-otlp-http'),
        ])
      : await Promise.all([
          import('@opentelemetry/exporter-trace-otlp-proto'),
          import('@opentelemetry/exporter-metrics-otlp-proto'),
        ]);
  const options = {
    headers,
    timeoutMillis: timeoutMs,
    userAgent: 'slipway',
    httpAgentOptions: {
      keepAlive: true,
      ...(proxyUrl !== null &&
        !bypassesProxy(new URL(endpoint), noProxy ?? '') && { proxyEnv: { HTTPS_PROXY: proxyUrl } }),
    },
  };
  return {
    traces: new OTLPTraceExporter({ ...options, url: `${endpoint}/v1/traces` }),
    metrics: new OTLPMetricExporter({ ...options, url: `${endpoint}/v1/metrics` }),
  };
}
