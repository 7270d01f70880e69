import { describe, expect, it } from '@jest/globals';
import { isBase64, isBlank, textHead, textTail } from './well-formed-text.js';

const FAMILY = '👨‍👩‍👧';

describe('textHead', () => {
  it.each([
    ['what fits', 'abc', 3, 'abc'],
    ['nothing', 'abc', 0, ''],
    ['nothing, for a negative length', 'abc', -1, ''],
    ['plain text', 'abcdef', 4, 'abcd'],
    ['before an emoji', 'ab😀cd', 3, 'ab'],
    ['after an emoji', 'ab😀cd', 4, 'ab😀'],
    ['before a joined emoji', `ab${FAMILY}cd`, 6, 'ab'],
    ['before a flag', 'a🇩🇪b', 3, 'a'],
    ['before a letter with its accent', 'ae\u0301b', 2, 'a'],
    [
      'between code points, in a character without end',
      `a${'\u0301'.repeat(200)}`,
      150,
      `a${'\u0301'.repeat(149)}`,
    ],
    ['far behind', '😀'.repeat(500), 801, '😀'.repeat(400)],
  ])('keeps %s', (_, text, length, expected) => {
    expect(textHead(text, length)).toBe(expected);
  });
});

describe('textTail', () => {
  it.each([
    ['what fits', 'abc', 3, 'abc'],
    ['nothing', 'abc', 0, ''],
    ['plain text', 'abcdef', 4, 'cdef'],
    ['after an emoji', 'ab😀cd', 3, 'cd'],
    ['from an emoji on', 'ab😀cd', 4, '😀cd'],
    ['after a joined emoji', `ab${FAMILY}cd`, 5, 'cd'],
    ['after a flag', 'a🇩🇪b', 3, 'b'],
    ['far behind', '😀'.repeat(500), 801, '😀'.repeat(400)],
  ])('keeps %s', (_, text, length, expected) => {
    expect(textTail(text, length)).toBe(expected);
  });

  it('never splits a surrogate pair, wherever it cuts', () => {
    const text = `x${'😀'.repeat(3)}${'\u0301'.repeat(150)}😀${FAMILY}e\u0301🇩🇪`;
    for (let length = 0; length <= text.length; length += 1) {
      expect(textHead(text, length).isWellFormed()).toBe(true);
      expect(textTail(text, length).isWellFormed()).toBe(true);
      expect(text.startsWith(textHead(text, length))).toBe(true);
      expect(text.endsWith(textTail(text, length))).toBe(true);
      expect(textHead(text, length).length).toBeLessThanOrEqual(length);
      expect(textTail(text, length).length).toBeLessThanOrEqual(length);
    }
  });
});

describe('isBase64', () => {
  it.each([
    ['QUJD', true],
    ['QUI=', true],
    ['QQ==', true],
    ['Q+/9', true],
    ['', false],
    ['Q===', false],
    ['Q=UI', false],
    ['QU-_', false],
    ['QUI\n', false],
  ])('%j: %p', (text, expected) => {
    expect(isBase64(text)).toBe(expected);
  });
});

// Tests run with --no-regexp-optimization, which is what V8 does in a process with many patterns.
it('megabytes are judged too', () => {
  expect(isBase64('A'.repeat(20_000_000))).toBe(true);
  expect(isBlank(' '.repeat(20_000_000))).toBe(true);
});
