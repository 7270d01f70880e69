import { stripVTControlCharacters } from 'node:util';

/**
 * A start that cannot succeed as it was requested. The message is for the user: what happened, and what to do. Never a
 * secret.
 */
export class StartFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartFailure';
  }
}

const MAX_LINES = 20;
const MAX_CHARACTERS = 2_000;

/** The last lines of a command's output, for people. */
export function tailOf(output: string): string {
  // PostgreSQL stores no NUL, and a detail has no colours.
  const plain = stripVTControlCharacters(output).replaceAll('\0', '');
  return plain.trimEnd().split('\n').slice(-MAX_LINES).join('\n').slice(-MAX_CHARACTERS);
}
