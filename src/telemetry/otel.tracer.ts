import { randomBytes } from 'node:crypto';
import {
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind as SdkKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer as SdkTracer,
} from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  TracerProvider,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import {
  formatTraceparent,
  parseTraceparent,
  type TraceContext,
} from '@slipway/common/tracing/trace-context.js';
import {
  type MeasuredSpan,
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanProgram,
  type SpanStart,
  Tracer,
} from '../common/tracing/tracing.js';
import type { TelemetryConfig } from '../config/telemetry-config.js';

const SCOPE = 'slipway';
const KINDS: Record<SpanKind, SdkKind> = {
  internal: SdkKind.INTERNAL,
  server: SdkKind.SERVER,
  client: SdkKind.CLIENT,
  producer: SdkKind.PRODUCER,
  consumer: SdkKind.CONSUMER,
};
/** Bounds texts in spans, in case a long one gets there by mistake. */
const LIMITS = {
  attributeValueLengthLimit: 256,
  attributeCountLimit: 32,
  eventCountLimit: 0,
  linkCountLimit: 0,
};

/** A span of the SDK behind our port. */
class OtelSpan implements Span {
  readonly context: TraceContext;
  readonly startedAt = Date.now();

  constructor(readonly sdk: SdkSpan) {
    const { traceId, spanId, traceFlags } = sdk.spanContext();
    this.context = { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 };
  }

  get traceparent(): string {
    return formatTraceparent(this.context);
  }

  rename(name: string): void {
    this.sdk.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    this.sdk.setAttributes(attributes);
  }

  fail(type: string): void {
    // Without a text: messages may hold what users wrote.
    this.sdk.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', type);
  }

  end(): void {
    this.sdk.end();
  }
}

/** Keeps spans with the SDK of OpenTelemetry, which is loaded with this file. */
export class OtelTracer extends Tracer {
  readonly #root: Sampler;
  readonly #providers: TracerProvider[];
  readonly #tracers: Record<SpanProgram, SdkTracer>;

  /** @param resource attributes of all spans of this process; spans of agent servers have a service name of their own */
  constructor(
    config: Pick<TelemetryConfig, 'sampler' | 'samplerRatio' | 'serviceName'>,
    resource: Readonly<Record<string, string>>,
    processor: SpanProcessor,
  ) {
    super();
    this.#root = rootSamplerOf(config);
    const providerOf = (attributes: Readonly<Record<string, string>>): TracerProvider =>
      new TracerProvider({
        resource: resourceFromAttributes(attributes),
        sampler: new ParentBasedSampler({ root: this.#root }),
        spanLimits: LIMITS,
        spanProcessors: [processor],
      });
    const service = providerOf(resource);
    const agentServer = providerOf({ ...resource, 'service.name': `${config.serviceName}-agent-server` });
    this.#providers = [service, agentServer];
    this.#tracers = {
      service: service.getTracer(SCOPE),
      'agent-server': agentServer.getTracer(SCOPE),
    };
  }

  override start(
    { name, kind = 'internal', attributes = {} }: SpanStart,
    parent: Span | string | null,
  ): Span {
    const options = { kind: KINDS[kind], attributes };
    return new OtelSpan(this.#tracers.service.startSpan(name, options, contextOf(parent)));
  }

  override adopt(caller: TraceContext): string {
    // By an id of our own: a caller who chooses the id of a trace would choose whether a share of all ids includes it.
    const own = randomBytes(16).toString('hex');
    const { decision } = this.#root.shouldSample(ROOT_CONTEXT, own, '', SdkKind.SERVER, {}, []);
    return formatTraceparent({ ...caller, sampled: decision === SamplingDecision.RECORD_AND_SAMPLED });
  }

  override record(spans: readonly MeasuredSpan[], parent: Span, program: SpanProgram): void {
    const started: SdkSpan[] = [];
    for (const { name, kind = 'internal', attributes = {}, parent: index, ...times } of spans) {
      const above = index === null ? undefined : started[index];
      const span = this.#tracers[program].startSpan(
        name,
        { kind: KINDS[kind], attributes, startTime: times.startedAt },
        above === undefined ? contextOf(parent) : trace.setSpan(ROOT_CONTEXT, above),
      );
      if (times.failure !== null) {
        span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', times.failure);
      }
      started.push(span);
    }
    spans.forEach(({ endedAt }, index) => started[index]?.end(endedAt));
  }

  /** Sends the spans that are still queued. */
  async shutdown(): Promise<void> {
    await Promise.all(this.#providers.map((provider) => provider.shutdown()));
  }
}

function contextOf(parent: Span | string | null): Context {
  if (parent instanceof OtelSpan) {
    return trace.setSpan(ROOT_CONTEXT, parent.sdk);
  }
  const given = typeof parent === 'string' ? parseTraceparent(parent) : (parent?.context ?? null);
  return given === null
    ? ROOT_CONTEXT
    : trace.setSpanContext(ROOT_CONTEXT, {
        traceId: given.traceId,
        spanId: given.spanId,
        traceFlags: given.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
        isRemote: true,
      });
}

/** Decides about a trace that begins here; the spans in it follow, in whichever replica. */
function rootSamplerOf({
  sampler,
  samplerRatio,
}: Pick<TelemetryConfig, 'sampler' | 'samplerRatio'>): Sampler {
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
