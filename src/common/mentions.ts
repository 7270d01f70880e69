/** What stands before the mark of a block: markers of lists and quotes. */
const QUOTE = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)*>/;
const FENCE = /^\s*(?:(?:[-*+>]|\d{1,9}[.)])\s+)*(?:(`{3,})[^`]*$|(~{3,}))/;
const INDENTED = /^(?: {4}| {0,3}\t)/;

/**
 * Whether the author of a comment speaks to a name: `@name` in any case, at a word's beginning, outside of quoted lines, code
 * spans, fenced and indented code, mail and web addresses. Takes time that grows with the length of the text alone.
 * @param order what has to follow, such as `stop`; by default anything may
 */
export function mentions(text: string, name: string, order?: string): boolean {
  const escaped = name.replaceAll(/[^\p{L}\p{N}_-]/gu, String.raw`\$&`);
  const rest = order === undefined ? '' : `[:,]?\\s+${order}(?![\\p{L}\\p{N}_-])`;
  const mention = new RegExp(
    `(?<![\\p{L}\\p{N}_.@/=&#%+$\\\\-])@${escaped}(?![\\p{L}\\p{N}_-]|\\.\\p{L})${rest}`,
    'iu',
  );
  return name !== '' && mention.test(withoutAddresses(spoken(text)));
}

/** What the author says, and does not quote. */
function spoken(text: string): string {
  const lines: string[] = [];
  let fence: string | null = null;
  let mayBeCode = true;
  for (const line of text.split(/\r\n?|\n/)) {
    const [, backticks, tildes = backticks] = FENCE.exec(line) ?? [];
    const isCode = mayBeCode && INDENTED.test(line);
    if (fence !== null) {
      fence = isEndOf(fence, line) ? null : fence;
    } else if (tildes !== undefined) {
      fence = tildes;
    } else if (!isCode && !QUOTE.test(line)) {
      lines.push(line);
      mayBeCode = line.trim() === '';
      continue;
    }
    lines.push('');
    mayBeCode = true;
  }
  return lines
    .join('\n')
    .split(/\n{2,}/)
    .map(withoutCodeSpans)
    .join('\n\n');
}

function isEndOf(fence: string, line: string): boolean {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence.charAt(0).repeat(mark.length);
}

/** A span ends with as many backticks as it begins with. */
function withoutCodeSpans(paragraph: string): string {
  const runs = Array.from(paragraph.matchAll(/`+/g), ({ 0: { length }, index }) => ({ length, index }));
  const ends: (number | undefined)[] = [];
  const nearest = new Map<number, number>();
  for (let at = runs.length - 1; at >= 0; at -= 1) {
    const length = runs[at]?.length ?? 0;
    ends[at] = nearest.get(length);
    nearest.set(length, at);
  }
  let [kept, from] = ['', 0];
  for (let at = 0; at < runs.length; at += 1) {
    const end = ends[at];
    if (end !== undefined) {
      kept += `${paragraph.slice(from, runs[at]?.index)} `;
      from = (runs[end]?.index ?? 0) + (runs[end]?.length ?? 0);
      at = end;
    }
  }
  return kept + paragraph.slice(from);
}

function withoutAddresses(text: string): string {
  return text.replaceAll(/\S+/g, (word) => {
    const start = word.search(/:\/\/|www\.|mailto:/i);
    return start < 0 ? word : word.slice(0, start);
  });
}
