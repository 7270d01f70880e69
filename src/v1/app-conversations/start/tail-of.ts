import { stripVTControlCharacters } from 'node:util';

const LINES = 20;
const CHARACTERS = 2_000;

/** The last lines of an output, for people. */
export function tailOf(output: string): string {
  // PostgreSQL keeps no NUL, and nobody sees colours in a detail.
  const plain = stripVTControlCharacters(output).replaceAll('\0', '');
  return plain.trimEnd().split('\n').slice(-LINES).join('\n').slice(-CHARACTERS);
}
