import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags, ApiProperty } from '@nestjs/swagger';
import { AdministratorsOnly } from '../../auth/auth.guard.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { toPageDto, PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import {
  AUDIT_ACTIONS,
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
import {
  ANY_OBJECT,
  REQUEST_ID,
  Shown,
  ShownOrNull,
  toWire,
  USER_ID,
} from '@slipway/api/openapi/responses.js';
import { Choice, Identifier, Instant, Text } from '@slipway/api/validation/field-decorators.js';
import { type AuditDetails, type AuditEntry, type AuditFilter, AuditQueries } from '../audit.repository.js';

const USER = { example: USER_ID };

function RequestId(description: string, example: string): PropertyDecorator {
  const expected = 'Expected the id of a request.';
  return Text(description, { example, pattern: { regex: /^[A-Za-z0-9._:-]{1,128}$/, expected } });
}

export class AuditQueryDto extends PageQuery('Entries on a page.') implements AuditFilter {
  @Identifier(
    'Only what this user did, or what a sandbox of theirs did. The user may have been removed.',
    USER,
  )
  actor_user_id?: string;

  @Identifier('Only what was done to things of this user, by whomever.', USER) owner_user_id?: string;
  @Choice('Only this action.', { values: AUDIT_ACTION_NAMES, example: 'secret.create' }) action?: AuditAction;

  @Choice('Only things of this type.', { values: AUDIT_RESOURCES, example: 'secret' })
  resource_type?: AuditResource;

  @Text('Only the thing with this id or name; names are of one user, so give `owner_user_id` too.', {
    example: 'DEPLOY_TOKEN',
    maxLength: 1000,
  })
  resource_id?: string;

  @RequestId('Only what was done in this request: `request_id` of the log.', REQUEST_ID) request_id?: string;

  @RequestId('Only what was done in requests whose callers gave them this `X-Request-Id`.', 'deploy-4217')
  caller_request_id?: string;

  @Instant('Only from this time on.', { example: '2026-11-21T00:00:00Z' }) since?: Date;
  @Instant('Only before this time.', { example: '2026-11-22T00:00:00Z' }) until?: Date;
}

class AuditActorDto {
  @Shown(
    'A key of a user, the key of a sandbox, the command line of the operator (`npm run keys`), or the service by itself.',
    'user',
    { enum: ACTOR_KINDS, enumName: 'AuditActorKind' },
  )
  kind: ActorKind;

  @ShownOrNull('The user, or the owner of the sandbox; null for `operator` and `service`.', USER_ID, {
    format: 'uuid',
  })
  user_id: string | null;

  @ShownOrNull('Id of the API key, of the session (`ses_…`), or of the sandbox whose key it was.', '4nKxq0Zt')
  key_id: string | null;
}

class AuditedResourceDto {
  @ApiProperty({ enum: AUDIT_RESOURCES, enumName: 'AuditResource', example: 'secret' }) type: AuditResource;
  @ShownOrNull('Id or name; null where the type says it all.', 'DEPLOY_TOKEN') id: string | null;
}

export class AuditEntryDto {
  @ApiProperty({ format: 'uuid', example: '9c1f7a64-1a35-4e0a-8f0e-6b8f3c0f5d11' }) id: string;
  @Shown('By the clock of the database.', '2026-11-21T09:30:00.000Z', { format: 'date-time' }) time: string;

  @Shown('docs/operations.md says what each means.', 'secret.create', {
    enum: AUDIT_ACTION_NAMES,
    enumName: 'AuditAction',
  })
  action: AuditAction;

  @Shown(
    '`done`: changed. `requested`: accepted, and the work follows. `failed`: the agent server did not do what was requested.',
    'done',
    { enum: AUDIT_OUTCOMES, enumName: 'AuditOutcome' },
  )
  outcome: AuditOutcome;

  @ApiProperty({ type: AuditActorDto }) actor: AuditActorDto;
  @ApiProperty({ type: AuditedResourceDto }) resource: AuditedResourceDto;
  @ShownOrNull('Whose it is.', USER_ID, { format: 'uuid' }) owner_user_id: string | null;

  @ShownOrNull('Id of the request, which the service has given it; null when there was none.', REQUEST_ID)
  request_id: string | null;

  @ShownOrNull('`X-Request-Id` of the caller, who may have given it to other requests too.', null)
  caller_request_id: string | null;

  @ShownOrNull('Where the connection came from: behind a reverse proxy, its address.', '10.0.3.17')
  client_address: string | null;

  @Shown(
    'Names of what was changed, and why the service acted: for a run of an automation `run_id`, `event` and `caused_by`. Never a stored value.',
    { members: ['value', 'description'] },
    ANY_OBJECT,
  )
  details: AuditDetails;
}

export function toAuditEntryDto(entry: AuditEntry): AuditEntryDto {
  return {
    ...toWire(entry, 'id', 'action', 'outcome', 'ownerUserId', 'requestId', 'callerRequestId'),
    ...toWire(entry, 'clientAddress', 'details'),
    time: entry.at.toISOString(),
    actor: { kind: entry.actorKind, user_id: entry.actorUserId, key_id: entry.actorKeyId },
    resource: { type: resourceOf(entry.action), id: entry.resourceId },
  };
}

export class AuditPageDto extends PageOf(AuditEntryDto) {}

const DESCRIPTION = `Administrators only. The newest entries first; filters are combined.

An entry is stored in the transaction of its change, and nothing changes it afterwards. It is kept for
\`AUDIT_RETENTION_DAYS\`, also when its user is removed. Actions:

${Object.entries(AUDIT_ACTIONS)
  .map(([action, meaning]) => `- \`${action}\`: ${meaning}.`)
  .join('\n')}`;

@ApiTags('Audit')
@AdministratorsOnly()
@Controller('api/v1/audit')
export class AuditController {
  constructor(private readonly entries: AuditQueries) {}

  @Get()
  @ApiRoute('search_audit', 'Who did what', {
    description: DESCRIPTION,
    answer: { type: AuditPageDto, description: 'A page of entries' },
    invalid: 'since',
  })
  async search(@Query() query: AuditQueryDto): Promise<AuditPageDto> {
    const page = await this.entries.page(query, query.limit, query.page_id);
    return toPageDto(page, toAuditEntryDto);
  }
}
