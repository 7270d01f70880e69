import { describe, expect, it } from '@jest/globals';
import { processorMs } from '../../../../test/support/processor-time.js';
import { insertAfter, numberedLines, replaceUnique } from './text-edits.js';

describe('replaceUnique', () => {
  it.each([
    ['LF', 'a\nb\nc\n', 'a\nb', 'x\ny', 'x\ny\nc\n'],
    ['CRLF', 'a\r\nb\r\nc\r\n', 'a\nb', 'x\ny\nz', 'x\r\ny\r\nz\r\nc\r\n'],
    ['CRLF with its break', 'a\r\nb\r\nc', 'b\n', '', 'a\r\nc'],
    ['CRLF from its break', 'a\r\nb\r\nc', '\nb', '\nB', 'a\r\nB\r\nc'],
    ['CRLF in one line', 'a\r\nb\r\nc', 'b', 'x\ny', 'a\r\nx\r\ny\r\nc'],
    ['CRLF in the last line', 'a\r\nb\r\nc', 'c', 'x\ny', 'a\r\nb\r\nx\r\ny'],
    ['CRLF given as CRLF', 'a\r\nb\r\n', 'a\r\nb', 'x\r\ny', 'x\r\ny\r\n'],
    ['LF given as CRLF', 'a\nb\n', 'a\r\nb', 'x\r\ny', 'x\ny\n'],
    ['mixed, the place decides', 'a\nb\r\nc\r\nd\n', 'b\nc', 'x\ny', 'a\nx\r\ny\r\nd\n'],
    ['mixed, before it LF', 'a\nb\nc\r\n', 'a', 'x\ny', 'x\ny\nb\nc\r\n'],
    ['mixed within', 'a\nb\r\nc\n', 'a\nb\nc', 'x\ny\nz', 'x\ny\nz\n'],
    ['no break', 'ab', 'a', 'x\r\ny', 'x\r\nyb'],
    ['a lone CR stays', 'a\rb\r\nc', 'c', 'x\ny', 'a\rb\r\nx\r\ny'],
    ['BOM', '\uFEFFa\r\nb', 'a\nb', 'x\ny', '\uFEFFx\r\ny'],
    ['BOM that the model copied', '\uFEFFa\nb', '\uFEFFa', '\uFEFFx', '\uFEFFx\nb'],
    ['BOM that the model lost', '\uFEFFa\nb', '\uFEFFa', 'x', '\uFEFFx\nb'],
    ['the breaks themselves', 'a\r\nb\r\n', 'a\r\nb', 'a\nb', 'a\nb\r\n'],
    ['$ in the new text', 'a\r\nb', 'a', '$& $1', '$& $1\r\nb'],
  ])('%s', (_, content, old, replacement, expected) => {
    expect(replaceUnique(content, old, replacement)).toBe(expected);
  });

  it('counts occurrences whatever their line breaks', () => {
    expect(() => replaceUnique('a\nb\n\r\na\r\nb\r\n', 'a\nb', 'x')).toThrow('more than once (lines 1, 4)');
    expect(() => replaceUnique('a\r\nb', 'b\na', 'x')).toThrow('does not occur');
  });

  // OpenHands/OpenHands#7888, defilantech/LLMKube#916
  it.each(['if a:\n  b()', '     2\tif a:\n     3\t\tb()'])(
    'shows the only lines that are alike: %j',
    (old) => {
      const content = 'x\nif a:  \n\tb()\n';
      expect(() => replaceUnique(content, old, 'y')).toThrow('lines 2 to 3:\n     2\tif a:  \n     3\t\tb()');
      expect(() => replaceUnique(content + content, old, 'y')).toThrow('look at the file again');
    },
  );

  it('takes time in proportion to the length', () => {
    const content = 'line\r\n'.repeat(500_000);
    const took = processorMs(() => {
      expect(replaceUnique(`${content}end`, 'end', 'END\n')).toHaveLength(content.length + 5);
    });
    expect(took).toBeLessThan(3_000);
  });
});

it.each([
  ['LF', 'a\nb\n', 1, 'x', 'a\nx\nb\n'],
  ['CRLF', 'a\r\nb\r\n', 1, 'x\ny', 'a\r\nx\r\ny\r\nb\r\n'],
  ['CRLF before the first', 'a\r\nb\r\n', 0, 'x\n', 'x\r\na\r\nb\r\n'],
  ['CRLF behind an open end', 'a\r\nb', 2, 'x\ny', 'a\r\nb\r\nx\r\ny'],
  ['mixed', 'a\nb\r\nc\n', 2, 'x', 'a\nb\r\nx\r\nc\n'],
  ['BOM', '\uFEFFa\r\n', 0, 'x', '\uFEFFx\r\na\r\n'],
  ['an empty file', '', 0, 'x\n', 'x\n'],
  ['no break', 'a', 1, 'x', 'a\nx'],
])('insertAfter: %s', (_, content, line, text, expected) => {
  expect(insertAfter(content, line, text)).toBe(expected);
});

it('shows lines without their breaks, and no byte order mark', () => {
  expect(numberedLines('\uFEFFa\r\nb\n', null)).toBe('     1\ta\n     2\tb');
});
