import { getSchemaPath } from '@nestjs/swagger';
import { type ErrorCode, NO_KEY } from '../errors/domain-error.js';
import type { InputProblem } from '@slipway/api/errors/problem-error.js';
import { problem, PROBLEM_MEDIA_TYPES, type Problem } from '@slipway/api/errors/problem.js';
import type { DocumentedProblem } from '@slipway/api/openapi/api-route.js';
import type { Response } from '@slipway/api/openapi/operations.js';
import { ProblemDto, ValidationErrorDto, ValidationProblemDto } from './problem.dto.js';

const REQUEST_ID = '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50';

/** What each status means unless an operation is more precise. */
const USUAL_PROBLEMS: Readonly<Record<number, UsualProblem>> = {
  401: { code: 'unauthorized', detail: NO_KEY, description: 'No key, or one that is not valid' },
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
    detail: 'Too many requests of this user, with all keys and sandboxes; wait as long as Retry-After says.',
    description: 'Too many requests',
  },
  431: {
    code: 'payload_too_large',
    detail:
      'Address and headers of a request may have 65536 bytes together. Ask for less at once, such as fewer ids, or remove cookies.',
    description: 'Address and headers too large',
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
    description:
      'Not available at the moment; `overloaded`: too many requests are under way; `storage_full`: the disk of the database is full',
  },
  504: {
    code: 'upstream_error',
    detail: 'The git provider github did not answer in time.',
    description: 'The git provider was too slow',
  },
};

interface UsualProblem {
  code: ErrorCode;
  detail: string;
  description: string;
}

export function problemResponses(errors: readonly (number | DocumentedProblem)[]): Record<string, Response> {
  const problems = errors.map((error) => (typeof error === 'number' ? { status: error } : error));
  const byStatus = Map.groupBy(problems, ({ status }) => status);
  return Object.fromEntries([...byStatus].map(([status, those]) => [status, problemResponse(status, those)]));
}

export function invalidInputResponse(failure: InputProblem): Response {
  const [usual, other] = PROBLEM_MEDIA_TYPES;
  return {
    description: 'Validation Error',
    content: {
      [usual]: { schema: { $ref: getSchemaPath(ValidationErrorDto) }, example: { detail: [failure] } },
      [other]: { schema: { $ref: getSchemaPath(ValidationProblemDto) } },
    },
  };
}

/** Whether this is the text of a status that no operation has said anything about. */
export function isUsualDetail(status: number, detail: string): boolean {
  return USUAL_PROBLEMS[status]?.detail === detail;
}

function problemResponse(status: number, problems: readonly DocumentedProblem[]): Response {
  const schema = { $ref: getSchemaPath(ProblemDto) };
  const examples = Object.fromEntries(problems.map(problemExample).map((value) => [value.code, { value }]));
  const [usual, other] = PROBLEM_MEDIA_TYPES;
  return {
    description:
      problems.find(({ description }) => description !== undefined)?.description ??
      USUAL_PROBLEMS[status]?.description ??
      'Error',
    content: { [usual]: { schema, examples }, [other]: { schema: { ...schema } } },
  };
}

function problemExample({ status, code, detail, extensions }: DocumentedProblem): Problem {
  const usual = USUAL_PROBLEMS[status];
  return problem(
    status,
    code ?? usual?.code ?? 'internal',
    detail ?? usual?.detail ?? 'The request could not be answered.',
    REQUEST_ID,
    extensions,
  );
}
