/** What a line of Markdown belongs to: text, a block of code, the first or last line of a fence, a block of HTML. */
export interface MarkdownLine {
  text: string;
  kind: 'text' | 'code' | 'fence' | 'html';
  isQuoted: boolean;
  /** It begins an item of a list. */
  isItem: boolean;
}

interface OpenBlock {
  kind: 'code' | 'html';
  /** Quotes that it is in, and columns of the markers of lists. */
  quotes: number;
  indent: number;
  isEnd: (content: string) => boolean;
}

/** Of quotes and lists, in front of what a line says. */
export const MARKERS = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)))*[ \t]*/;
const LIST = /(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$)/;
const FENCE = /^(?:(`{3,})[^`]*|(~{3,}).*)$/;
/** HTML with an end of its own; other blocks of it end at an empty line (https://spec.commonmark.org/0.31.2/#html-blocks). */
export const HTML_ENDS = new Map([
  ['<!--', '-->'],
  ['<?', '?>'],
  ['<![CDATA[', ']]>'],
]);
export const EMPTY_COMMENT = /^<!---?>/;
const TAG = /^<[a-z!/][^\s/>]*(?=[\s/>]|$)/i;

/**
 * The lines of a Markdown text by what they are, in time that grows with its length alone: parsers of the whole language
 * take seconds for some kilobytes of markers that an attacker has chosen for that (docs/adr/0067).
 */
export function markdownLines(text: string): MarkdownLine[] {
  const lines: MarkdownLine[] = [];
  let open: OpenBlock | null = null;
  let [mayBeCode, isInList] = [true, false];
  for (const line of text.split(/\n|\r(?!\n)/)) {
    const [markers = ''] = MARKERS.exec(line) ?? [];
    const content = line.slice(markers.length).replace(/\r$/, '');
    const quotes = markers.split('>').length - 1;
    const isItem = LIST.test(markers);
    const add = (kind: MarkdownLine['kind']): number =>
      lines.push({ text: line, kind, isQuoted: quotes > 0, isItem: isItem && open === null });
    if (open !== null && isWithin(open, line, quotes)) {
      const isEnd: boolean = open.isEnd(content);
      add(isEnd && open.kind === 'code' ? 'fence' : open.kind);
      open = isEnd ? null : open;
      mayBeCode = true;
      continue;
    }
    open = null;
    isInList = isItem || (isInList && (content === '' || /^[ \t]/.test(line)));
    if (mayBeCode && !isInList && quotes === 0 && /^(?: {4}| {0,3}\t)/.test(line)) {
      add(content === '' ? 'text' : 'code');
      continue;
    }
    const begun = blockAt(content, quotes, isItem ? markers.length : 0);
    add(begun === null ? 'text' : begun.kind === 'code' ? 'fence' : 'html');
    mayBeCode = content === '' || begun !== null;
    open = begun?.kind === 'html' && begun.isEnd(content) ? null : begun;
  }
  return lines;
}

function blockAt(content: string, quotes: number, indent: number): OpenBlock | null {
  const [, backticks, fence = backticks] = FENCE.exec(content) ?? [];
  if (fence !== undefined) {
    return { kind: 'code', quotes, indent, isEnd: (line) => isEndOf(fence, line.trim()) };
  }
  for (const [begin, end] of HTML_ENDS) {
    if (content.startsWith(begin)) {
      const isEnd = (line: string): boolean => line.includes(end) || EMPTY_COMMENT.test(line);
      return { kind: 'html', quotes, indent, isEnd };
    }
  }
  return TAG.test(content) ? { kind: 'html', quotes, indent, isEnd: (line) => line === '' } : null;
}

/** A block ends with the quote or the item of a list that it is in. */
function isWithin({ quotes, indent }: OpenBlock, line: string, found: number): boolean {
  const [, inner = ''] = /^(?:[ \t]*>)*([ \t]*)/.exec(line) ?? [];
  return found >= quotes && (inner.length >= indent || line.trim() === '');
}

function isEndOf(fence: string, mark: string): boolean {
  return mark.length >= fence.length && mark === fence.charAt(0).repeat(mark.length);
}
