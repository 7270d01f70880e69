import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ConcurrencyLimit, KeyedQueue, LatestWrite, RepeatedWork } from './async.js';
import { currentRequest, runInRequestContext } from './requests/request-context.js';

describe('ConcurrencyLimit', () => {
  it('never runs more than its maximum, starts in order and finishes everything', async () => {
    const limit = new ConcurrencyLimit(3);
    const started: number[] = [];
    let running = 0;
    let peak = 0;
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        limit.run(async () => {
          started.push(index);
          running += 1;
          peak = Math.max(peak, running);
          await Promise.resolve();
          running -= 1;
          return index;
        }),
      ),
    );
    expect(peak).toBe(3);
    expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(results).toEqual(started);
  });

  it('gives the place of a failed task to the next one', async () => {
    const limit = new ConcurrencyLimit(1);
    const failing = limit.run(() => Promise.reject(new Error('broken')));
    const next = limit.run(() => Promise.resolve('done'));
    await expect(failing).rejects.toThrow('broken');
    await expect(next).resolves.toBe('done');
    await expect(limit.run(() => Promise.resolve('again'))).resolves.toBe('again');
  });
});

it('runs one thing after the other under a key, also after a failure, and keys side by side', async () => {
  const queue = new KeyedQueue();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = queue.run('a', async () => {
    await gate.promise;
    order.push('a1');
    throw new Error('failed');
  });
  const second = queue.run('a', async () => order.push('a2'));
  await queue.run('b', async () => order.push('b'));
  gate.resolve();
  await expect(first).rejects.toThrow('failed');
  expect(await second).toBe(3);
  expect(order).toEqual(['b', 'a1', 'a2']);
});

describe('LatestWrite', () => {
  it('writes the first and the last of many', async () => {
    const written: number[] = [];
    const gate = Promise.withResolvers<void>();
    const write = new LatestWrite<number>(
      async (value) => {
        written.push(value);
        await gate.promise;
      },
      () => undefined,
    );
    [1, 2, 3, 4].forEach((value) => write.put(value));
    await setImmediate();
    expect(written).toEqual([1]);

    gate.resolve();
    await setImmediate();

    expect(written).toEqual([1, 4]);
  });

  it('goes on after a write that failed', async () => {
    const errors: unknown[] = [];
    const written: number[] = [];
    const write = new LatestWrite<number>(
      (value) => {
        if (value === 1) {
          return Promise.reject(new Error('full'));
        }
        written.push(value);
        return Promise.resolve();
      },
      (error) => errors.push(error),
    );
    write.put(1);
    await setImmediate();
    write.put(2);
    await setImmediate();

    expect(errors).toEqual([new Error('full')]);
    expect(written).toEqual([2]);
  });
});

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
