import { expect, it } from '@jest/globals';
import { withoutTerminalCodes } from './terminal-text.js';

it.each([
  ['colours', 'a\u001b[31;1mred\u001b[0m \u001b[38:5:1mb\u009b0m', 'ared b'],
  ['places', '\u001b[2J\u001b[?25l\u001b7\u001b(Ba\u001b8', 'a'],
  ['titles', '\u001b]0;title\u0007a\u001b]0;title\u001b\\b', 'ab'],
  ['links', '\u001b]8;;https://example.com\u001b\\text\u001b]8;;\u001b\\', 'text'],
  ['only the beginning of what has no end', '\u001b]0;title\nnext\u0007', '0;title\nnext\u0007'],
])('leaves out %s', (_what, text, shown) => {
  expect(withoutTerminalCodes(text)).toBe(shown);
});

it('takes no longer for beginnings without an end', () => {
  expect(withoutTerminalCodes('\u001b]8;;'.repeat(2 ** 20))).toBe('8;;'.repeat(2 ** 20));
  expect(withoutTerminalCodes(`${'\u001b['.repeat(2 ** 20)}m`)).toBe('');
  expect(withoutTerminalCodes(`\u001b[${'1;'.repeat(2 ** 20)}`)).toBe('1;'.repeat(2 ** 20));
});
