import { expect, it } from '@jest/globals';
import { messageEvent } from '../../../test/fakes/sample-events.js';
import { conversationTitle } from './events.js';

it.each([
  ['Fix the build', 50, 'Fix the build'],
  ['\n\n# Fix   the build\nplease', 50, 'Fix the build'],
  ['Fix the build of the front end', 16, 'Fix the build…'],
  ['Donaudampfschifffahrt', 8, 'Donauda…'],
  ['😀😀😀', 2, '😀…'],
  ['   ', 50, null],
])('%j in %d letters', (text, maxLength, expected) => {
  expect(
    conversationTitle([messageEvent('a', 'agent', 'Hello'), messageEvent('b', 'user', text)], maxLength),
  ).toBe(expected);
});

it('of a line without end', () => {
  const line = '#'.repeat(20_000_000);
  expect(conversationTitle([messageEvent('a', 'user', `${line}\nFix it`)], 50)).toBe('Fix it');
});
