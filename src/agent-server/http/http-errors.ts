import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import { z, type ZodError, type ZodType } from 'zod';
import { jsonNumber, jsonText } from '../../common/json-access.js';
import { AgentUnavailableError } from '../engine/agent-engine.js';
import { normalizeTimestamp } from '../event-log.js';
import { describeFailure, log } from '../log.js';

/** A failure that the client may see, with the status that says so. */
export class HttpError extends Error {
  readonly status: number;

  /** @param detail shown as it is: never a secret */
  constructor(status: number, detail: string) {
    super(detail);
    this.name = 'HttpError';
    this.status = status;
  }
}

/** One failed rule: where, what would be right, and the kind of failure. Never the rejected value. */
interface RequestProblem {
  type: string;
  loc: (string | number)[];
  msg: string;
}

/** A request that breaks rules; answered as 422. */
export class InvalidRequestError extends Error {
  readonly problems: RequestProblem[];

  constructor(problems: RequestProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidRequestError';
    this.problems = problems;
  }
}

/** How many items a page has. */
export const limitSchema = z.coerce.number().int().min(1).max(100).default(100);

/** A time, in the form that logs have it. */
export const timestampSchema = z.string().transform((text, context) => {
  // In a query a plus sign that was not escaped arrives as a blank.
  const timestamp = normalizeTimestamp(text.replace(/ (\d\d:?\d\d)$/, '+$1'));
  if (timestamp === null) {
    context.addIssue({ code: 'custom', message: 'Input should be a valid date and time' });
    return z.NEVER;
  }
  return timestamp;
});

export const sortOrderSchema = z.enum(['TIMESTAMP', 'TIMESTAMP_DESC']).default('TIMESTAMP');

/** A parameter that may be given several times. */
export const listSchema = z.union([z.string().transform((one) => [one]), z.array(z.string())]);

/** The last handler: the only place that turns failures into answers. */
export function errorHandler(error: unknown, request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) {
    next(error);
    return;
  }
  if (error instanceof InvalidRequestError) {
    response.status(422).json({ detail: error.problems });
    return;
  }
  if (error instanceof HttpError) {
    response.status(error.status).json({ detail: error.message });
    return;
  }
  if (error instanceof AgentUnavailableError) {
    response.status(502).json({ detail: error.message });
    return;
  }
  const bodyProblem = bodyProblemOf(error);
  if (bodyProblem !== null) {
    response.status(bodyProblem.status).json({ detail: bodyProblem.detail });
    return;
  }
  const errorId = randomUUID();
  const { name, message: reason } = describeFailure(error);
  log('error', 'a request failed', { errorId, method: request.method, path: request.path, name, reason });
  // The name alone: a message may hold what the client must not see.
  response.status(500).json({ detail: 'Internal Server Error', exception: name, error_id: errorId });
}

/** Failures of Express and its body parser, which carry a status. Their messages may quote the body. */
function bodyProblemOf(error: unknown): { status: number; detail: unknown } | null {
  const status = jsonNumber(error, 'status');
  if (status === null) {
    return null;
  }
  if (jsonText(error, 'type') === 'entity.parse.failed') {
    return { status: 422, detail: [{ type: 'json_invalid', loc: ['body'], msg: 'JSON decode error' }] };
  }
  if (status === 413) {
    return { status: 413, detail: 'The request body is too large.' };
  }
  return status >= 400 && status < 500 ? { status, detail: 'The request cannot be understood.' } : null;
}

/**
 * The path that a request names, as `?path=` or as `*path` behind the route (there with its own slash, or with the
 * slashes escaped).
 */
export function givenPath(request: Request): string {
  const params: Record<string, unknown> = request.params;
  const behind = params['path'];
  if (Array.isArray(behind)) {
    return behind.join('/');
  }
  const { path } = request.query;
  if (typeof path !== 'string') {
    throw new InvalidRequestError([{ type: 'missing', loc: ['query', 'path'], msg: 'Field required' }]);
  }
  return path;
}

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
