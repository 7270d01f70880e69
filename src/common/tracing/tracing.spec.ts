import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  currentSpan,
  currentTraceparent,
  errorType,
  runOutsideSpans,
  setTracer,
  type Span,
  type SpanStart,
  traced,
  tracedFrom,
  Tracer,
} from './tracing.js';

/** Writes down what it is told. */
class WrittenTracer extends Tracer {
  readonly log: string[] = [];

  override start({ name }: SpanStart, parent: Span | string | null): Span {
    const { log } = this;
    const above = typeof parent === 'object' ? (parent?.traceparent ?? 'nothing') : parent;
    log.push(`${name} under ${above}`);
    return {
      context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true },
      traceparent: `the parent ${name}`,
      startedAt: 0,
      rename: (to) => log.push(`${name} is ${to}`),
      set: () => undefined,
      fail: (type) => log.push(`${name} failed: ${type}`),
      end: () => log.push(`${name} ended`),
    };
  }

  override adopt(): string {
    return 'a caller';
  }

  override record(): void {
    this.log.push('recorded');
  }
}

const named = (name: string) => () => ({ name });

describe('while tracing is on', () => {
  let tracer: WrittenTracer;

  beforeEach(() => {
    tracer = new WrittenTracer();
    setTracer(tracer);
  });

  afterEach(() => {
    setTracer(null);
  });

  it('a part belongs to the work around it', async () => {
    const result = await tracedFrom('a caller', named('job'), () =>
      traced(named('step'), async () => currentTraceparent()),
    );

    expect(result).toBe('the parent step');
    expect(tracer.log).toEqual([
      'job under a caller',
      'step under the parent job',
      'step ended',
      'job ended',
    ]);
  });

  it('a part of nothing is not measured', async () => {
    await traced(named('step'), async (span) => expect(span).toBeNull());
    await tracedFrom(null, named('job'), async () =>
      runOutsideSpans(() => traced(named('step'), async () => undefined)),
    );

    expect(tracer.log).toEqual(['job under nothing', 'job ended']);
  });

  it('an error ends its span, and goes on', async () => {
    const failing = tracedFrom(null, named('job'), async () => {
      throw new RangeError('sk-secret');
    });

    await expect(failing).rejects.toThrow('sk-secret');
    expect(tracer.log).toEqual(['job under nothing', 'job failed: RangeError', 'job ended']);
  });

  it('work in parallel does not mix', async () => {
    const names = await Promise.all(
      ['one', 'two'].map((name) =>
        tracedFrom(null, named(name), async () => {
          await Promise.resolve();
          return currentTraceparent();
        }),
      ),
    );

    expect(names).toEqual(['the parent one', 'the parent two']);
    expect(currentSpan()).toBeNull();
  });
});

describe('while tracing is off', () => {
  it('work is done, and nothing is described', async () => {
    const describe = () => {
      throw new Error('nobody asks');
    };

    expect(await tracedFrom('a caller', describe, () => traced(describe, async (span) => span))).toBeNull();
    expect(currentTraceparent()).toBeNull();
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
