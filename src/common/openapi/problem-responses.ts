import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiResponse, getSchemaPath } from '@nestjs/swagger';
import { problem, type Problem } from '../errors/problem.js';
import type { DocumentedError, DocumentedInvalidInput, DocumentedProblem } from './documented-error.js';
import { ProblemDto } from './problem.dto.js';
import { USUAL_PROBLEMS } from './usual-problems.js';
import { ValidationErrorDto } from './validation-error.dto.js';

const REQUEST_ID = '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50';

/** Documents error answers, by status; problems that share a status become examples of one answer. */
export function problemResponses(errors: readonly DocumentedError[]): MethodDecorator & ClassDecorator {
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
  return ApiResponse({
    status,
    description:
      problems.find(({ description }) => description !== undefined)?.description ??
      USUAL_PROBLEMS[status]?.description ??
      'Error',
    content: {
      'application/problem+json': {
        schema: { $ref: getSchemaPath(ProblemDto) },
        ...(examples.length === 1
          ? { example: first }
          : { examples: Object.fromEntries(examples.map((value) => [value.code, { value }])) }),
      },
    },
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
