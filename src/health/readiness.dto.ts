import { ApiProperty } from '@nestjs/swagger';
import { Shown, ShownOrNull } from '../common/openapi/responses.js';
import { PART_STATUSES, type PartReport } from './readiness.js';

export class ReadinessPartDto {
  @ApiProperty({ description: 'Which part of the service.', example: 'sandbox_backend' }) name: string;

  @Shown('`unknown`: it cannot be checked while another part is away.', 'failed', { enum: PART_STATUSES })
  status: PartReport['status'];

  @Shown('Whether requests fail without it: only then the status is 503.', false) required: boolean;

  @ShownOrNull(
    'What is wrong and what to do; null while it is ok.',
    'Sandboxes cannot run: conversations cannot be started or resumed. Look at the log of the service.',
  )
  advice: string | null;

  @ShownOrNull(
    'What was caught. Only with the key of an administrator.',
    'no Docker engine answers (ECONNREFUSED); is it running, and is DOCKER_HOST right?',
    { required: false },
  )
  cause?: string | null;
}

export class ReadinessDto {
  @Shown('`degraded`: requests succeed, but a part that is not required is not ok.', 'degraded', {
    enum: ['ok', 'degraded'],
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
