import { types } from 'node:util';

const MAX_CAUSES = 10;

export function errorMessage(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** The message with those of its causes: `fetch failed: connect ECONNREFUSED 127.0.0.1:9`. */
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

export function errorStack(error: unknown): string {
  return isError(error) ? (error.stack ?? error.message) : String(error);
}

/** The `code` of a system or PostgreSQL error (`ENOENT`, `57P03`). */
export function errorCode(error: unknown): string | undefined {
  const isObject = typeof error === 'object' && error !== null;
  return isObject && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Null instead of an error with this code, such as `ENOENT` for a file that is not there. */
export async function unlessCode<T>(code: string, work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (errorCode(error) === code) {
      return null;
    }
    throw error;
  }
}

/** Recognises errors of another realm, too. */
function isError(error: unknown): error is Error {
  return error instanceof Error || types.isNativeError(error);
}
