import { expect, it } from '@jest/globals';
import { PerServerLimit } from './per-server-limit.js';

it('lets a server that hangs keep only its own reads waiting', async () => {
  const limit = new PerServerLimit(2);
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun: number[] = [];
  const hanging = [1, 2, 3].map((number) =>
    limit.run('a', async () => {
      begun.push(number);
      await promise;
    }),
  );

  await expect(limit.run('b', async () => 'read')).resolves.toBe('read');
  expect(begun).toEqual([1, 2]);

  resolve();
  await Promise.all(hanging);
  expect(begun).toEqual([1, 2, 3]);
});

it('forgets servers without reads, failed ones too', async () => {
  const limit = new PerServerLimit(1);

  await expect(limit.run('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');

  expect(limit.size).toBe(0);
});
