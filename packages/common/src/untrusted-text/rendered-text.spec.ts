import { describe, expect, it } from '@jest/globals';
import { renderedMarkdown } from './rendered-text.js';

describe('rendered Markdown', () => {
  it.each([
    ['a comment', 'a<!-- b -->c', 'ac'],
    ['a comment over lines', 'a <!-- b\nc --> d', 'a  d'],
    ['a block that is a comment', '<!--\n\n```\nb\n```\n\n-->\nc', 'c'],
    ['a comment without an end', 'a\n<!-- b\n\nc', 'a'],
    ['one in a paragraph', 'a <!-- b\n\nc', 'a'],
    ['CDATA', 'a <![CDATA[ b ]]> c', 'a  c'],
    ['a processing instruction', 'a <?b c?> d', 'a  d'],
    ['a declaration', 'a <!DOCTYPE b> c', 'a  c'],
    ['attributes, also with quoted marks', '<p title="b > c" hidden>d</p>', 'd'],
    ['a definition of a link', '[a]: https://a.example "b"\nc', 'c'],
    ['definitions in a row', "[a]: /a\n[b]: <b c> 'd'\n\ne", 'e'],
    ['one over three lines', '[a]:\n/a\n"b\nc"\nd', 'd'],
    ['one below a heading', '# a\n[b]: /c "d"\ne', '# a\n\ne'],
    ['one in an item of a list', '- a\n- [b]: /c "d"', '- a\n-'],
    ['one in a quote', '> [b]: /c\n> "d"\n> e', '> e'],
    ['the title of a link', '[a](https://a.example "b")', '[a](https://a.example)'],
    ['the title of a link in other quotes', "[a](<b c> 'd \\' e') (f)", '[a](b c) (f)'],
    ['the text in the place of an image', '![a [b] c](https://a.example "d")', '![](https://a.example)'],
    ['that of one that is defined elsewhere', '![a b][c] ![c]\n\n[c]: /d "e"', '![](/d) ![](/d)'],
    ['the name of a definition', '[a][b c]\n\n[B  c]: /d "e"', '[a](/d)'],
    ['what follows the language of a fence', '```ts b c\nd\n```', '```ts\nd\n```'],
    ['a comment behind a fence that its quote has ended', '> ```\n<!-- a -->\nb', '> ```\n> ```\n\n\n\nb'],
    ['a comment behind a fence that its list has ended', '- ```\n <!-- a -->\nb', '- ```\n```\n\n \n\nb'],
    ['a comment in a list, which is no code', '- a\n\n    <!-- b -->', '- a'],
    ['a comment in a block of HTML, where backticks are no code', '<div>\n`<!-- a -->`\n</div>', '``'],
    ['a comment behind backticks of attributes', 'x <a title="`">` `b` <!-- c --> `', 'x ` `b`<!-- c -->`'],
    ['a comment in what HTML shows as it stands', '<textarea a="b"><!-- c -->d</TEXTAREA >', 'd'],
    ['CDATA in an image', '<svg><![CDATA[ a ]]></svg> b', ' b'],
    ['a comment in a cell', '| a ` | <!-- b --> | ` |\n| - | - | - |', '| a ` |  | ` |'],
    ['what hides before what has no end', '[<? a ?><![CDATA[ b ]]><!c><!-- d --> e <!--', '[ e'],
    ['the same behind it', 'a <? b <!-- c --> d', 'a <? b  d'],
    ['the title of what is no link to a browser', '[a](javascript:b "c")', '[a](javascript:b)'],
  ])('leaves out %s', (_what, text, seen) => {
    expect(renderedMarkdown(text)).toBe(seen);
  });

  it.each([
    ['text behind an empty comment', '<!-->a<!--->b<!---->c', 'abc'],
    ['a comment in a fence', '```\n<!-- a -->\n```'],
    ['a comment in a code span', 'Write `<!-- a -->` and ``<b `c` d="e">``.'],
    ['a comment in indented code', 'a\n\n    <!-- b -->\n\nc'],
    ['a definition in code', '```md\n[a]: /b "c"\n```'],
    ['text in HTML', '<script>a</script><style>b</style><details><summary>c</summary>d</details>', 'abcd'],
    ['what is no tag', 'if a < b && c > d, or <3'],
    ['addresses', '<https://a.example> and <b@c.example>'],
    ['what looks like a definition within a paragraph', 'a\n[b]: c'],
    ['footnotes', 'a[^1]\n\n[^1]: b'],
    ['brackets', '[a] [b][c] ![d] - [ ] e'],
    ['escaped brackets', '\\[a](b "c") \\<!-- d'],
    [
      'headings, lists and quotes',
      '# a\n\n- b\n  1. c\n\n> d\n> e\n>\n> > f\n\n- [ ] g',
      '# a\n\n- b\n  1. c\n\n> d\n> e\n> > f\n\n- [ ] g',
    ],
    ['tables', '| e | f |\n| - | - |\n| g | h', '| e | f |\n| g | h |'],
    [
      'emphasis, entities and breaks',
      '**a** _b_ ~~c~~ &lt;!-- d --&gt;  \ne\\\nf',
      '**a** _b_ ~~c~~ &lt;!-- d --&gt;\ne\nf',
    ],
    ['code in a quote', '> ```ts\n> a\n> ```\n>\n>     b', '> ```ts\n> a\n> ```\n>     b'],
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
    '<a ',
    '<b>',
    '<b></i>',
    '<svg>',
    '- a\n ',
    '  - a\n',
    '> - ',
    '[a]: b\n',
    'a**b_',
    '--> <!--',
    '|-|\n',
    '#\n',
    '&',
  ])('makes no more of many %j', (piece) => {
    const text = piece.repeat(Math.ceil(32_000 / piece.length));
    expect(renderedMarkdown(text).length).toBeLessThanOrEqual(32_000);
  });
});
