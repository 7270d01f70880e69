import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { SANDBOX_STATUSES, type SandboxStatus } from '../sandbox-status.js';
import { ExposedUrlDto } from './exposed-url.dto.js';

/** A sandbox as its owner sees it. */
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
