import { jsonText } from '../common/json-access.js';

/** What was thrown. Anything can be thrown, and not every error is an `Error` of this realm. */
interface Failure {
  /** `TypeError`, `AbortError`, … */
  name: string;
  message: string;
  /** `ENOENT`, …; empty if there is none. */
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

/** Writes one line of JSON to standard error. Fields never hold a secret, a user's text or an address with a query. */
export function log(
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Record<string, unknown> = {},
): void {
  const line = { time: new Date().toISOString(), level, message, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}
