import { Parser } from 'htmlparser2';
import MarkdownIt, { type Token } from 'markdown-it';

/** Characters of one text, or of all texts of one value, that reach a model or are searched for mentions. */
export const MAX_MARKDOWN = 32_000;
const SEEN = /[^\s\p{Cc}\p{Cf}\p{DI}]/u;
const FOOTNOTE = /\[\^([^\s\]]+)\]:[ \t]*/y;
const REFERENCE = /\[\^([^\s\]]+)\]/g;
/** Hosts draw these, without the lines that are comments in them. */
const DRAWN = /^(?:mermaid|math)$/i;
/** HTML shows what is in these as it stands; git hosts take away the tags, and show it as HTML. */
const SHOWN_AS_IT_STANDS =
  /<(?=\/?(?:iframe|math|noembed|noframes|plaintext|script|style|svg|textarea|title|xmp)(?:[\s/>]|$))\/?/gi;
/** An answer right below a quoted line is its author's, which Markdown counts to the quote. */
const ANSWER = /^([ \t]*>.*)(?:\r\n?|\n)(?=[ \t]*[^\s>])/gm;

const markdown = new MarkdownIt({ html: true, maxNesting: 20 });
// Hides nothing, and is Markdown still.
markdown.disable(['emphasis', 'strikethrough', 'text_join']);
// What is no link to a browser would be text here, with its title.
markdown.validateLink = () => true;
// Words that only a model would read are no address.
markdown.normalizeLink = (address) => address.replaceAll(/[\s<>]/g, encodeURIComponent);
// They are shown where something refers to them, unlike other definitions.
markdown.block.ruler.before(
  'reference',
  'footnote',
  (state, line, end, isSilent) => {
    const { bMarks, tShift, sCount, src } = state;
    const [begin = 0, indent = 0, column = 0] = [bMarks[line], tShift[line], sCount[line]];
    FOOTNOTE.lastIndex = begin + indent;
    const [head = '', label = ''] = FOOTNOTE.exec(src) ?? [];
    if (label === '' || column - state.blkIndent >= 4 || isSilent) {
      return label !== '' && column - state.blkIndent < 4;
    }
    const open = state.push('footnote_open', '', 1);
    [open.info, open.content] = [label.toLowerCase(), head.trimEnd()];
    state.blkIndent += 4;
    [bMarks[line], tShift[line], sCount[line]] = [begin + indent + head.length, 0, state.blkIndent];
    state.md.block.tokenize(state, line, end);
    [bMarks[line], tShift[line], sCount[line]] = [begin, indent, column];
    state.blkIndent -= 4;
    state.push('footnote_close', '', -1);
    return true;
  },
  { alt: ['paragraph', 'reference', 'blockquote', 'list'] },
);

/** What hides by its own end. */
const HIDING = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
] as const;
const lastEnds = new WeakMap<object, Map<string, number>>();
const htmlInline = markdown.inline.ruler.getRules('').at(-2);
// Once an end is missing, markdown-it takes all of them for text, also those of other kinds and before it.
markdown.inline.ruler.at('html_inline', (state, isSilent) => {
  const [, end] = HIDING.find(([begin]) => state.src.startsWith(begin, state.pos)) ?? [];
  if (end !== undefined) {
    const known = lastEnds.get(state) ?? new Map<string, number>();
    const last = known.get(end) ?? state.src.lastIndexOf(end);
    lastEnds.set(state, known.set(end, last));
    state.skipHtmlSpecial = last < state.pos;
  }
  return htmlInline?.(state, isSilent) === true;
});

/** How tokens stand in the text; `ends` has what stands behind the texts of links. Others have their content. */
const SHOWN: Partial<Record<string, (token: Token, ends: string[]) => string>> = {
  text_special: ({ markup }) => markup,
  softbreak: () => '\n',
  hardbreak: () => '\n',
  code_inline: ({ markup, content }) => markup + content + markup,
  code_block: ({ content }) => content.replaceAll(/^(?=.)/gm, '    '),
  fence: ({ markup, info, content }) => {
    const language = /\S*/.exec(info.trim())?.[0] ?? '';
    const code = DRAWN.test(language) ? content.replaceAll(/^[ \t]*%.*\n?/gm, '') : content;
    return `${markup}${language}\n${code}${markup}\n`;
  },
  footnote_open: ({ content }) => `${content} `,
  heading_open: ({ tag }) => `${'#'.repeat(Number(tag.slice(1)))} `,
  hr: ({ markup }) => `${markup}\n`,
  list_item_open: ({ level, info, markup }) => `${'  '.repeat(level / 2)}${info}${markup} `,
  th_open: () => '| ',
  td_open: () => '| ',
  th_close: () => ' ',
  td_close: () => ' ',
  tr_close: () => '|',
  link_open: (token, ends) => {
    const isAuto = token.markup === 'autolink';
    ends.push(isAuto ? '>' : `](${token.attrGet('href') ?? ''})`);
    return isAuto ? '<' : '[';
  },
  link_close: (_token, ends) => ends.pop() ?? '',
  image: (token) => `![](${token.attrGet('src') ?? ''})`,
};

