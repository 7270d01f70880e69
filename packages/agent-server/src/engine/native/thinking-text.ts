/** Tags in which models that have no member for it put their reasoning, and marks of code. */
const MARK = /<(\/?)(?:think|thinking|thought)>|```|`/gi;

interface SplitText {
  text: string;
  reasoning: string;
}

interface Mark {
  kind: 'opening' | 'closing' | 'code';
  start: number;
  end: number;
}

/**
 * Separates reasoning in tags from the answer. Some templates put the opening tag into the prompt, and a cut answer
 * lacks the closing one. Tags in code or quotes are part of the answer.
 */
export function splitThinking(whole: string): SplitText {
  const marks = findMarks(whole);
  const text: string[] = [];
  const reasoning: string[] = [];
  const lastClosing = marks.findLastIndex(({ kind }) => kind === 'closing');
  const first = marks.findIndex(({ kind }) => kind !== 'code');
  let from = 0;
  let index = 0;
  const think = (begin: number): void => {
    while (index < marks.length && marks[index]?.kind !== 'closing') {
      index += 1;
    }
    const closing = marks[index];
    reasoning.push(whole.slice(begin, closing?.start));
    from = closing?.end ?? whole.length;
    index += 1;
  };
  if (marks[first]?.kind === 'closing') {
    think(0);
  }
  while (index < marks.length) {
    const mark = marks[index];
    if (mark?.kind === 'code') {
      index = codeEnd(whole, marks, index);
    } else if (mark?.kind === 'opening' && (index < lastClosing || beginsLine(whole, mark.start))) {
      text.push(whole.slice(from, mark.start));
      think(mark.end);
    } else {
      index += 1;
    }
  }
  if (reasoning.length === 0) {
    return { text: whole, reasoning: '' };
  }
  const parts = reasoning.map((part) => part.trim()).filter((part) => part !== '');
  return { text: (text.join('') + whole.slice(from)).trim(), reasoning: parts.join('\n\n') };
}

function findMarks(text: string): Mark[] {
  return [...text.matchAll(MARK)].flatMap(({ 0: match, 1: slash, index: start }): Mark[] => {
    const span = { start, end: start + match.length };
    if (slash === undefined) {
      return [{ kind: 'code', ...span }];
    }
    return /["'`]/.test(text[start - 1] ?? '')
      ? []
      : [{ kind: slash === '' ? 'opening' : 'closing', ...span }];
  });
}

/** The mark behind a code that begins here. An opening mark that nothing closes marks no code. */
function codeEnd(text: string, marks: readonly Mark[], index: number): number {
  const size = lengthOf(marks[index]);
  const isFence = size > 1;
  const lineEnd = text.indexOf('\n', marks[index]?.end);
  const limit = isFence || lineEnd === -1 ? text.length : lineEnd;
  for (let next = index + 1; next < marks.length; next += 1) {
    const mark = marks[next];
    if (mark === undefined || mark.start > limit) {
      break;
    }
    if (mark.kind === 'code' && lengthOf(mark) === size) {
      return next + 1;
    }
  }
  return isFence ? marks.length : index + 1;
}

function lengthOf(mark: Mark | undefined): number {
  return mark === undefined ? 0 : mark.end - mark.start;
}

function beginsLine(text: string, index: number): boolean {
  let before = index - 1;
  while (text[before] === ' ' || text[before] === '\t') {
    before -= 1;
  }
  return before < 0 || text[before] === '\n';
}
