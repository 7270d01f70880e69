import { expect, it } from '@jest/globals';
import { AnswerWatch } from './answer-watch.js';

it('shows a length every three seconds, behind those before', () => {
  const watch = new AnswerWatch();
  expect(watch.note).toBe('');
  const shown = [0, 100, 2_999, 3_000, 5_000, 6_001].map((now) => {
    watch.add('x'.repeat(now === 0 ? 7 : 1_000).concat(String(now)));
    return watch.isDue(now);
  });
  expect(shown).toEqual([true, false, false, true, false, true]);
  expect(watch.note).toBe('Held back until it is complete. Characters so far: 8 … 3,019 … 5,027');
});
