import { describe, expect, it } from '@jest/globals';
import { pausedNotes } from './sandbox-quota.js';

describe('pausedNotes', () => {
  it.each([
    [[], []],
    [['a'], ['Sandbox a was idle for longest, and was paused to make room.']],
    [['a', 'b', 'c'], ['Sandboxes a, b, c were idle for longest, and were paused to make room.']],
  ])('names all of %j', (ids, expected) => {
    expect(pausedNotes(ids)).toEqual(expected);
  });
});
