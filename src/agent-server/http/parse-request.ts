import type { ZodError, ZodType } from 'zod';
import { InvalidRequestError, type RequestProblem } from './invalid-request.error.js';

/**
 * A request's part in the form that a schema gives it.
 *
 * @throws InvalidRequestError naming every failed rule, without the values
 */
export function parseRequest<T>(schema: ZodType<T>, part: 'body' | 'query' | 'path', value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) {
    return result.data;
  }
  throw new InvalidRequestError(toProblems(result.error, part));
}

function toProblems(error: ZodError, part: string): RequestProblem[] {
  return error.issues.map(({ code, message, path }) => ({
    type: message.endsWith('received undefined') ? 'missing' : code,
    loc: [part, ...path.map((step) => (typeof step === 'symbol' ? String(step) : step))],
    msg: message.endsWith('received undefined') ? 'Field required' : message,
  }));
}
