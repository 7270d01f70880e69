import { ToolInputError } from './tool.js';

/**
 * Replaces the only place where a text stands.
 *
 * @throws ToolInputError when it stands nowhere or more than once
 */
export function replaceOnly(content: string, old: string, replacement: string): string {
  if (old === '') {
    throw new ToolInputError('old_str is empty.');
  }
  const first = content.indexOf(old);
  if (first === -1) {
    throw new ToolInputError(
      'old_str does not stand in the file exactly like this; look at the file again, white space included.',
    );
  }
  if (content.indexOf(old, first + 1) !== -1) {
    const lines = linesOf(content, old).join(', ');
    throw new ToolInputError(
      `old_str stands in the file more than once (lines ${lines}); add lines around it until it is unique.`,
    );
  }
  return content.slice(0, first) + replacement + content.slice(first + old.length);
}

/**
 * Puts lines after a line; 0 is before the first.
 *
 * @throws ToolInputError when the file has no such line
 */
export function insertAfter(content: string, line: number, text: string): string {
  const lines = splitLines(content);
  if (line > lines.length) {
    throw new ToolInputError(`insert_line is ${line}, but the file has ${lines.length} lines.`);
  }
  const before = lines.slice(0, line).join('');
  const after = lines.slice(line).join('');
  const gap = before !== '' && !before.endsWith('\n') ? '\n' : '';
  const end = after !== '' && !text.endsWith('\n') ? '\n' : '';
  return before + gap + text + end + after;
}

/**
 * Lines with their numbers.
 *
 * @param range first and last line, from 1; -1 as the last means the end
 * @throws ToolInputError when the file has no such lines
 */
export function numberedLines(content: string, range: readonly number[] | null): string {
  const lines = splitLines(content);
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

/** Each with its own end. */
function splitLines(content: string): string[] {
  return content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function linesOf(content: string, text: string): number[] {
  const lines: number[] = [];
  for (let at = content.indexOf(text); at !== -1 && lines.length < 10; at = content.indexOf(text, at + 1)) {
    lines.push(content.slice(0, at).split('\n').length);
  }
  return lines;
}
