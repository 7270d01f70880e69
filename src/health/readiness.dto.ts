import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { PART_STATUSES, type PartReport } from './readiness.js';

export class ReadinessPartDto {
  @ApiProperty({ description: 'Which part of the service.', example: 'sandbox_backend' }) name: string;

  @ApiProperty({
    enum: PART_STATUSES,
    description: '`unknown`: it cannot be checked while another part is away.',
    example: 'failed',
  })
  status: PartReport['status'];

  @ApiProperty({
    description: 'Whether requests fail without it: only then the status is 503.',
    example: false,
  })
  required: boolean;

  @ApiProperty({
    type: 'string',
    nullable: true,
    description: 'What is wrong and what to do; null while it is ok.',
    example:
      'Sandboxes cannot run: conversations cannot be started or resumed. Look at the log of the service.',
  })
  advice: string | null;

  @ApiPropertyOptional({
    type: 'string',
    nullable: true,
    description: 'What was caught. Only with the key of an administrator.',
    example: 'no Docker engine answers (ECONNREFUSED); is it running, and is DOCKER_HOST right?',
  })
  cause?: string | null;
}

export class ReadinessDto {
  @ApiProperty({
    enum: ['ok', 'degraded'],
    description: '`degraded`: requests succeed, but a part that is not required is not ok.',
    example: 'degraded',
  })
  status: 'ok' | 'degraded';

  @ApiProperty({ type: [ReadinessPartDto], description: 'Every part, the required ones first.' })
  parts: ReadinessPartDto[];
}

/** Causes name addresses, so only administrators see them. */
export function toPartDtos(reports: readonly PartReport[], showsCauses: boolean): ReadinessPartDto[] {
  return reports.map(({ name, status, required, advice, cause }) => ({
    name,
    status,
    required,
    advice,
    ...(showsCauses && { cause }),
  }));
}
