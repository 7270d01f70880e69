import { EMPTY_COMMENT, HTML_ENDS, MARKERS, type MarkdownLine, markdownLines } from './markdown-lines.js';

const TITLE = String.raw`(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))`;
const TARGET = new RegExp(
  String.raw`\(\s*(<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+${TITLE})?\s*\)|\[((?:[^[\]\\]|\\.)*)\]`,
  'sy',
);
/** Footnotes are shown. */
const DEFINITION = new RegExp(
  String.raw`^\[(?!\^)((?:[^[\]\\]|\\.)+)\]:[\s>]*(?:<[^<>\n]*>|[^\s<]\S*)(?:[\s>]+${TITLE})?[ \t\r]*(?:\n|$)`,
  's',
);
/** Headings and lines across, which end a paragraph. */
const ENDS_PARAGRAPH = /^ {0,3}(?:#{1,6}(?:\s|$)|=+\s*$|(?:[-*_]\s*){3,}$)/;
const TAG = /<(?:![A-Za-z][^>]*|\/?[A-Za-z][A-Za-z0-9-]*(?=[\s/>])(?:[^<>"']|"[^"]*"|'[^']*')*)>/y;
const TOKEN = /`+|\\[\s\S]|<|!?\[|\]/g;
/** Of one text; no more of it reaches a model. */
const MAX_TEXT = 32_000;

/**
 * What a person sees of Markdown, as Markdown: only models would read comments, tags, definitions of links, the texts in the
 * place of images, titles, and what follows the language of a fence. Code is kept as it is.
 */
export function renderedMarkdown(text: string): string {
  return rendered(text.slice(0, MAX_TEXT), (code) => code);
}

/** What its author says there, and neither quotes nor shows as code. */
export function spokenText(text: string): string {
  return rendered(text, () => '', true);
}

function rendered(text: string, show: (code: string) => string, leavesOutQuotes = false): string {
  const labels = new Set<string>();
  const parts: string[] = [];
  const blocks = blocksOf(markdownLines(text));
  const paragraphs = blocks.map((block) =>
    block.kind === 'text' ? withoutDefinitions(block.text, labels) : block.text,
  );
  for (const [at, { kind, isQuoted }] of blocks.entries()) {
    const block = paragraphs[at] ?? '';
    if (leavesOutQuotes && isQuoted) {
      parts.push('');
    } else if (kind === 'code') {
      parts.push(show(block));
    } else if (kind === 'fence') {
      parts.push(show(withoutInfo(block)));
    } else {
      const { seen, hidesRest } = inline(block, kind === 'html', labels, show);
      parts.push(seen);
      if (hidesRest) {
        break;
      }
    }
  }
  return parts.join('\n');
}

/** The first line of a fence with the language alone. */
function withoutInfo(line: string): string {
  const [markers = ''] = MARKERS.exec(line) ?? [];
  return markers + line.slice(markers.length).replace(/^((?:`+|~+)[ \t]*\S*).*$/, '$1');
}

type Block = Pick<MarkdownLine, 'text' | 'kind' | 'isQuoted'>;

/** Lines that belong together. */
function blocksOf(lines: readonly MarkdownLine[]): Block[] {
  const blocks: { lines: string[]; last: MarkdownLine }[] = [];
  for (const line of lines) {
    const block = blocks.at(-1);
    const isNext =
      block?.last.kind === line.kind &&
      block.last.isQuoted === line.isQuoted &&
      !line.isItem &&
      line.kind !== 'fence' &&
      (line.kind !== 'text' ||
        !(isEmpty(line) || isEmpty(block.last) || ENDS_PARAGRAPH.test(block.last.text)));
    if (isNext) {
      block.lines.push(line.text);
      block.last = line;
    } else {
      blocks.push({ lines: [line.text], last: line });
    }
  }
  return blocks.map(({ lines: texts, last: { kind, isQuoted } }) => ({
    text: texts.join('\n'),
    kind,
    isQuoted,
  }));
}

function isEmpty({ text }: MarkdownLine): boolean {
  return text.replace(MARKERS, '').trim() === '';
}

