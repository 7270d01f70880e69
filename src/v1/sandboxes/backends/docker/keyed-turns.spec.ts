import { expect, it } from '@jest/globals';
import { KeyedTurns } from './keyed-turns.js';

it('lets tasks of one key follow each other, failed ones too, and others run', async () => {
  const turns = new KeyedTurns();
  const done: string[] = [];
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const first = turns.run('a', async () => {
    await gate;
    done.push('first');
    throw new Error('failed');
  });
  const second = turns.run('a', async () => done.push('second'));
  await turns.run('b', async () => done.push('other'));
  release();
  await expect(first).rejects.toThrow('failed');
  await second;
  expect(done).toEqual(['other', 'first', 'second']);
});
