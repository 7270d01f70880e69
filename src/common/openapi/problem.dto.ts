import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ERROR_CODES, type ErrorCode } from '../errors/domain-error.js';
import { SCOPES, type Scope } from '../scopes.js';
import { Shown, ShownOrNull } from '@slipway/api/openapi/responses.js';

class ProblemMembers {
  @ApiProperty({ example: 'urn:slipway:problem:unauthorized' }) type: string;
  @ApiProperty({ example: 'Unauthorized' }) title: string;
  @ApiProperty({ type: 'integer', example: 401 }) status: number;
  @ApiProperty({ description: 'What went wrong and what to do.', example: 'Unauthorized' }) detail: string;
  @Shown('Same text as `detail`, for clients that read this member.', 'Unauthorized') error: string;
  @ApiProperty({ enum: ERROR_CODES, enumName: 'ErrorCode', example: 'unauthorized' }) code: ErrorCode;

  @ShownOrNull('Also in the header X-Request-Id and in the log.', '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50')
  request_id: string | null;
}

export class ProblemDto extends ProblemMembers {
  @Shown(
    'With the code git_providers_failed: each of them.',
    [{ provider: 'gitlab', code: 'rate_limited', retry_after: 41 }],
    {
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
    },
  )
  errors?: { provider: string; code: string; retry_after: number | null; detail?: string }[];

  @Shown(
    'Of `GET /health/ready` alone: each part, as its 200 has them.',
    [{ name: 'database', status: 'failed', required: true, advice: 'Try again.' }],
    { type: 'array', items: { type: 'object', additionalProperties: true }, required: false },
  )
  parts?: Record<string, unknown>[];

  @Shown(
    'With the code invalid_git_token: what the host said of the token; absent when it said nothing.',
    'Bad credentials',
    { required: false },
  )
  reason?: string;

  @Shown('With the code insufficient_scope: the one that the key lacks.', 'read', {
    enum: SCOPES,
    required: false,
  })
  scope?: Scope;

  @Shown('With the code outside_repositories: those that the key is for.', ['github:octo/app'], {
    type: [String],
    required: false,
  })
  repositories?: string[];

  @Shown('Of `POST /oauth/device/token` alone: the same as `detail`.', 'Begin again.', { required: false })
  error_description?: string;

  @Shown('Of `POST /oauth/device/token` alone: seconds until the next request.', 5, {
    type: 'integer',
    required: false,
  })
  interval?: number;

  @Shown(
    'Same text as `detail`, where clients of the secrets read this member.',
    'A secret named DEPLOY_TOKEN exists already.',
    { required: false },
  )
  message?: string;
}

@ApiSchema({ name: 'ValidationError' })
class ValidationErrorItemDto {
  @Shown(
    'Path to the value; starts with body, query, path or header. List indices are strings too.',
    ['body', 'max_iterations'],
    { type: [String] },
  )
  loc: string[];

  @Shown('What would be right.', 'Expected a whole number; this text is not one.') msg: string;
  @ApiProperty({ description: 'Machine type of the failure.', example: 'int_parsing' }) type: string;
}

/** The response to input that breaks rules, with all failures of a body. */
@ApiSchema({ name: 'HTTPValidationError' })
export class ValidationErrorDto {
  @ApiProperty({ type: [ValidationErrorItemDto] }) detail: ValidationErrorItemDto[];
}

/** The same for clients that name RFC 9457's media type; its code is `invalid_input`. */
export class ValidationProblemDto extends ProblemMembers {
  @ApiProperty({ type: [ValidationErrorItemDto] }) errors: ValidationErrorItemDto[];
}
