import { STATUS_CODES } from 'node:http';
import { namesMediaType } from '../requests/response-headers.js';
import {
  type InputProblem,
  type InvalidInputError,
  type ProblemError,
  STATUS_OF_KIND,
} from './problem-error.js';

/** Clients that name the second get it. */
export const PROBLEM_MEDIA_TYPES = ['application/json', 'application/problem+json'] as const;

/** RFC 9457; `error` repeats `detail` for clients that read that member. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  error: string;
  code: string;
  request_id: string | null;
  [extension: string]: unknown;
}

/** `detail` must be safe to show to the client. */
export function problem(
  status: number,
  code: string,
  detail: string,
  requestId: string | null,
  extensions: Record<string, unknown> = {},
): Problem {
  return {
    type: `urn:slipway:problem:${code}`,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    error: detail,
    code,
    request_id: requestId,
    ...extensions,
  };
}

export function statusOf({ kind }: ProblemError): number {
  return STATUS_OF_KIND[kind];
}

export function problemOf(error: ProblemError, requestId: string | null): Problem {
  return problem(statusOf(error), error.code, error.message, requestId, error.extensions);
}

/** The list of FastAPI, as the API has it; a problem document that has this list goes to those who name its type. */
export function invalidInputBody(
  { problems, sentence }: InvalidInputError,
  type: (typeof PROBLEM_MEDIA_TYPES)[number],
  requestId: string | null,
): Problem | { detail: readonly InputProblem[] } {
  return type === 'application/json'
    ? { detail: problems }
    : problem(422, 'invalid_input', sentence, requestId, { errors: problems });
}

/** Many clients parse only `application/json`, so RFC 9457's type goes to those who name it; wildcards do not. */
export function problemMediaType(accept: string | undefined): (typeof PROBLEM_MEDIA_TYPES)[number] {
  return namesMediaType(accept, 'application/problem+json') ? 'application/problem+json' : 'application/json';
}
