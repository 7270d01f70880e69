import { describe, expect, it } from '@jest/globals';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { Tracer } from '../common/tracing/tracing.js';
import { OtelTracer } from './otel.tracer.js';
import type { SendOutcome } from './otlp-sender.js';
import { SpanQueue } from './span-queue.js';

const TAKEN: SendOutcome = { kind: 'taken', answer: null };
const AWAY: SendOutcome = { kind: 'later', reason: 'ECONNREFUSED', afterMs: null };

/** A queue whose collector answers as the test says; nothing is sent before the test asks. */
function queueOf(answers: (batch: number) => SendOutcome | Promise<SendOutcome>): {
  queue: SpanQueue;
  tracer: Tracer;
  batches: number[];
  reports: (string | null)[];
} {
  const batches: number[] = [];
  const reports: (string | null)[] = [];
  const queue = new SpanQueue({
    delayMs: 3_600_000,
    send: async (spans: ReadableSpan[]) => {
      batches.push(spans.length);
      return answers(batches.length);
    },
    rejectedOf: (answer) => answer.length,
    report: (outage) => reports.push(outage === null ? null : outage.reason),
  });
  const config = { sampler: 'parentbased_always_on', samplerRatio: 1, serviceName: 'test' } as const;
  return { queue, tracer: new OtelTracer(config, { 'service.name': 'test' }, queue), batches, reports };
}

function end(tracer: Tracer, count: number, parent: string | null = null): void {
  for (let index = 0; index < count; index += 1) {
    tracer.start({ name: 'work' }, parent).end();
  }
}

const droppedOf = ({ dropped }: SpanQueue) => Object.fromEntries(dropped);

describe('the queue of spans', () => {
  it('sends in batches', async () => {
    const { queue, tracer, batches } = queueOf(() => TAKEN);
    end(tracer, 100);
    await queue.forceFlush();
    end(tracer, 600);
    await queue.forceFlush();

    expect(batches).toEqual([100, 512, 88]);
  });

  it('is bounded while the collector is away, and loses nothing that it holds', async () => {
    let isAway = true;
    const { queue, tracer, batches, reports } = queueOf(() => (isAway ? AWAY : TAKEN));
    end(tracer, 1);
    await queue.forceFlush();
    end(tracer, 3_000);
    expect(droppedOf(queue)).toEqual({ queue_full: 953, refused: 0, stopped: 0 });
    await queue.forceFlush();

    isAway = false;
    batches.length = 0;
    await queue.forceFlush();
    expect(batches.reduce((sum, size) => sum + size, 0)).toBe(2048);
    expect(reports).toEqual(['ECONNREFUSED', null]);
  });

  it('drops what the collector refuses', async () => {
    const { queue, tracer, reports } = queueOf((batch) =>
      batch <= 2
        ? { kind: 'refused', reason: 'status 400' }
        : { kind: 'taken', answer: Buffer.alloc(batch === 3 ? 2 : 0) },
    );
    for (let round = 0; round < 4; round += 1) {
      end(tracer, 5);
      await queue.forceFlush();
    }

    // Two requests, and two spans of the third.
    expect(droppedOf(queue)).toEqual({ queue_full: 0, refused: 12, stopped: 0 });
    expect(reports).toEqual(['status 400', null]);
  });

  it('believes no collector that rejects more than it was sent', async () => {
    const { queue, tracer } = queueOf(() => ({ kind: 'taken', answer: Buffer.alloc(1_000) }));
    end(tracer, 5);
    await queue.forceFlush();

    expect(droppedOf(queue)).toEqual({ queue_full: 0, refused: 5, stopped: 0 });
  });

  it('sends what is left at the stop, and nothing after it', async () => {
    const { queue, tracer, batches } = queueOf(() => TAKEN);
    end(tracer, 5);
    await queue.shutdown();
    end(tracer, 2);

    expect(batches).toEqual([5]);
    expect(droppedOf(queue)).toEqual({ queue_full: 0, refused: 0, stopped: 2 });
  });

  it('has no span of a trace that whoever began it does not keep', async () => {
    const { queue, tracer, batches } = queueOf(() => TAKEN);
    end(tracer, 3, `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`);
    await queue.forceFlush();

    expect(batches).toEqual([]);
  });
});

describe('samplers', () => {
  const KEPT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const NOT_KEPT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;

  it.each([
    ['always_on', [true, true, false]],
    ['always_off', [false, true, false]],
    ['parentbased_always_on', [true, true, false]],
    ['parentbased_always_off', [false, true, false]],
    ['parentbased_traceidratio', [false, true, false]],
    ['traceidratio', [false, true, false]],
  ] as const)(
    '%s keeps one without a parent, with one that is kept, with one that is not: %j',
    (sampler, kept) => {
      const { queue } = queueOf(() => TAKEN);
      const tracer = new OtelTracer({ sampler, samplerRatio: 0, serviceName: 'test' }, {}, queue);

      expect(
        [null, KEPT, NOT_KEPT].map((parent) => tracer.start({ name: 'work' }, parent).context.sampled),
      ).toEqual(kept);
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
      const { queue } = queueOf(() => TAKEN);
      const tracer = new OtelTracer({ sampler, samplerRatio, serviceName: 'test' }, {}, queue);
      const spans = [true, false].map((sampled) => {
        const caller = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled };
        return tracer.start({ name: 'work' }, tracer.adopt(caller)).context;
      });

      expect(spans).toMatchObject([
        { traceId: 'a'.repeat(32), sampled: kept },
        { traceId: 'a'.repeat(32), sampled: kept },
      ]);
    },
  );

  it.each(['traceidratio', 'parentbased_traceidratio'] as const)(
    '%s keeps a share of the traces of a caller who chooses their ids',
    (sampler) => {
      const { queue } = queueOf(() => TAKEN);
      const tracer = new OtelTracer({ sampler, samplerRatio: 0.1, serviceName: 'test' }, {}, queue);
      const lowest = { traceId: `${'0'.repeat(31)}1`, spanId: 'b'.repeat(16), sampled: true };
      const spans = Array.from({ length: 500 }, () => tracer.start({ name: 'work' }, tracer.adopt(lowest)));
      const kept = spans.filter(({ context }) => context.sampled).length;

      expect(kept).toBeGreaterThan(10);
      expect(kept).toBeLessThan(150);
    },
  );

  it('hand their decision on', () => {
    const { tracer } = queueOf(() => TAKEN);
    const span = tracer.start({ name: 'work' }, NOT_KEPT);

    expect(span.traceparent).toMatch(new RegExp(`^00-${'a'.repeat(32)}-[0-9a-f]{16}-00$`));
  });
});
