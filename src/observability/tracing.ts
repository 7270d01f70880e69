import { context, propagation, ProxyTracerProvider, trace, type TracerProvider } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider as SdkTracerProvider,
} from '@opentelemetry/sdk-trace';
import type { TelemetryConfig } from '../config/telemetry-config.js';

/** In case a long text gets into a span by mistake. */
const LIMITS = {
  attributeValueLengthLimit: 256,
  attributeCountLimit: 32,
  eventCountLimit: 0,
  linkCountLimit: 0,
};

export type SamplerConfig = Pick<TelemetryConfig, 'sampler' | 'samplerRatio'>;

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
