import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { DocumentedProblem } from '../../../common/openapi/api-route.js';
import { PageOf, PageQuery } from '../../../common/pagination/page.dto.js';
import { Flag } from '../../../common/validation/number-fields.js';
import { RepeatedText, Text } from '../../../common/validation/text-fields.js';
import { SANDBOX_STATUSES, type SandboxStatus } from '../sandbox-status.js';

export const TOO_MANY_SANDBOXES: DocumentedProblem = {
  status: 409,
  code: 'stored_sandbox_limit',
  detail:
    'You have 1000 sandboxes, the most that are kept, paused ones included. Delete some of them (DELETE /api/v1/sandboxes/{id}), then try again.',
  description: 'As many sandboxes as one user may have (MAX_SANDBOXES_PER_USER)',
};

@ApiSchema({ name: 'CreateSandboxRequest' })
export class CreateSandboxDto {
  @Text({
    description: 'Id of the specification; the default one (the first of the list) when it is left out.',
    nullIsAbsent: true,
    example: 'slipway',
  })
  sandbox_spec_id?: string;
}

export class DeleteSandboxQueryDto {
  @Text({
    description: 'The id once more: older clients send it. It must be the one of the path.',
    example: '3Yv5mQ8hZk2LrTnBx7Wc0d',
  })
  sandbox_id?: string;
}

export class ExposedUrlDto {
  @ApiProperty({ example: 'AGENT_SERVER' })
  name: string;

  @ApiProperty({
    format: 'uri',
    example: 'https://slipway.example.com/api/v1/sandboxes/3Yv5mQ8hZk2LrTnBx7Wc0d/agent-server',
  })
  url: string;

  @ApiProperty({ type: 'integer', description: 'Port of the address.', example: 443 })
  port: number;
}

export class SandboxIdsQueryDto {
  @RepeatedText({
    description: 'Id of a sandbox; repeat it for more, at most 100.',
    required: true,
    most: 100,
    example: ['3Yv5mQ8hZk2LrTnBx7Wc0d'],
  })
  id: string[];
}

@ApiSchema({ name: 'SandboxInfo' })
export class SandboxDto {
  @ApiProperty({ example: '3Yv5mQ8hZk2LrTnBx7Wc0d' })
  id: string;

  @ApiProperty({ example: 'c56a4180-65aa-42ec-a945-5fd21dec0538' })
  created_by_user_id: string;

  @ApiProperty({ example: 'slipway' })
  sandbox_spec_id: string;

  @ApiProperty({
    enum: SANDBOX_STATUSES,
    enumName: 'SandboxStatus',
    description:
      'RUNNING only once the agent server inside has answered. MISSING: its files are gone; in conversations also, that the sandbox was deleted.',
    example: 'RUNNING',
  })
  status: SandboxStatus;

  @ApiProperty({
    type: String,
    nullable: true,
    description:
      'Why it has this status: what was paused to make room for it, progress of the start, cause and exit code of an error, last log lines.',
    example: null,
  })
  status_detail: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'What its agent server wants to see in `X-Session-API-Key`; only while it is RUNNING.',
    example: 'iLq0Rz7gqj1mS5bq3cW9xYh2VtKd8PnEoUaFfGsJ4Me',
  })
  session_api_key: string | null;

  @ApiProperty({
    type: [ExposedUrlDto],
    nullable: true,
    description:
      'Addresses of what runs in it; only while it is RUNNING. `AGENT_SERVER` wants `session_api_key`; the ports of ' +
      'what agents start (`WORKER_1`, …) are links for a browser.',
  })
  exposed_urls: ExposedUrlDto[] | null;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;
}

export class SandboxPageDto extends PageOf(SandboxDto) {}

export class SearchSandboxesQueryDto extends PageQuery('Sandboxes on a page.') {
  @Flag({
    default: false,
    description: 'Those of all users; administrators only. What opens a sandbox is shown to its owner only.',
    example: false,
  })
  all?: boolean;
}
