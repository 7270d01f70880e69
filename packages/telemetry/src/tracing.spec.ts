import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type Context,
  propagation,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
  TraceFlags,
} from '@opentelemetry/api';
import { recordSpans } from '../../../test/support/recorded-spans.js';
import { currentTraceparent, tracedFrom, tracer } from '@slipway/common/spans.js';
import { unregisterTracing } from './otlp-export.js';

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const KEPT = `00-${TRACE}-${SPAN}-01`;
const NOT_KEPT = `00-${TRACE}-${SPAN}-00`;

afterEach(() => {
  unregisterTracing();
});

/** What a request with this header is part of. */
const askedBy = (traceparent: string): Context => propagation.extract(ROOT_CONTEXT, { traceparent });
const spanOf = (parent: Context) => tracer().startSpan('work', {}, parent).spanContext();
const isKept = ({ traceFlags }: SpanContext) => (traceFlags & TraceFlags.SAMPLED) !== 0;

describe('samplers', () => {
  it.each([
    ['always_on', [true, true, false]],
    ['always_off', [false, true, false]],
    ['parentbased_always_on', [true, true, false]],
    ['parentbased_always_off', [false, true, false]],
    ['parentbased_traceidratio', [false, true, false]],
    ['traceidratio', [false, true, false]],
  ] as const)(
    '%s keeps one without a parent, with one that is kept, with one that is not: %j',
    async (sampler, kept) => {
      recordSpans({ sampler, samplerRatio: 0 });
      const inside = await Promise.all(
        [null, KEPT, NOT_KEPT].map((parent) =>
          tracedFrom(parent, { name: 'work' }, async () => currentTraceparent()),
        ),
      );

      expect(inside.map((traceparent) => traceparent?.endsWith('-01'))).toEqual(kept);
    },
  );

  it.each([
    ['always_on', 1, true],
    ['always_off', 1, false],
    ['traceidratio', 0, false],
    ['traceidratio', 1, true],
    ['parentbased_always_on', 1, true],
    ['parentbased_always_off', 1, false],
    ['parentbased_traceidratio', 0, false],
    ['parentbased_traceidratio', 1, true],
  ] as const)(
    '%s of %d keeps the trace of a caller, whatever that says: %j',
    (sampler, samplerRatio, kept) => {
      recordSpans({ sampler, samplerRatio });
      const spans = [KEPT, NOT_KEPT].map((traceparent) => spanOf(askedBy(traceparent)));

      expect(spans.map(({ traceId }) => traceId)).toEqual([TRACE, TRACE]);
      expect(spans.map(isKept)).toEqual([kept, kept]);
    },
  );

  it.each(['traceidratio', 'parentbased_traceidratio'] as const)(
    '%s keeps a share of the traces of a caller who chooses their ids',
    (sampler) => {
      recordSpans({ sampler, samplerRatio: 0.1 });
      const lowest = askedBy(`00-${'0'.repeat(31)}1-${SPAN}-01`);
      const kept = Array.from({ length: 500 }, () => spanOf(lowest)).filter(isKept).length;

      expect(kept).toBeGreaterThan(10);
      expect(kept).toBeLessThan(150);
    },
  );
});

describe('tracing', () => {
  it('has a service name of its own for agent servers, and no spans of libraries', () => {
    const ended = recordSpans();
    for (const scope of ['slipway', 'slipway-agent-server', 'a library']) {
      trace.getTracer(scope).startSpan(scope).end();
    }

    expect(ended.map(({ name, resource }) => [name, resource.attributes['service.name']])).toEqual([
      ['slipway', 'test'],
      ['slipway-agent-server', 'test-agent-server'],
    ]);
  });

  it('bounds texts', () => {
    const ended = recordSpans();
    tracer()
      .startSpan('work', { attributes: { text: 'x'.repeat(1_000) } })
      .end();

    expect(ended[0]?.attributes['text']).toBe('x'.repeat(256));
  });
});
