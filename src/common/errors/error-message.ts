import { types } from 'node:util';

/** The message of whatever was thrown. */
export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** What a log keeps of an unexpected error: its stack, or its text when it has none. */
export function errorStack(error: unknown): string {
  return isError(error) ? (error.stack ?? error.message) : String(error);
}

/** The `code` of a system or PostgreSQL error (`ENOENT`, `57P03`); undefined for everything else. */
export function errorCode(error: unknown): string | undefined {
  const isObject = typeof error === 'object' && error !== null;
  return isObject && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Also recognises errors of another realm, which are no instances of this one's `Error`. */
function isError(error: unknown): error is Error {
  return error instanceof Error || types.isNativeError(error);
}
