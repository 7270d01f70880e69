import { describe, expect, it } from '@jest/globals';
import { renderedMarkdown } from './rendered-text.js';

describe('rendered Markdown', () => {
  it.each([
    ['a comment', 'a<!-- b -->c', 'ac'],
    ['a comment over lines', 'a <!-- b\nc --> d', 'a  d'],
    ['a block that is a comment', '<!--\n\n```\nb\n```\n\n-->\nc', '\nc'],
    ['a comment without an end', 'a\n<!-- b\n\nc', 'a\n'],
    ['one in a paragraph', 'a <!-- b\n\nc', 'a '],
    ['CDATA', 'a <![CDATA[ b ]]> c', 'a  c'],
    ['a processing instruction', 'a <?b c?> d', 'a  d'],
    ['a declaration', 'a <!DOCTYPE b> c', 'a  c'],
    ['attributes, also with quoted marks', '<p title="b > c" hidden>d</p>', 'd'],
    ['a definition of a link', '[a]: https://a.example "b"\nc', 'c'],
    ['definitions in a row', "[a]: /a\n[b]: <b c> 'd'\n\ne", '\n\ne'],
    ['one over three lines', '[a]:\n/a\n"b\nc"\nd', 'd'],
    ['one below a heading', '# a\n[b]: /c "d"\ne', '# a\ne'],
    ['one in an item of a list', '- a\n- [b]: /c "d"', '- a\n- '],
    ['one in a quote', '> [b]: /c\n> "d"\n> e', '> e'],
    ['the title of a link', '[a](https://a.example "b")', '[a](https://a.example)'],
    ['the title of a link in other quotes', "[a](<b c> 'd \\' e') (f)", '[a](<b c>) (f)'],
    ['the text in the place of an image', '![a [b] c](https://a.example "d")', '![](https://a.example)'],
    ['that of one that is defined elsewhere', '![a b][c] ![c]\n\n[c]: /d', '![] ![]\n\n'],
    ['the name of a definition', '[a][b c]\n\n[B  c]: /d', '[a]\n\n'],
    ['what follows the language of a fence', '```ts b c\nd\n```', '```ts\nd\n```'],
    ['a comment behind a fence that its quote has ended', '> ```\n<!-- a -->\nb', '> ```\n\nb'],
    ['a comment behind a fence that its list has ended', '- ```\n <!-- a -->\nb', '- ```\n \nb'],
    ['a comment in a list, which is no code', '- a\n\n    <!-- b -->', '- a\n\n    '],
    ['a comment in a block of HTML, where backticks are no code', '<div>\n`<!-- a -->`\n</div>', '\n``\n'],
    ['a comment behind backticks of attributes', 'x <a title="`">` `b` <!-- c --> `', 'x ` `b` <!-- c --> `'],
  ])('leaves out %s', (_what, text, seen) => {
    expect(renderedMarkdown(text)).toBe(seen);
  });

  it.each([
    ['text behind an empty comment', '<!-->a<!--->b<!---->c', 'abc'],
    ['a comment in a fence', '```\n<!-- a -->\n```'],
    ['a comment in a code span', 'Write `<!-- a -->` and ``<b `c` d="e">``.'],
    ['a comment in indented code', 'a\n\n    <!-- b -->\n\nc'],
    ['a definition in code', '```md\n[a]: /b "c"\n```'],
    ['what is no tag', 'if a < b && c > d, or <3'],
    ['addresses', '<https://a.example> and <b@c.example>'],
    ['what looks like a definition within a paragraph', 'a\n[b]: c'],
    ['footnotes', 'a[^1]\n\n[^1]: b'],
    ['brackets', '[a] [b][c] ![d] - [ ] e'],
    ['escaped brackets', '\\[a](b "c") \\<!-- d'],
    ['headings, lists, quotes and tables', '# a\n\n- b\n  1. c\n\n> d\n\n| e | f |\n| - | - |'],
  ])('keeps %s', (_what, text, seen = text) => {
    expect(renderedMarkdown(text)).toBe(seen);
  });

  it.each([
    '<!--',
    '<a "',
    '<?',
    '![',
    '[a](',
    '[a](b "',
    '`',
    '``` `',
    '- ',
    '> ',
    '[a]: /b "\n',
    '<![CDATA[',
    '*',
    '\\',
    '[a][b]',
    ']((',
  ])('makes no more of many %j', (piece) => {
    const text = piece.repeat(Math.ceil(32_000 / piece.length));
    expect(renderedMarkdown(text).length).toBeLessThanOrEqual(32_000);
  });
});
