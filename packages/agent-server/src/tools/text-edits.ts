import { clipText } from '../clipped-text.js';
import { ToolInputError } from './tool.js';

const CONTEXT_LINES = 4;
/** As `numberedLines` writes them. */
const LINE_NUMBERS = /^ *\d+\t/gm;

/** The mark that some editors put before the text; models neither see nor write it. */
export const BOM = '\uFEFF';

/** Any form of line break matches. @throws ToolInputError when the text does not occur, or more than once */
export function replaceUnique(content: string, old: string, replacement: string): string {
  if (old === '') {
    throw new ToolInputError('old_str is empty.');
  }
  if (content.startsWith(BOM)) {
    return BOM + replaceUnique(content.slice(1), withoutBom(old), withoutBom(replacement));
  }
  const [wanted, text] = [withLf(old), withLf(content)];
  if (wanted === withLf(replacement) && old !== replacement) {
    // The edit changes the line breaks themselves.
    const at = findUnique(content, old);
    return content.slice(0, at) + replacement + content.slice(at + old.length);
  }
  const first = findUnique(text, wanted);
  const start = positionIn(content, first);
  const end = positionIn(content, first + wanted.length);
  const ending = lineEnding(content, start, end);
  return content.slice(0, start) + withEnding(replacement, ending) + content.slice(end);
}

function findUnique(content: string, old: string): number {
  const first = content.indexOf(old);
  if (first === -1) {
    throw new ToolInputError(
      `old_str does not occur in the file exactly like this; ${nearMiss(content, old)}`,
    );
  }
  if (content.indexOf(old, first + 1) !== -1) {
    const lines = occurrenceLines(content, old).join(', ');
    throw new ToolInputError(
      `old_str occurs in the file more than once (lines ${lines}); add lines around it until it is unique.`,
    );
  }
  return first;
}

/** Names the only lines that differ in white space alone, or in numbers that were copied from a view, if there are any. */
function nearMiss(content: string, old: string): string {
  const target = `\n${plain(old.replaceAll(LINE_NUMBERS, '')).trim()}\n`;
  const [before = '', ...after] = plain(`\n${content}\n`).split(target);
  const first = before.split('\n').length;
  const last = first + target.split('\n').length - 3;
  return target.trim() === '' || after.length !== 1
    ? 'look at the file again, white space included.'
    : `only white space, or line numbers, differ in lines ${first} to ${last}:\n${clipText(numberedLines(content, [first, last]))}`;
}

function plain(text: string): string {
  return text.replaceAll(/[^\S\n]+/g, ' ').replaceAll(/ ?\n ?/g, '\n');
}

/** Inserts lines after a line (0: before the first), with the line breaks around them. @throws ToolInputError */
export function insertAfter(content: string, line: number, text: string): string {
  if (content.startsWith(BOM)) {
    return BOM + insertAfter(content.slice(1), line, withoutBom(text));
  }
  const lines = splitLines(content);
  if (line > lines.length) {
    throw new ToolInputError(`insert_line is ${line}, but the file has ${lines.length} lines.`);
  }
  const before = lines.slice(0, line).join('');
  const after = lines.slice(line).join('');
  const ending = lineEnding(content, before.length - (lines[line - 1]?.length ?? 0), before.length);
  const added = ending === null ? text : withEnding(text, ending);
  const gap = before !== '' && !before.endsWith('\n') ? (ending ?? '\n') : '';
  const end = after !== '' && !text.endsWith('\n') ? (ending ?? '\n') : '';
  return before + gap + added + end + after;
}

function withoutBom(text: string): string {
  return text.startsWith(BOM) ? text.slice(1) : text;
}

function withLf(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

function withEnding(text: string, ending: string | null): string {
  return ending === null ? text : withLf(text).replaceAll('\n', ending);
}

/** Maps a position in the text with LF only to the text itself. */
function positionIn(content: string, position: number): number {
  let shift = 0;
  for (let at = content.indexOf('\r\n'); at !== -1; at = content.indexOf('\r\n', at + 2)) {
    if (at - shift >= position) {
      break;
    }
    shift += 1;
  }
  return position + shift;
}

/** The line break in a part of the text, else the next one, else the one before; null if there is none. */
function lineEnding(content: string, start: number, end: number): string | null {
  const inside = content.indexOf('\n', start);
  const at = inside !== -1 && inside < end ? inside : content.indexOf('\n', end);
  const found = at === -1 ? content.lastIndexOf('\n', end) : at;
  if (found === -1) {
    return null;
  }
  return content[found - 1] === '\r' ? '\r\n' : '\n';
}

/** Numbers the lines of a range, from 1; -1 as the last means the end. @throws ToolInputError for other lines */
export function numberedLines(content: string, range: readonly number[] | null): string {
  const lines = splitLines(withoutBom(content));
  const [first = 1, last = -1] = range ?? [];
  const end = last === -1 ? lines.length : last;
  const fits = first >= 1 && first <= Math.max(1, lines.length) && (last === -1 || last >= first);
  if (!fits || (range !== null && range.length !== 2)) {
    throw new ToolInputError(
      `view_range [${(range ?? []).join(', ')}] does not fit: the file has ${lines.length} lines.`,
    );
  }
  return lines
    .slice(first - 1, end)
    .map((line, index) => `${String(first + index).padStart(6)}\t${line.replace(/\r?\n$/, '')}`)
    .join('\n');
}

export function changedLines(before: string, after: string): string {
  let same = 0;
  while (same < after.length && after[same] === before[same]) {
    same += 1;
  }
  let sameEnd = 0;
  const limit = Math.min(after.length, before.length) - same;
  while (sameEnd < limit && after.at(-1 - sameEnd) === before.at(-1 - sameEnd)) {
    sameEnd += 1;
  }
  const count = Math.max(1, after.split('\n').length);
  const first = after.slice(0, same).split('\n').length;
  const last = after.slice(0, after.length - sameEnd).split('\n').length;
  const range = [Math.max(1, first - CONTEXT_LINES), Math.min(count, last + CONTEXT_LINES)];
  return after === '' ? '(empty)' : numberedLines(after, range);
}

function splitLines(content: string): string[] {
  return content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function occurrenceLines(content: string, text: string): number[] {
  const lines: number[] = [];
  for (let at = content.indexOf(text); at !== -1 && lines.length < 10; at = content.indexOf(text, at + 1)) {
    lines.push(content.slice(0, at).split('\n').length);
  }
  return lines;
}