/**
 * What a person sees of Markdown, as Markdown: only models would read comments, tags, definitions of links, the texts in the
 * place of images, titles, and what follows the language of a fence. Code is kept as it is.
 */
export function renderedMarkdown(text: string): string {
  return rendered(text, false);
}

/** What its author says there, and neither quotes nor shows as code. */
export function spokenText(text: string): string {
  return rendered(text.replaceAll(ANSWER, '$1\n\n'), true);
}

function rendered(text: string, isSpoken: boolean): string {
  const html: string[] = [];
  const ends: string[] = [];
  let quotes = 0;
  const isAtLineStart = (): boolean => html.at(-1)?.endsWith('\n') ?? true;
  const add = (part: string): void => {
    if (part !== '') {
      const begins = isAtLineStart() ? /(^|\n)(?=[^\n])/g : /(\n)(?=[^\n])/g;
      html.push(quotes === 0 ? part : part.replaceAll(begins, `$1${'&gt; '.repeat(quotes)}`));
    }
  };
  for (const block of withoutHidden(markdown.parse(text.slice(0, MAX_MARKDOWN), {}))) {
    if (block.level === 0 && block.nesting >= 0 && html.length > 0) {
      add('\n');
    }
    for (const token of block.type === 'inline' ? (block.children ?? []) : [block]) {
      quotes += token.type.startsWith('blockquote') ? token.nesting : 0;
      if (!isSpoken || (quotes === 0 && !/^(?:code|fence)/.test(token.type))) {
        const shown = SHOWN[token.type]?.(token, ends) ?? token.content;
        const part = token.type.startsWith('html') ? shown : markdown.utils.escapeHtml(shown);
        // A comment without an end hides all that follows.
        add(token.type === 'text' ? part.replaceAll('&lt;!--', '<!--') : part);
      }
      if (/^(?:paragraph|heading|list_item|tr)_close$/.test(token.type) && !isAtLineStart()) {
        add('\n');
      }
    }
  }
  return textOf(html.join(''));
}

/** Without footnotes that nothing outside of footnotes refers to, repeated ones, and links that have no text. */
function withoutHidden(blocks: Token[]): Token[] {
  const referred = new Set<string>();
  let depth = 0;
  for (const { type, nesting, children } of blocks) {
    depth += type.startsWith('footnote') ? nesting : 0;
    for (const { type: kind, content } of depth === 0 ? (children ?? []) : []) {
      for (const [, label = ''] of kind === 'text' ? content.matchAll(REFERENCE) : []) {
        referred.add(label.toLowerCase());
      }
    }
  }
  let hidden = 0;
  return blocks.filter((block) => {
    const { type, info, nesting, children } = block;
    const isFootnote = type.startsWith('footnote');
    if (hidden > 0 || (isFootnote && nesting > 0 && !referred.delete(info))) {
      hidden += isFootnote ? nesting : 0;
      return false;
    }
    block.children = withoutEmptyLinks(children);
    return true;
  });
}

function withoutEmptyLinks(tokens: Token[] | null): Token[] | null {
  const shown: Token[] = [];
  let isLinkEmpty = false;
  for (const token of tokens ?? []) {
    const { type, content } = token;
    if (type === 'link_close' && isLinkEmpty) {
      shown.splice(
        shown.findLastIndex((before) => before.type === 'link_open'),
        Infinity,
      );
    } else {
      shown.push(token);
    }
    const isSeen = type === 'image' || (type !== 'html_inline' && SEEN.test(content));
    isLinkEmpty = type === 'link_open' || (isLinkEmpty && !isSeen);
  }
  return tokens && shown;
}

function textOf(html: string): string {
  let text = '';
  const parser = new Parser({ ontext: (part) => (text += part) });
  parser.end(html.replaceAll(SHOWN_AS_IT_STANDS, '$&x-'));
  return text.replace(/^\n+/, '').trimEnd().slice(0, MAX_MARKDOWN);
}
