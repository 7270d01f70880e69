import type { ErrorCode } from '../errors/error-code.js';

export interface UsualProblem {
  code: ErrorCode;
  detail: string;
  description: string;
}

/** What each status means when an operation has nothing more precise to say. */
export const USUAL_PROBLEMS: Readonly<Record<number, UsualProblem>> = {
  401: { code: 'unauthorized', detail: 'Unauthorized', description: 'No key, or one that is not valid' },
  403: {
    code: 'forbidden',
    detail: 'Only administrators may do this.',
    description: 'The key may not do this',
  },
  404: {
    code: 'not_found',
    detail: 'There is nothing at this address.',
    description: 'Unknown, or not yours',
  },
  413: {
    code: 'payload_too_large',
    detail: 'The request body may have at most 1 MiB.',
    description: 'Body too large',
  },
  415: {
    code: 'unsupported_media_type',
    detail: 'Send JSON in UTF-8, with the header Content-Type: application/json.',
    description: 'Not JSON',
  },
  429: {
    code: 'rate_limited',
    detail: 'Too many requests with this key; wait as long as Retry-After says.',
    description: 'Too many requests',
  },
  500: {
    code: 'internal',
    detail: 'Something went wrong here; the log has it under this request id.',
    description: 'A defect of the service',
  },
  502: {
    code: 'upstream_error',
    detail: 'The git provider github gave no usable answer (unavailable).',
    description: 'The git provider failed',
  },
  503: {
    code: 'unavailable',
    detail: 'The database cannot be reached at the moment; try again.',
    description: 'Not available at the moment',
  },
  504: {
    code: 'upstream_error',
    detail: 'The git provider github did not answer in time.',
    description: 'The git provider was too slow',
  },
};
