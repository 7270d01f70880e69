import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiProperty, ApiResponse, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import { ERROR_CODES, type ErrorCode, type InputProblem } from '../errors/domain-error.js';
import { NO_KEY, problem, PROBLEM_MEDIA_TYPES, type Problem } from '../errors/problem.js';

const REQUEST_ID = '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50';
/** Any operation that needs a key can respond with these. */
const STATUSES_WITH_KEY = [401, 429, 500, 503];

/** What each status means when an operation has nothing more precise to say. */
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

/** An error response of one operation. What is left out comes from the usual meaning of its status. */
export interface DocumentedProblem {
  status: number;
  code?: ErrorCode;
  detail?: string;
  /** Of the status in this operation. Where several problems share a status, the first description counts. */
  description?: string;
  /** Further members of the problem document. */
  extensions?: Record<string, unknown>;
}

/** The 422 of one operation, with a failure that can happen there. */
export interface DocumentedInvalidInput {
  status: 422;
  problem: InputProblem;
}

/** A status, or a status with the texts of this operation. */
type DocumentedError = number | DocumentedProblem | DocumentedInvalidInput;

/** Documents the error responses of an operation that needs a key: 401, 429, 500, 503 and the given ones. */
export function ApiProblems(...errors: DocumentedError[]): MethodDecorator & ClassDecorator {
  return problemResponses([...STATUSES_WITH_KEY, ...errors]);
}

/** Documents the error responses of an operation that is open to everyone: 500 and the given ones. */
export function ApiOpenProblems(...errors: DocumentedError[]): MethodDecorator & ClassDecorator {
  return problemResponses([500, ...errors]);
}

/** The 422 of an operation, with a rule that an input can break and the text of the response. */
export function invalidInput(loc: string[], type: string, msg: string): DocumentedInvalidInput {
  return { status: 422, problem: { loc, msg, type } };
}

/** Documents error responses by status. Problems that share a status become examples of one response. */
function problemResponses(errors: readonly DocumentedError[]): MethodDecorator & ClassDecorator {
  const given = errors.map((error) => (typeof error === 'number' ? { status: error } : error));
  const problems = given.filter((error): error is DocumentedProblem => !('problem' in error));
  const statuses = [...new Set(problems.map(({ status }) => status))].toSorted((a, b) => a - b);
  return applyDecorators(
    ApiExtraModels(ProblemDto, ValidationErrorDto),
    ...given.filter((error) => 'problem' in error).map(invalidInputResponse),
    ...statuses.map((status) =>
      problemResponse(
        status,
        problems.filter((entry) => entry.status === status),
      ),
    ),
  );
}

function invalidInputResponse({
  problem: failure,
}: DocumentedInvalidInput): MethodDecorator & ClassDecorator {
  return ApiResponse({
    status: 422,
    description: 'Validation Error',
    content: {
      'application/json': {
        schema: { $ref: getSchemaPath(ValidationErrorDto) },
        example: { detail: [failure] },
      },
    },
  });
}

function problemResponse(
  status: number,
  problems: readonly DocumentedProblem[],
): MethodDecorator & ClassDecorator {
  const examples = problems.map(problemExample);
  const [first] = examples;
  const media = {
    schema: { $ref: getSchemaPath(ProblemDto) },
    ...(examples.length === 1
      ? { example: first }
      : { examples: Object.fromEntries(examples.map((value) => [value.code, { value }])) }),
  };
  return ApiResponse({
    status,
    description:
      problems.find(({ description }) => description !== undefined)?.description ??
      USUAL_PROBLEMS[status]?.description ??
      'Error',
    content: Object.fromEntries(PROBLEM_MEDIA_TYPES.map((type) => [type, media])),
  });
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

/** A problem document (RFC 9457): every error that is not a failed validation. */
@ApiSchema({ name: 'Problem' })
class ProblemDto {
  @ApiProperty({ example: 'urn:slipway:problem:unauthorized' })
  type: string;

  @ApiProperty({ example: 'Unauthorized' })
  title: string;

  @ApiProperty({ type: 'integer', example: 401 })
  status: number;

  @ApiProperty({ description: 'What went wrong and what to do.', example: 'Unauthorized' })
  detail: string;

  @ApiProperty({
    description: 'Same text as `detail`, for clients that read this member.',
    example: 'Unauthorized',
  })
  error: string;

  @ApiProperty({ enum: ERROR_CODES, enumName: 'ErrorCode', example: 'unauthorized' })
  code: ErrorCode;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Also in the header X-Request-Id and in the log.',
    example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
  })
  request_id: string | null;

  @ApiProperty({
    type: 'array',
    items: {
      type: 'object',
      properties: {
        provider: { type: 'string', description: 'Which git provider.' },
        code: { type: 'string', description: 'Why, as in X-Provider-Status.' },
        retry_after: { type: ['integer', 'null'], description: 'Seconds to wait.' },
        detail: { type: 'string', description: 'What the host said of it; absent when it said nothing.' },
      },
      required: ['provider', 'code', 'retry_after'],
    },
    required: false,
    description: 'With the code git_providers_failed: each of them.',
    example: [{ provider: 'gitlab', code: 'rate_limited', retry_after: 41 }],
  })
  errors?: { provider: string; code: string; retry_after: number | null; detail?: string }[];

  @ApiProperty({
    required: false,
    description:
      'With the code invalid_git_token: what the host said of the token; absent when it said nothing.',
    example: 'Bad credentials',
  })
  reason?: string;

  @ApiProperty({
    required: false,
    description: 'Same text as `detail`, where clients of the secrets read this member.',
    example: 'A secret named DEPLOY_TOKEN exists already.',
  })
  message?: string;
}

@ApiSchema({ name: 'ValidationError' })
class ValidationErrorItemDto {
  @ApiProperty({
    type: [String],
    description: 'Path to the value; starts with body, query, path or header. List indices are strings too.',
    example: ['body', 'max_iterations'],
  })
  loc: string[];

  @ApiProperty({
    description: 'What would be right.',
    example: 'Expected a whole number; this text is not one.',
  })
  msg: string;

  @ApiProperty({ description: 'Machine type of the failure.', example: 'int_parsing' })
  type: string;
}

/** The response to input that breaks rules, with all failures of a body. */
@ApiSchema({ name: 'HTTPValidationError' })
class ValidationErrorDto {
  @ApiProperty({ type: [ValidationErrorItemDto] })
  detail: ValidationErrorItemDto[];
}
