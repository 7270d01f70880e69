import { errorMessage, errorStack } from '../common/errors/error-message.js';
import { ConfigError } from '../config/config.error.js';
import { EmbeddedPostgresError } from '../database/embedded-postgres/embedded-postgres.error.js';

/** Ends the process. Prints one line for each problem that an operator can fix, and the stack for everything else. */
export function reportStartFailure(error: unknown): void {
  process.stderr.write(`slipway cannot start: ${startFailureText(error)}\n`);
  process.exit(1);
}

/** What the operator reads: the cause and, where that is known, what to do. */
export function startFailureText(error: unknown): string {
  if (error instanceof ConfigError || error instanceof EmbeddedPostgresError) {
    const lines = errorMessage(error).split('\n');
    return lines.length === 1 ? lines.join('') : lines.map((line) => `\n  ${line}`).join('');
  }
  const { code, syscall } = error as { code?: string; syscall?: string };
  if (syscall !== 'listen') {
    // For example a folder that cannot be created; the message names it.
    return code === 'EACCES' ? errorMessage(error) : errorStack(error);
  }
  const advice = ADVICE.get(code ?? '');
  return advice === undefined ? errorMessage(error) : `${errorMessage(error)} (${advice})`;
}

/** By the code of a failed listen(2). */
const ADVICE = new Map([
  ['EADDRINUSE', 'something listens there already: end it, or set PORT to another port'],
  ['EACCES', 'this user may not: set PORT to a port above 1023'],
  ['EADDRNOTAVAIL', 'this machine has no such address: set HOST to one that it has'],
]);
