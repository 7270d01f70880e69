import { STATUS_CODES } from 'node:http';
import type { DomainError, ErrorKind, ErrorCode } from './domain-error.js';

/** A problem document (RFC 9457). `error` repeats `detail` for clients that read that member. */
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
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  gone: 410,
  too_large: 413,
  misdirected: 421,
  rate_limited: 429,
  bad_gateway: 502,
  unavailable: 503,
  gateway_timeout: 504,
};

/** Builds a problem document. `detail` must be safe to show to the client. */
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

/** The problem document of a domain error. */
export function problemOf(error: DomainError, requestId: string | null): Problem {
  return problem(STATUS_OF_KIND[error.kind], error.code, error.message, requestId, error.extensions);
}
