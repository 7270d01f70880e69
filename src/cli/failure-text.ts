import { types } from 'node:util';
import { DomainError } from '../common/errors/domain-error.js';
import { ConfigError } from '../config/config.error.js';
import { EmbeddedPostgresError } from '../database/embedded-postgres/embedded-postgres.error.js';
import { UsageError } from './usage.error.js';

/** One line for what an operator can mend, the stack for everything else. */
export function failureText(error: unknown): string {
  if (!(error instanceof Error) && !types.isNativeError(error)) {
    return String(error);
  }
  if (
    error instanceof UsageError ||
    error instanceof DomainError ||
    error instanceof ConfigError ||
    error instanceof EmbeddedPostgresError
  ) {
    return error.message;
  }
  const { syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'connect' || syscall === 'getaddrinfo') {
    return `the database cannot be reached: ${error.message}`;
  }
  return error.stack ?? error.message;
}
