import { afterEach, describe, expect, it } from '@jest/globals';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { tracer } from '@slipway/common/spans.js';
import { SpanDelivery } from './span-delivery.js';
import { registerTracing, unregisterTracing } from './otlp-export.js';

const AWAY = new Error('connect ECONNREFUSED');
const REFUSED = Object.assign(new Error('Bad Request'), { code: 400 });

/** A delivery whose collector answers as the test says; nothing is sent before the test asks, or a batch is full. */
function deliveryTo(answer: (attempt: number) => Error | null | Promise<Error | null>): {
  delivery: SpanDelivery;
  batches: number[];
  reports: (string | null)[];
} {
  const batches: number[] = [];
  const reports: (string | null)[] = [];
  const delivery = new SpanDelivery({
    exporter: {
      export: (spans, done) => {
        batches.push(spans.length);
        void respond(answer(batches.length), done);
      },
      shutdown: async () => undefined,
    },
    delayMs: 3_600_000,
    report: (failure) => reports.push(failure === null ? null : failure.message),
  });
  registerTracing({ sampler: 'always_on', samplerRatio: 1 }, {}, delivery);
  return { delivery, batches, reports };
}

async function respond(
  answer: Error | null | Promise<Error | null>,
  done: (result: ExportResult) => void,
): Promise<void> {
  const error = await answer;
  done(error === null ? { code: ExportResultCode.SUCCESS } : { code: ExportResultCode.FAILED, error });
}

function end(count: number): void {
  for (let index = 0; index < count; index += 1) {
    tracer().startSpan('work', {}, ROOT_CONTEXT).end();
  }
}

const droppedOf = ({ dropped }: SpanDelivery) => Object.fromEntries(dropped);

afterEach(() => {
  unregisterTracing();
});

describe('the delivery of spans', () => {
  it('sends in batches', async () => {
    const { delivery, batches } = deliveryTo(() => null);
    end(100);
    await delivery.forceFlush();
    end(600);
    await delivery.forceFlush();

    expect(batches).toEqual([100, 512, 88]);
    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 0, stopped: 0 });
  });

  it('is bounded while the collector is away, and loses nothing that it holds', async () => {
    const { delivery, batches, reports } = deliveryTo((attempt) => (attempt === 1 ? AWAY : null));
    end(1);
    const first = delivery.forceFlush();
    end(3_000);
    expect(droppedOf(delivery)).toEqual({ queue_full: 953, refused: 0, stopped: 0 });
    await first;
    await delivery.forceFlush();

    expect(batches.slice(0, 1)).toEqual([1]);
    expect(batches.slice(1).reduce((sum, size) => sum + size, 0)).toBe(2048);
    expect(reports.slice(0, 2)).toEqual(['connect ECONNREFUSED', null]);
    expect(droppedOf(delivery)).toEqual({ queue_full: 953, refused: 0, stopped: 0 });
  });

  it('drops what the collector refuses', async () => {
    const { delivery, reports } = deliveryTo((attempt) => (attempt <= 2 ? REFUSED : null));
    for (let round = 0; round < 3; round += 1) {
      end(5);
      await delivery.forceFlush();
    }

    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 10, stopped: 0 });
    expect(reports).toEqual(['Bad Request', 'Bad Request', null]);
  });

  it('drops what cannot be sent at all', async () => {
    const { delivery, reports } = deliveryTo(() => {
      throw new TypeError('not representable');
    });
    end(5);
    await delivery.forceFlush();

    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 5, stopped: 0 });
    expect(reports).toEqual(['not representable']);
  });

  it('sends what is left at the stop, and nothing after it', async () => {
    const { delivery, batches } = deliveryTo(() => null);
    end(5);
    await delivery.shutdown();
    end(2);

    expect(batches).toEqual([5]);
    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 0, stopped: 2 });
  });

  it('ends at the stop, though the collector is away', async () => {
    const { delivery } = deliveryTo(() => AWAY);
    end(5);
    await delivery.shutdown();

    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 0, stopped: 5 });
  });

  it('can give up what it holds', async () => {
    const answer = Promise.withResolvers<Error | null>();
    const { delivery } = deliveryTo(() => answer.promise);
    end(5);
    const stopped = delivery.shutdown();
    delivery.giveUp();
    answer.resolve(AWAY);
    await stopped;

    expect(droppedOf(delivery)).toEqual({ queue_full: 0, refused: 0, stopped: 5 });
  });

  it('has no span of a trace that is not kept', async () => {
    const { delivery, batches } = deliveryTo(() => null);
    registerTracing({ sampler: 'always_off', samplerRatio: 1 }, {}, delivery);
    end(3);
    await delivery.forceFlush();

    expect(batches).toEqual([]);
  });
});
