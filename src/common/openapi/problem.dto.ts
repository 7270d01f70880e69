import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ERROR_CODES, type ErrorCode } from '../errors/error-code.js';

/** A problem document (RFC 9457): every error that is not a failed validation. */
@ApiSchema({ name: 'Problem' })
export class ProblemDto {
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
      },
      required: ['provider', 'code', 'retry_after'],
    },
    required: false,
    description: 'With the code git_providers_failed: each of them.',
    example: [{ provider: 'gitlab', code: 'rate_limited', retry_after: 41 }],
  })
  errors?: { provider: string; code: string; retry_after: number | null }[];

  @ApiProperty({
    required: false,
    description: 'Same text as `detail`, where clients of the secrets read this member.',
    example: 'A secret named DEPLOY_TOKEN exists already.',
  })
  message?: string;
}
