import { isString } from 'class-validator';
import type { FieldKind } from '@slipway/api/validation/field.js';
import { MAX_SECRET, sentenceRule } from '@slipway/api/validation/field-decorators.js';

/** A name that shells accept for a variable. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
export const MAX_VARIABLE_NAME = 255;

/** What `variablesFromText` accepts: pairs, or nothing, between commas. */
export const VARIABLES_TEXT = (() => {
  const pair = String.raw`\s*(?:[A-Za-z_][A-Za-z0-9_]*\s*=[^,]*)?`;
  return `^${pair}(?:,${pair})*$`;
})();

/** What `argumentsFromText` accepts: every quotation is closed, and a character follows every backslash. */
export const ARGUMENTS_TEXT = String.raw`^(?:[^'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")*$`;

export function variableNameProblem(name: string): string | null {
  if (name.length > MAX_VARIABLE_NAME) {
    return `Expected a variable name of at most ${MAX_VARIABLE_NAME} characters.`;
  }
  return VARIABLE_NAME.test(name)
    ? null
    : 'Expected a variable name: a letter or underscore, then letters, digits and underscores.';
}

type FromText<Value> = { value: Value; problem: null } | { problem: string };

/** Takes one text for the whole list or map too; `pattern` says in OpenAPI what `read` accepts. */
export function orText(
  kind: FieldKind,
  read: (text: string) => FromText<unknown>,
  pattern: string,
): FieldKind {
  const { schema, coerce = (value) => value, rules } = kind;
  const problemOf = (text: string): string | null =>
    text.length > MAX_SECRET ? `Expected at most ${MAX_SECRET} characters.` : read(text).problem;
  const choice: object = {
    oneOf: [schema, { type: 'string', maxLength: MAX_SECRET, pattern }, { type: 'null' }],
  };
  return {
    ...kind,
    // Without a type, the generator would describe the class Map.
    schema: { type: Object, ...choice },
    coerce: (value) => {
      const outcome = isString(value) && problemOf(value) === null ? read(value) : null;
      return coerce(outcome?.problem === null ? outcome.value : value);
    },
    rules: { text: sentenceRule(problemOf), ...rules },
  };
}

/**
 * The arguments that a text stands for, as a POSIX shell splits it: white space separates, quotes and backslashes keep
 * what they enclose. Nothing is expanded.
 */
export function argumentsFromText(text: string): FromText<string[]> {
  const words: string[] = [];
  // Null: between two words. Empty quotes are a word too.
  let word: string | null = null;
  let index = 0;
  while (index < text.length) {
    const character = text.charAt(index);
    if (/\s/.test(character)) {
      if (word !== null) {
        words.push(word);
      }
      word = null;
      index += 1;
    } else {
      const piece = pieceAt(text, index);
      if (piece === null) {
        return {
          problem:
            character === '\\'
              ? 'Expected arguments as a shell reads them: a character is missing after the last backslash.'
              : `Expected arguments as a shell reads them: the closing quotation mark ${character} is missing.`,
        };
      }
      word = (word ?? '') + piece.text;
      index = piece.end;
    }
  }
  return { value: word === null ? words : [...words, word], problem: null };
}

interface Piece {
  text: string;
  /** Index of the first character after the piece. */
  end: number;
}

/** A quotation, an escaped character or a plain one; null when its end is missing. */
function pieceAt(text: string, start: number): Piece | null {
  switch (text.charAt(start)) {
    case "'": {
      const end = text.indexOf("'", start + 1);
      return end === -1 ? null : { text: text.slice(start + 1, end), end: end + 1 };
    }
    case '"':
      return doubleQuoted(text, start);
    case '\\':
      return start + 1 < text.length ? { text: text.charAt(start + 1), end: start + 2 } : null;
    default:
      return { text: text.charAt(start), end: start + 1 };
  }
}

/** Within double quotes a backslash escapes itself and the quotation mark only. */
function doubleQuoted(text: string, start: number): Piece | null {
  let content = '';
  for (let index = start + 1; index < text.length; index += 1) {
    const character = text.charAt(index);
    if (character === '"') {
      return { text: content, end: index + 1 };
    }
    const next = text.charAt(index + 1);
    if (character === '\\' && (next === '"' || next === '\\')) {
      index += 1;
      content += next;
    } else {
      content += character;
    }
  }
  return null;
}

/** The variables that a text such as `A=1,B=2` stands for; a later one wins over an earlier of the same name. */
export function variablesFromText(text: string): FromText<ReadonlyMap<string, string>> {
  const variables = new Map<string, string>();
  for (const pair of text.split(',').map((part) => part.trim())) {
    if (pair === '') {
      continue;
    }
    const equals = pair.indexOf('=');
    if (equals === -1) {
      return { problem: 'Expected NAME=value pairs, separated by commas; one of them has no equals sign.' };
    }
    const name = pair.slice(0, equals).trim();
    const problem = variableNameProblem(name);
    if (problem !== null) {
      return { problem };
    }
    variables.set(name, pair.slice(equals + 1));
  }
  return { value: variables, problem: null };
}
