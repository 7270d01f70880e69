import { expect, it } from '@jest/globals';
import { inChunks } from './event-store.js';

it.each([
  ['nothing', [], []],
  ['one chunk', [1, 2, 3], [[1, 2, 3]]],
  ['two chunks', [4, 4, 4], [[4, 4], [4]]],
  ['a chunk of its own for what is too large', [1, 20, 1], [[1], [20], [1]]],
])('makes %s', (_name, sizes, expected) => {
  expect(inChunks(sizes, (size) => size, 9)).toEqual(expected);
});
