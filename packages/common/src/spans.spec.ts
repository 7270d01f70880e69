import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { RepeatedWork } from './async.js';
import { recordSpans } from '../../../test/support/recorded-spans.js';
import { unregisterTracing } from '@slipway/telemetry/otlp-export.js';
import { currentTraceparent, errorType, traced, tracedFrom } from './spans.js';

const TRACE = 'a'.repeat(32);
const SENDER = 'b'.repeat(16);
const SENT = `00-${TRACE}-${SENDER}-01`;

afterEach(() => {
  unregisterTracing();
});

describe('while tracing is on', () => {
  let ended: ReadableSpan[];

  beforeEach(() => {
    ended = recordSpans();
  });

  const names = () => ended.map(({ name }) => name);

  it('a part belongs to the work around it', async () => {
    const inside = await tracedFrom(SENT, { name: 'job' }, () =>
      traced({ name: 'step' }, async () => currentTraceparent()),
    );

    expect(names()).toEqual(['step', 'job']);
    const [step, job] = ended;
    expect(job?.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: SENDER });
    expect(step?.parentSpanContext?.spanId).toBe(job?.spanContext().spanId);
    expect(inside).toBe(`00-${TRACE}-${step?.spanContext().spanId}-01`);
  });

  it('a part of nothing is not measured', async () => {
    await traced({ name: 'step' }, async (span) => expect(span).toBeUndefined());

    expect(names()).toEqual([]);
  });

  it('what is repeated belongs to no one who asks for it', async () => {
    const work = new RepeatedWork(
      3_600_000,
      () => traced({ name: 'step' }, async () => undefined),
      () => undefined,
    );
    await tracedFrom(null, { name: 'job' }, () => work.now());

    expect(names()).toEqual(['job']);
  });

  it('an error ends its span, and goes on', async () => {
    const failing = tracedFrom(null, { name: 'job' }, async () => {
      throw new RangeError('sk-secret');
    });

    await expect(failing).rejects.toThrow('sk-secret');
    expect(ended).toEqual([
      expect.objectContaining({
        name: 'job',
        attributes: { 'error.type': 'RangeError' },
        status: { code: 2 },
        events: [],
      }),
    ]);
  });

  it('work in parallel does not mix', async () => {
    const inside = await Promise.all(
      ['one', 'two'].map((name) =>
        tracedFrom(null, { name }, async () => {
          await Promise.resolve();
          return currentTraceparent();
        }),
      ),
    );

    expect(inside).toEqual(
      ['one', 'two'].map((name) => {
        const span = ended.find((each) => each.name === name)?.spanContext();
        return `00-${span?.traceId}-${span?.spanId}-01`;
      }),
    );
    expect(currentTraceparent()).toBeNull();
  });

  it('keeps no trace that its sender did not keep, and hands that on', async () => {
    const inside = await tracedFrom(`00-${TRACE}-${SENDER}-00`, { name: 'job' }, async () =>
      currentTraceparent(),
    );

    expect(names()).toEqual([]);
    expect(inside).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  });
});

describe('while tracing is off', () => {
  it('work is done, and nothing is measured', async () => {
    const inside = await tracedFrom(SENT, { name: 'job' }, () =>
      traced({ name: 'step' }, async (span) => [span, currentTraceparent()]),
    );

    expect(inside).toEqual([undefined, null]);
  });
});

describe('what is kept of an error', () => {
  it.each([
    [Object.assign(new Error('secret'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
    [Object.assign(new Error('secret'), { code: 'a code with a secret in it' }), 'Error'],
    [Object.assign(new Error('secret'), { name: 'a name with a secret in it' }), 'error'],
    [new TypeError('secret'), 'TypeError'],
    ['secret', 'error'],
    [null, 'error'],
  ])('%s is %s', (error, type) => {
    expect(errorType(error)).toBe(type);
  });
});
