import { errorMessage, errorStack } from '../common/errors/error-message.js';
import { ConfigError } from '../config/config.error.js';
import { EmbeddedPostgresError } from '../database/embedded-postgres/embedded-postgres.error.js';

/** Ends the process, with one line for what an operator can mend and with the stack for everything else. */
export function reportStartFailure(error: unknown): void {
  const known =
    error instanceof ConfigError || error instanceof EmbeddedPostgresError || isListenError(error);
  const text = known ? errorMessage(error) : errorStack(error);
  process.stderr.write(`slipway cannot start: ${text}\n`);
  process.exit(1);
}

function isListenError(error: unknown): boolean {
  const { code, syscall } = error as { code?: string; syscall?: string };
  return syscall === 'listen' || ['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL'].includes(code ?? '');
}
