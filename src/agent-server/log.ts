import { jsonText } from '../common/json-access.js';

/** What was thrown, in words and codes; anything can be thrown, and not everything that is an error is an `Error`. */
interface Failure {
  /** `TypeError`, `AbortError`, … */
  name: string;
  message: string;
  /** `ENOENT`, …; empty when there is none. */
  code: string;
}

export function describeFailure(thrown: unknown): Failure {
  const named =
    typeof thrown === 'object' && thrown !== null && 'name' in thrown ? String(thrown.name) : 'Error';
  return {
    name: named,
    message: jsonText(thrown, 'message') ?? 'unknown failure',
    code: jsonText(thrown, 'code') ?? '',
  };
}

/** One line of JSON to standard error. Members never hold a secret, a text of a user or an address with a query. */
export function log(
  level: 'info' | 'warn' | 'error',
  message: string,
  members: Record<string, unknown> = {},
): void {
  const line = { time: new Date().toISOString(), level, message, ...members };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
