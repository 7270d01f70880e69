import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, getSchemaPath } from '@nestjs/swagger';
import type { ErrorCode } from '../errors/error-code.js';
import { problem } from '../errors/problem.js';
import { ProblemDto } from './problem.dto.js';
import { ValidationErrorDto } from './validation-error.dto.js';

interface ProblemExample {
  code: ErrorCode;
  detail: string;
  description: string;
}

/** What each status means when an operation has nothing more precise to say. */
const COMMON: Record<number, ProblemExample> = {
  400: { code: 'conflict', detail: 'Secret API_TOKEN already exists', description: 'The name is taken' },
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
  409: { code: 'conflict', detail: 'This exists already.', description: 'The state forbids it' },
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
  502: {
    code: 'upstream_error',
    detail: 'The git provider gave no usable answer.',
    description: 'Upstream failed',
  },
  503: {
    code: 'unavailable',
    detail: 'The database cannot be reached at the moment; try again.',
    description: 'Not available at the moment',
  },
  504: {
    code: 'upstream_error',
    detail: 'The git provider did not answer in time.',
    description: 'Upstream too slow',
  },
};

const INVALID_EXAMPLE: ValidationErrorDto = {
  detail: [
    {
      loc: ['body', 'max_iterations'],
      msg: 'Expected a whole number; this text is not one.',
      type: 'int_parsing',
    },
  ],
};

export type ProblemStatus = number | ({ status: number } & Partial<ProblemExample>);

/**
 * Documents the error answers of an operation: 401, 429 and 503 always, and the given ones (a status, or a status with
 * the code and texts of this operation; 422 is the validation error).
 */
export function ApiProblems(...statuses: ProblemStatus[]): MethodDecorator & ClassDecorator {
  const given = statuses.map((entry) => (typeof entry === 'number' ? { status: entry } : entry));
  const always = [401, 429, 503]
    .filter((status) => !given.some((entry) => entry.status === status))
    .map((status) => ({ status }));
  return applyDecorators(
    ApiExtraModels(ProblemDto, ValidationErrorDto),
    ...[...given, ...always].toSorted((a, b) => a.status - b.status).map(response),
  );
}

function response(entry: { status: number } & Partial<ProblemExample>): MethodDecorator & ClassDecorator {
  if (entry.status === 422) {
    return ApiResponse({
      status: 422,
      description: entry.description ?? 'Validation Error',
      content: {
        'application/json': { schema: { $ref: getSchemaPath(ValidationErrorDto) }, example: INVALID_EXAMPLE },
      },
    });
  }
  const common = COMMON[entry.status];
  const code = entry.code ?? common?.code ?? 'internal';
  const detail = entry.detail ?? common?.detail ?? 'The request could not be answered.';
  return ApiResponse({
    status: entry.status,
    description: entry.description ?? common?.description ?? 'Error',
    content: {
      'application/problem+json': {
        schema: { $ref: getSchemaPath(ProblemDto) },
        example: problem(entry.status, code, detail, '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50'),
      },
    },
  });
}
