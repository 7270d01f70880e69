import { describe, expect, it } from '@jest/globals';
import { ConcurrencyLimit } from './concurrency-limit.js';

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
