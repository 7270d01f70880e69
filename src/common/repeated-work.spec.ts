import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { RepeatedWork } from './repeated-work.js';
import { currentRequest, runInRequestContext } from './requests/request-context.js';

/** Work that ends when it is told to, and counts how often it began. */
function steppedWork() {
  const steps: PromiseWithResolvers<void>[] = [];
  const errors: unknown[] = [];
  const work = new RepeatedWork(
    3_600_000,
    () => {
      const step = Promise.withResolvers<void>();
      steps.push(step);
      return step.promise;
    },
    (error) => errors.push(error),
  );
  return { work, steps, errors };
}

describe('RepeatedWork', () => {
  it('runs once more, and only once, for all who asked during a run', async () => {
    const { work, steps } = steppedWork();
    const first = work.now();
    await setImmediate();
    const later = Promise.all([work.now(), work.now(), work.now()]);
    expect(steps).toHaveLength(1);

    steps[0]?.resolve();
    await first;
    await setImmediate();
    expect(steps).toHaveLength(2);
    steps[1]?.resolve();
    await later;

    expect(steps).toHaveLength(2);
  });

  it('reports what a run throws, and goes on', async () => {
    const { work, steps, errors } = steppedWork();
    const failing = work.now();
    await setImmediate();
    steps[0]?.reject(new Error('no'));
    await failing;
    const next = work.now();
    await setImmediate();
    steps[1]?.resolve();
    await next;

    expect(errors).toEqual([new Error('no')]);
  });

  it('tells a failure once, until it is another or was over in between', async () => {
    const failures = ['a', 'a', 'b', 'a', null, 'a'];
    const errors: unknown[] = [];
    const work = new RepeatedWork(
      3_600_000,
      async () => {
        const failure = failures.shift();
        if (typeof failure === 'string') {
          throw new Error(failure);
        }
      },
      (error) => errors.push(error),
    );
    while (failures.length > 0) {
      await work.now();
    }

    expect(errors).toEqual([new Error('a'), new Error('b'), new Error('a'), new Error('a')]);
  });

  it('runs outside of the request that asked for it', async () => {
    const seen: unknown[] = [];
    const work = new RepeatedWork(
      3_600_000,
      async () => void seen.push(currentRequest()),
      (error) => seen.push(error),
    );
    await runInRequestContext({ requestId: 'r' }, () => work.now());

    expect(seen).toEqual([undefined]);
  });

  it('stops when the current run has ended, and runs no more', async () => {
    const { work, steps } = steppedWork();
    const running = work.now();
    await setImmediate();
    const ended = Symbol('ended');
    const stopping = work.stop();
    expect(await Promise.race([stopping, setImmediate(ended)])).toBe(ended);

    steps[0]?.resolve();
    await Promise.all([running, stopping]);
    await work.now();

    expect(steps).toHaveLength(1);
  });
});
