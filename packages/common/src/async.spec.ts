import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { KeyedLimit, LatestWrite, RepeatedWork, within } from './async.js';

describe('within', () => {
  it.each([
    ['the result', Promise.resolve('done'), 'done'],
    ['null when that never comes', new Promise<never>(() => undefined), null],
  ])('gives %s', async (_, result, expected) => {
    expect(await within(1, result)).toBe(expected);
  });

  it('fails as what it waits for does', async () => {
    await expect(within(60_000, Promise.reject(new Error('no')))).rejects.toThrow('no');
  });
});

describe('KeyedLimit', () => {
  it('runs the tasks of a key in order, and no more than its maximum at once', async () => {
    const limit = new KeyedLimit(3);
    const started: number[] = [];
    let running = 0;
    let peak = 0;
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        limit.run('a', async () => {
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

  it('lets no key wait for another one', async () => {
    const limit = new KeyedLimit(2);
    const { promise, resolve } = Promise.withResolvers<void>();
    const begun: number[] = [];
    const hanging = [1, 2, 3].map((number) =>
      limit.run('a', async () => {
        begun.push(number);
        await promise;
      }),
    );

    await expect(limit.run('b', async () => 'done')).resolves.toBe('done');
    expect(begun).toEqual([1, 2]);

    resolve();
    await Promise.all(hanging);
    expect(begun).toEqual([1, 2, 3]);
  });

  it('goes on after a task that failed, and forgets keys without tasks', async () => {
    const limit = new KeyedLimit(1);
    const failing = limit.run('a', () => Promise.reject(new Error('broken')));
    const next = limit.run('a', async () => 'done');

    await expect(failing).rejects.toThrow('broken');
    await expect(next).resolves.toBe('done');
    await expect(limit.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(limit.size).toBe(0);
  });
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

  it('reports a failure once, until another one or a success comes between', async () => {
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

  it('runs again when the run before has said so, or sooner when it is asked to', async () => {
    const begun: PromiseWithResolvers<void>[] = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const pauses = [1, 3_600_000];
    const work = new RepeatedWork(
      3_600_000,
      async () => {
        begun[2 - pauses.length]?.resolve();
        return pauses.shift();
      },
      () => undefined,
    );
    await work.now();
    work.within(1);
    await setImmediate();
    expect(pauses).toHaveLength(1);

    work.start();
    work.within(1);
    await begun[1]?.promise;
    await work.now();
    await work.stop();
    expect(pauses).toEqual([]);
  });

  it('runs outside of the request that asked for it', async () => {
    const request = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const work = new RepeatedWork(
      3_600_000,
      async () => void seen.push(request.getStore()),
      (error) => seen.push(error),
    );
    await request.run('r', () => work.now());

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
