import { stripVTControlCharacters } from 'node:util';

/** The task is gone, or another worker has it: whoever still works on it stops, and changes nothing any more. */
export class StartSuperseded extends Error {
  constructor() {
    super('the start is in other hands, or nobody wants it any more');
    this.name = 'StartEnded';
  }
}

/**
 * A start that cannot succeed as it was asked for. The message is shown to the user: what happened, and what to do.
 * Never a secret.
 */
export class StartFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartFailure';
  }
}

const LINES = 20;
const CHARACTERS = 2_000;

/** The last lines of an output, for people. */
export function tailOf(output: string): string {
  // PostgreSQL keeps no NUL, and nobody sees colours in a detail.
  const plain = stripVTControlCharacters(output).replaceAll('\0', '');
  return plain.trimEnd().split('\n').slice(-LINES).join('\n').slice(-CHARACTERS);
}
