import { expect, it } from '@jest/globals';
import { OutputWindow } from './clipped-text.js';

function windowOf(limit: number, ...chunks: (string | number[])[]): string {
  const window = new OutputWindow(limit);
  chunks.forEach((chunk) => window.push(Buffer.from(chunk)));
  return window.text();
}

it.each([
  ['nothing', [], ''],
  ['what fits', ['abc', 'def', 'ghij'], 'abcdefghij'],
  ['both ends of what does not', ['abcdefghijk'], 'abcde\n[... 1 characters left out ...]\nghijk'],
  [
    'both ends of many pieces',
    'abcdefghijklmnopqrstuvwxyz'.split(''),
    'abcde\n[... 16 characters left out ...]\nvwxyz',
  ],
  ['whole characters', ['abcd😀fghijkl😀mnop'], 'abcd\n[... 11 characters left out ...]\nmnop'],
  [
    'what follows a cut at the end',
    ['abcd', '😀', 'f', 'ghijklmnop'],
    'abcd\n[... 8 characters left out ...]\nlmnop',
  ],
  ['characters in halves', [[0xc3], [0xa4]], 'ä'],
])('OutputWindow keeps %s', (_, chunks, text) => {
  expect(windowOf(10, ...chunks)).toBe(text);
});
