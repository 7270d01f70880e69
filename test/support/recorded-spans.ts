import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { registerTracing, type SamplerConfig } from '@slipway/telemetry/otlp-export.js';

/**
 * Switches tracing on, until `unregisterTracing`.
 *
 * @returns the spans that are kept, in the order in which they end
 */
export function recordSpans(config: Partial<SamplerConfig> = {}): ReadableSpan[] {
  const ended: ReadableSpan[] = [];
  registerTracing(
    { sampler: 'always_on', samplerRatio: 1, ...config },
    { 'service.name': 'test' },
    {
      onStart: () => undefined,
      onEnd: (span) => void ended.push(span),
      forceFlush: async () => undefined,
      shutdown: async () => undefined,
    },
  );
  return ended;
}
