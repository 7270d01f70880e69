import { currentTraceId } from './http/request-spans.js';

/** Writes one line of JSON to standard error. Fields never hold a secret, a user's text or an address with a query. */
export function log(
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Record<string, unknown> = {},
): void {
  const traceId = currentTraceId();
  const line = {
    time: new Date().toISOString(),
    level,
    message,
    ...fields,
    ...(traceId !== null && { trace_id: traceId }),
  };
  process.stderr.write(`${JSON.stringify(line)}\n`);
}

/** `TypeError`, `AbortError`, …: for places where the message of an error may hold a secret. */
export function errorName(error: unknown): string {
  return typeof error === 'object' && error !== null && 'name' in error ? String(error.name) : 'Error';
}
