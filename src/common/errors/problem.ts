import { STATUS_CODES } from 'node:http';
import { namesMediaType } from '../requests/response-headers.js';
import type { DomainError, ErrorKind, ErrorCode, InputProblem, InvalidInputError } from './domain-error.js';

export const NO_KEY =
  'Unauthorized: send your API key in the header X-Session-API-Key (or as Authorization: Bearer). If you did, it is misspelt, revoked, expired or not valid yet. The first start writes one to the file api-key of the data folder, .data/api-key by default, and prints where; npm run keys -- create --user EMAIL makes others.';

/** Clients that name the second get it. */
export const PROBLEM_MEDIA_TYPES = ['application/json', 'application/problem+json'] as const;

/** RFC 9457; `error` repeats `detail` for clients that read that member. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  error: string;
  code: ErrorCode;
  request_id: string | null;
  [extension: string]: unknown;
}

const STATUS_OF_KIND: Record<ErrorKind, number> = {
  bad_request: 400,
  unauthorized: 401,
  payment_required: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  too_large: 413,
  unsupported_media_type: 415,
  misdirected: 421,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  not_offered: 501,
  bad_gateway: 502,
  unavailable: 503,
  gateway_timeout: 504,
  storage_full: 507,
};

/** `detail` must be safe to show to the client. */
export function problem(
  status: number,
  code: ErrorCode,
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

export function statusOf({ kind }: DomainError): number {
  return STATUS_OF_KIND[kind];
}

export function problemOf(error: DomainError, requestId: string | null): Problem {
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
