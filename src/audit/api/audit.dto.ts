import { ApiProperty } from '@nestjs/swagger';
import { PageOf, PageQuery } from '../../common/pagination/page.dto.js';
import { Choice, Identifier, Instant, Text } from '../../common/validation/text-fields.js';
import {
  ACTOR_KINDS,
  type ActorKind,
  AUDIT_ACTION_NAMES,
  AUDIT_OUTCOMES,
  AUDIT_RESOURCES,
  type AuditAction,
  type AuditOutcome,
  type AuditResource,
  resourceOf,
} from '../audit-action.js';
import type { AuditDetails, AuditEntry } from '../audit.repository.js';
import type { AuditFilter } from '../audit.queries.js';

export class AuditQueryDto extends PageQuery('Entries on a page.') {
  @Identifier({
    description: 'Only what this user did, or what a sandbox of theirs did. The user may have been removed.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  actor_user_id?: string;

  @Identifier({
    description: 'Only what was done to things of this user, by whomever.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  owner_user_id?: string;

  @Choice({ values: AUDIT_ACTION_NAMES, description: 'Only this action.', example: 'secret.create' })
  action?: AuditAction;

  @Choice({ values: AUDIT_RESOURCES, description: 'Only things of this type.', example: 'secret' })
  resource_type?: AuditResource;

  @Text({
    description: 'Only the thing with this id or name; names are of one user, so give `owner_user_id` too.',
    example: 'DEPLOY_TOKEN',
    maxLength: 1000,
  })
  resource_id?: string;

  @Text({
    description: 'Only what was done in this request: `request_id` of the log.',
    example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
    pattern: { regex: /^[A-Za-z0-9._:-]{1,128}$/, expected: 'Expected the id of a request.' },
  })
  request_id?: string;

  @Text({
    description: 'Only what was done in requests whose callers gave them this `X-Request-Id`.',
    example: 'deploy-4217',
    pattern: { regex: /^[A-Za-z0-9._:-]{1,128}$/, expected: 'Expected the id of a request.' },
  })
  caller_request_id?: string;

  @Instant({ description: 'Only from this time on.', example: '2026-11-21T00:00:00Z' })
  since?: Date;

  @Instant({ description: 'Only before this time.', example: '2026-11-22T00:00:00Z' })
  until?: Date;
}

export function toAuditFilter({
  actor_user_id: actorUserId,
  owner_user_id: ownerUserId,
  action,
  resource_type: resourceType,
  resource_id: resourceId,
  request_id: requestId,
  caller_request_id: callerRequestId,
  since,
  until,
}: AuditQueryDto): AuditFilter {
  return {
    ...(actorUserId !== undefined && { actorUserId }),
    ...(ownerUserId !== undefined && { ownerUserId }),
    ...(action !== undefined && { action }),
    ...(resourceType !== undefined && { resourceType }),
    ...(resourceId !== undefined && { resourceId }),
    ...(requestId !== undefined && { requestId }),
    ...(callerRequestId !== undefined && { callerRequestId }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

export class AuditActorDto {
  @ApiProperty({
    enum: ACTOR_KINDS,
    enumName: 'AuditActorKind',
    description:
      'A key of a user, the key of a sandbox, the command line of the operator (`npm run keys`), or the service by itself.',
    example: 'user',
  })
  kind: ActorKind;

  @ApiProperty({
    type: String,
    nullable: true,
    format: 'uuid',
    description: 'The user, or the owner of the sandbox; null for `operator` and `service`.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  user_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Id of the API key, of the session (`ses_…`), or of the sandbox whose key it was.',
    example: '4nKxq0Zt',
  })
  key_id: string | null;
}

export class AuditedResourceDto {
  @ApiProperty({ enum: AUDIT_RESOURCES, enumName: 'AuditResource', example: 'secret' })
  type: AuditResource;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Id or name; null where the type says it all.',
    example: 'DEPLOY_TOKEN',
  })
  id: string | null;
}

export class AuditEntryDto {
  @ApiProperty({ format: 'uuid', example: '9c1f7a64-1a35-4e0a-8f0e-6b8f3c0f5d11' })
  id: string;

  @ApiProperty({
    format: 'date-time',
    description: 'By the clock of the database.',
    example: '2026-11-21T09:30:00.000Z',
  })
  time: string;

  @ApiProperty({
    enum: AUDIT_ACTION_NAMES,
    enumName: 'AuditAction',
    description: 'docs/operations.md says what each means.',
    example: 'secret.create',
  })
  action: AuditAction;

  @ApiProperty({
    enum: AUDIT_OUTCOMES,
    enumName: 'AuditOutcome',
    description:
      '`done`: changed. `requested`: accepted, and the work follows. `failed`: the agent server did not do what was requested.',
    example: 'done',
  })
  outcome: AuditOutcome;

  @ApiProperty({ type: AuditActorDto })
  actor: AuditActorDto;

  @ApiProperty({ type: AuditedResourceDto })
  resource: AuditedResourceDto;

  @ApiProperty({
    type: String,
    nullable: true,
    format: 'uuid',
    description: 'Whose it is.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  owner_user_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Id of the request, which the service has given it; null when there was none.',
    example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
  })
  request_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: '`X-Request-Id` of the caller, who may have given it to other requests too.',
    example: null,
  })
  caller_request_id: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Where the connection came from: behind a reverse proxy, its address.',
    example: '10.0.3.17',
  })
  client_address: string | null;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'Names of what was changed, and why the service acted. Never a value that somebody stored.',
    example: { members: ['value', 'description'] },
  })
  details: AuditDetails;
}

export function toAuditEntryDto(entry: AuditEntry): AuditEntryDto {
  return {
    id: entry.id,
    time: entry.at.toISOString(),
    action: entry.action,
    outcome: entry.outcome,
    actor: { kind: entry.actorKind, user_id: entry.actorUserId, key_id: entry.actorKeyId },
    resource: { type: resourceOf(entry.action), id: entry.resourceId },
    owner_user_id: entry.ownerUserId,
    request_id: entry.requestId,
    caller_request_id: entry.callerRequestId,
    client_address: entry.clientAddress,
    details: entry.details,
  };
}

export class AuditPageDto extends PageOf(AuditEntryDto) {}
