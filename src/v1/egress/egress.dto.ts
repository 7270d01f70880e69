import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import {
  DENIALS,
  type Denial,
  type EgressPhase,
  PHASES,
  type ReportedRequest,
} from '@slipway/egress-proxy/protocol.js';
import { customRule, must } from '@slipway/api/validation/field.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import { Shown, ShownOrNull, Time } from '@slipway/api/openapi/responses.js';

@ApiSchema({ name: 'EgressAllowRequest' })
export class AllowEgressDto {
  @Text('A host (`api.example.com`), with a port where it is not 80 or 443.', {
    required: true,
    example: 'api.example.com',
    maxLength: 260,
  })
  host: string;

  @Flag('For one request alone: nothing else can be allowed here.', {
    required: true,
    example: true,
    form: { enum: [true] },
  })
  @customRule(
    'isOnce',
    must((once) => once === true, 'enum', 'Expected true: add a rule for more than once.'),
  )
  once: true;
}

@ApiSchema({ name: 'EgressPermit' })
export class EgressPermitDto {
  @ApiProperty({ example: 'api.example.com' }) host: string;
  @Time() expires_at: string;
}

@ApiSchema({ name: 'EgressRequest' })
export class EgressRequestDto {
  @Time() at: string;
  @ApiProperty({ example: 'registry.npmjs.org' }) host: string;
  @ApiProperty({ example: 443 }) port: number;
  @ShownOrNull('Null for a connection that was passed through unread.', 'GET') method: string | null;
  @ShownOrNull('Null as `method`.', '/left-pad') path: string | null;

  @ShownOrNull('Why it was refused; null: it was not.', null, { enum: [...DENIALS] })
  denied: Denial | null;

  @ShownOrNull('The rule that decided; null: only a default did.', '*.npmjs.org') rule: string | null;
  @Shown('`setup`: before an agent began in the sandbox.', 'agent', { enum: [...PHASES] }) phase: EgressPhase;

  @Shown('Of the answer; null for what was passed through or refused.', 200, { type: Number, nullable: true })
  status: number | null;
  @ApiProperty({ example: 512 }) sent_bytes: number;
  @ApiProperty({ example: 4096 }) received_bytes: number;
  @ApiProperty({ example: 38 }) duration_ms: number;
}

export function toEgressRequestDto(request: ReportedRequest): EgressRequestDto {
  const { sentBytes, receivedBytes, durationMs, ...shown } = request;
  return { ...shown, sent_bytes: sentBytes, received_bytes: receivedBytes, duration_ms: durationMs };
}
