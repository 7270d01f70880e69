/** Classes that grammars of model servers do not know by their letters. */
const CLASSES: Readonly<Record<string, string>> = { d: '0-9', w: 'A-Za-z0-9_', s: ' \\t\\r\\n' };
/** What has to be escaped outside of brackets, and what may be escaped everywhere. */
const SYNTAX = new Set('^$.[]()|{}*+?\\');
const CONTROLS = new Set('nrt');

/**
 * A pattern in what llama.cpp, xgrammar and OpenAI's strict mode know in common; null where there is none. A server that
 * cannot read one pattern refuses the whole request.
 */
export function commonPattern(pattern: string): string | null {
  if (!/^\^[^]*(?<!\\)\$$/.test(pattern)) {
    return null;
  }
  const tokens = pattern.match(/\\?[^]/gu) ?? [];
  let common = '';
  let hasHyphen = false;
  let bracket: string | null = null;
  for (const [index, token] of tokens.entries()) {
    const letter = token.slice(1);
    if (bracket === null) {
      const part = token.startsWith('\\') ? outside(letter) : token;
      if (part === null || (token === '?' && tokens[index - 1] === '(' && tokens[index + 1] !== ':')) {
        return null;
      }
      bracket = token === '[' ? '' : null;
      common += part;
    } else if (token === ']') {
      common += `${hasHyphen ? '-' : ''}]`;
      [bracket, hasHyphen] = [null, false];
    } else {
      const part = token.startsWith('\\') && letter !== '-' ? inside(letter) : token;
      if (part === null) {
        return null;
      }
      hasHyphen ||= token === '\\-';
      common += token === '\\-' ? '' : part;
    }
  }
  return common.replaceAll('(?:', '(');
}

function outside(letter: string): string | null {
  const members = CLASSES[letter.toLowerCase()];
  if (members !== undefined) {
    return `[${letter === letter.toLowerCase() ? '' : '^'}${members}]`;
  }
  return SYNTAX.has(letter) ? `\\${letter}` : plain(letter);
}

function inside(letter: string): string | null {
  return CLASSES[letter] ?? (['\\', ']', '['].includes(letter) ? `\\${letter}` : plain(letter));
}

function plain(letter: string): string | null {
  if (CONTROLS.has(letter)) {
    return `\\${letter}`;
  }
  return /[a-z0-9^]/i.test(letter) ? null : letter;
}
