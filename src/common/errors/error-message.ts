import { types } from 'node:util';

/** The message of whatever was thrown. */
export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** What a log keeps of an unexpected error: its stack, or its text when it has none. */
export function errorStack(error: unknown): string {
  return isError(error) ? (error.stack ?? error.message) : String(error);
}

/** Errors of Node itself are of another realm under Jest, where `instanceof` does not know them. */
function isError(error: unknown): error is Error {
  return error instanceof Error || types.isNativeError(error);
}