/** Those at the beginning of a paragraph; elsewhere they are text. */
function withoutDefinitions(paragraph: string, labels: Set<string>): string {
  const [markers = ''] = MARKERS.exec(paragraph) ?? [];
  let rest = paragraph.slice(markers.length);
  for (;;) {
    const [definition, label] = DEFINITION.exec(rest) ?? [];
    if (definition === undefined || label === undefined) {
      return markers + rest;
    }
    labels.add(normalized(label));
    rest = rest.slice(definition.length).replace(MARKERS, '');
  }
}

function normalized(label: string): string {
  return label.trim().replaceAll(/\s+/g, ' ').toLowerCase();
}

/** A comment without an end hides all that follows. */
function inline(
  text: string,
  isHtml: boolean,
  labels: ReadonlySet<string>,
  show: (code: string) => string,
): { seen: string; hidesRest: boolean } {
  const runs = Map.groupBy(text.matchAll(/`+/g), ([run]) => run.length);
  const closing = bracketsOf(text);
  const closed = new Set(closing.values());
  const absent = new Set<string>();
  let [seen, from] = ['', 0];
  const skip = (at: number, end: number, kept: string): void => {
    seen += text.slice(from, at) + kept;
    from = end;
  };
  for (const { 0: token, index: at } of text.matchAll(TOKEN)) {
    if (at < from) {
      continue;
    }
    if (token.startsWith('`') && !isHtml) {
      const close = nextRun(runs.get(token.length) ?? [], at);
      if (close !== null) {
        const end = close + token.length;
        skip(at, end, show(text.slice(at, end)));
      }
    } else if (token === '<') {
      const end = htmlEnd(text, at, absent);
      if (end === null && text.startsWith('<!--', at)) {
        return { seen: seen + text.slice(from, at), hidesRest: true };
      }
      skip(at, end ?? at, '');
    } else if (token === '![') {
      const close = closing.get(at + 1);
      const target = close === undefined ? null : targetAt(text, close + 1, labels);
      const isShortcut = close !== undefined && labels.has(normalized(text.slice(at + 2, close)));
      if (close !== undefined && (target !== null || isShortcut)) {
        skip(at, target?.end ?? close + 1, `![]${target?.kept ?? ''}`);
      }
    } else if (token === ']' && closed.has(at)) {
      const target = targetAt(text, at + 1, labels);
      if (target !== null) {
        skip(at, target.end, `]${target.kept}`);
      }
    }
  }
  return { seen: seen + text.slice(from), hidesRest: false };
}

/** The next one behind a place; those before it are never asked for again. */
function nextRun(runs: RegExpExecArray[], at: number): number | null {
  while (runs[0] !== undefined && runs[0].index <= at) {
    runs.shift();
  }
  return runs[0]?.index ?? null;
}

/**
 * The end of a tag, comment or the like; null for what is text.
 * @param absent ends that were looked for in vain, and are not looked for again
 */
function htmlEnd(text: string, at: number, absent: Set<string>): number | null {
  const [empty] = EMPTY_COMMENT.exec(text.slice(at, at + 6)) ?? [];
  if (empty !== undefined) {
    return at + empty.length;
  }
  for (const [begin, end] of HTML_ENDS) {
    if (text.startsWith(begin, at)) {
      const found = absent.has(end) ? -1 : text.indexOf(end, at + begin.length);
      if (found < 0) {
        absent.add(end);
        return null;
      }
      return found + end.length;
    }
  }
  TAG.lastIndex = at;
  return TAG.test(text) ? TAG.lastIndex : null;
}

/** Where a link or an image leads, without its title; of a reference nothing is seen. */
function targetAt(
  text: string,
  at: number,
  labels: ReadonlySet<string>,
): { end: number; kept: string } | null {
  TARGET.lastIndex = at;
  const [target, address, label = ''] = TARGET.exec(text) ?? [];
  if (target === undefined || (address === undefined && label !== '' && !labels.has(normalized(label)))) {
    return null;
  }
  return { end: at + target.length, kept: address === undefined ? '' : `(${address})` };
}

/** Closing brackets by the opening ones. */
function bracketsOf(text: string): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  for (const { 0: token, index } of text.matchAll(/\\[\s\S]|\[|\]/g)) {
    if (token === '[') {
      open.push(index);
    } else if (token === ']') {
      const start = open.pop();
      if (start !== undefined) {
        pairs.set(start, index);
      }
    }
  }
  return pairs;
}
