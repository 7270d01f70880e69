import { expect, it } from '@jest/globals';
import { RunPlaces } from './run-places.js';

const never = new AbortController().signal;

it('lets so many in, the others in the order they came', async () => {
  const places = new RunPlaces(2);
  const order: string[] = [];
  const [first] = await Promise.all([places.take(never), places.take(never)]);
  const enter = async (name: string) => {
    const giveBack = await places.take(never);
    order.push(name);
    return giveBack;
  };
  const third = enter('third');
  const fourth = enter('fourth');
  expect(order).toEqual([]);
  first?.();
  // Comes after the place was given back, but before whoever waited longer has heard of it.
  const fifth = enter('fifth');
  (await third)?.();
  (await fourth)?.();
  await fifth;
  expect(order).toEqual(['third', 'fourth', 'fifth']);
});

it('forgets those who leave the queue', async () => {
  const places = new RunPlaces(1);
  const giveBack = await places.take(never);
  const leaving = new AbortController();
  const left = places.take(leaving.signal);
  const next = places.take(never);
  leaving.abort();
  expect(await left).toBeNull();
  giveBack?.();
  expect(await next).not.toBeNull();
  expect(await places.take(AbortSignal.abort())).toBeNull();
});
