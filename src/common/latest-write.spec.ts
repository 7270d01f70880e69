import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { LatestWrite } from './latest-write.js';

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
