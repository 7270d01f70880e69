import { types } from 'node:util';

const MAX_CAUSES = 10;

/** The message of whatever was thrown. */
export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/**
 * The message of an error with those of its causes, in one line: `fetch failed: connect ECONNREFUSED 127.0.0.1:9`. The
 * errors of several attempts count as causes.
 */
export function errorWithCauses(error: unknown): string {
  const messages: string[] = [];
  const seen = new Set<unknown>();
  const add = (value: unknown): void => {
    if (value === undefined || value === null || seen.has(value) || seen.size >= MAX_CAUSES) {
      return;
    }
    seen.add(value);
    const text = isError(value) || typeof value === 'string' ? errorMessage(value) : '';
    const message = text || errorCode(value);
    // Many errors repeat what their cause says.
    if (message && !messages.some((known) => known.includes(message))) {
      messages.push(message);
    }
    if (value instanceof AggregateError) {
      value.errors.forEach(add);
    }
    add(isError(value) ? value.cause : undefined);
  };
  add(error);
  return messages.join(': ') || errorMessage(error);
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
