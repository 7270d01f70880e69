import { expect, it } from '@jest/globals';
import { KeyedQueue } from './keyed-queue.js';

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
