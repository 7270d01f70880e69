import { afterEach, expect, it, jest } from '@jest/globals';
import { RunSlots } from './conversation-run.js';

const never = new AbortController().signal;

afterEach(() => {
  jest.useRealTimers();
  Reflect.deleteProperty(globalThis, 'gc');
});

it('gives out its slots, then queues in the order of arrival', async () => {
  const slots = new RunSlots(2);
  const order: string[] = [];
  const [first] = await Promise.all([slots.acquire(never), slots.acquire(never)]);
  const enter = async (name: string) => {
    const release = await slots.acquire(never);
    order.push(name);
    return release;
  };
  const third = enter('third');
  const fourth = enter('fourth');
  expect(order).toEqual([]);
  first?.();
  // Arrives after the slot was released, but before the next in the queue has heard of it.
  const fifth = enter('fifth');
  (await third)?.();
  (await fourth)?.();
  await fifth;
  expect(order).toEqual(['third', 'fourth', 'fifth']);
});

it('skips those that left the queue', async () => {
  const slots = new RunSlots(1);
  const release = await slots.acquire(never);
  const leaving = new AbortController();
  const left = slots.acquire(leaving.signal);
  const next = slots.acquire(never);
  leaving.abort();
  expect(await left).toBeNull();
  release?.();
  expect(await next).not.toBeNull();
  expect(await slots.acquire(AbortSignal.abort())).toBeNull();
});

it('collects garbage once no run has ended for ten seconds, after each of them', async () => {
  jest.useFakeTimers();
  const collect = jest.fn();
  Object.assign(globalThis, { gc: collect });
  const slots = new RunSlots(1);
  for (const collections of [1, 2]) {
    for (const pause of [9_000, 9_000]) {
      (await slots.acquire(never))?.();
      jest.advanceTimersByTime(pause);
    }
    jest.advanceTimersByTime(1_000);
    expect(collect).toHaveBeenCalledTimes(collections);
  }
});

it('collects no garbage while a run is in progress', async () => {
  jest.useFakeTimers();
  const collect = jest.fn();
  Object.assign(globalThis, { gc: collect });
  const slots = new RunSlots(2);
  (await slots.acquire(never))?.();
  const release = await slots.acquire(never);
  jest.advanceTimersByTime(60_000);
  expect(collect).not.toHaveBeenCalled();
  release?.();
  jest.advanceTimersByTime(10_000);
  expect(collect).toHaveBeenCalledTimes(1);
});
