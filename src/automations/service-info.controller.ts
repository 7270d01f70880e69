import { All, Controller, Get, Post, Req } from '@nestjs/common';
import { ApiExcludeController, ApiProperty, ApiSchema, ApiTags, PickType } from '@nestjs/swagger';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { ANY_OBJECT, Shown } from '../common/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { HealthDto, ServerInfoDto } from '../health/health.controller.js';
import { Readiness, requireReady } from '../health/readiness.js';
import { CurrentOwner, type Owner } from './current-owner.js';
import { MAX_SECONDS } from './definitions/automation.dto.js';
import { FILTER_FUNCTIONS } from './definitions/event-filter.js';
import { CRON_CAPABILITIES } from './definitions/schedule.js';
import { TRIGGER_KINDS } from './definitions/trigger.dto.js';
import { BUILT_IN_SOURCES } from './events/event-source.js';

const BASE = '/api/automation/v1';

/** What of the peer's document is refused, instead of looking unknown: `capabilities` lists it. */
const NOT_OFFERED = {
  tarballs: `Code of your own does not run in the service: use POST ${BASE}/preset/prompt.`,
  plugins: `The service has no plugins: use POST ${BASE}/preset/prompt.`,
  drafts: `Drafts are not kept: POST ${BASE}/validate says what is wrong with one.`,
  kv: 'There is no store of keys and values: agents have their workspace.',
  git_sync: 'Automations are kept here, and not in a repository.',
  telemetry: 'The service sends no telemetry about automations.',
  run_reports: 'The service itself sees how a run goes.',
  requested_event_types: 'Hosts send the events that their webhooks choose.',
};

type Refusals = Record<string, keyof typeof NOT_OFFERED>;

const REFUSED_FOR_ALL: Refusals = {
  'uploads{/*rest}': 'tarballs',
  'preset/plugin': 'plugins',
  'plugin-spec': 'plugins',
  'drafts{/*rest}': 'drafts',
  'kv{/*rest}': 'kv',
  'git-sync/*rest': 'git_sync',
  'telemetry/*rest': 'telemetry',
};
const REFUSED_GET: Refusals = {
  ':id/tarball': 'tarballs',
  'events/:source/requested-types': 'requested_event_types',
};
const REFUSED_POST: Refusals = {
  '': 'tarballs',
  'runs/:run_id/complete': 'run_reports',
  'runs/:run_id/phase': 'run_reports',
};

/** The ones that clients offer to choose from; a trigger may name any. */
const EVENT_TYPES =
  'push issues.* issue_comment.* pull_request.* pull_request_review.* check_run.* issue.* note.* merge_request.* pipeline.* pullrequest.* repo.* pr.*';

class AutomationSdkVersionDto {
  @Shown('Of the service: no sandbox installs anything for a run.', '0.2.0') sdk_version: string;
}

class AutomationServerInfoDto extends PickType(ServerInfoDto, ['title', 'version']) {}

@ApiSchema({ name: 'AutomationCapabilities' })
class CapabilitiesDto {
  @ApiProperty({ example: true }) ready: boolean;
  @ApiProperty({ type: 'integer', example: MAX_SECONDS }) maxAutomationTimeoutSeconds: number;
  @ApiProperty({ type: [String], example: ['cron', 'event'] }) triggerKinds: string[];
  @ApiProperty({ type: [String], example: ['github'] }) eventSources: string[];
  @ApiProperty({ type: [String], example: ['issues.labeled'] }) eventTypes: string[];
  @ApiProperty({ ...ANY_OBJECT, example: { cron: { minIntervalSeconds: 60, timezones: ['UTC'] } } })
  triggers: object;
  @ApiProperty({ type: [String], example: ['prompt', 'tasks'] }) features: string[];
  @ApiProperty({ type: [String], example: ['github'] }) repoProviders: string[];
  @Shown('What the service refuses with 501.', ['tarballs'], { type: [String] }) notOffered: string[];
}

const WHERE = 'Where clients of automations look for it.';

/** What the peer's clients ask before they show their pages. */
@ApiTags('Automations')
@Controller('api/automation')
export class ServiceInfoController {
  constructor(private readonly readiness: Readiness) {}

  @Public()
  @Get('health')
  @ApiRoute('get_automation_health', 'Same as /health/live', {
    description: WHERE,
    answer: { type: HealthDto, description: 'The process answers' },
  })
  health(): HealthDto {
    return { status: 'ok' };
  }

  @Public()
  @Get('ready')
  @ApiRoute('automation_ready', 'Same as /ready', {
    description: WHERE,
    answer: { type: HealthDto, description: 'This replica is ready for requests' },
    problems: [503],
  })
  async ready(): Promise<HealthDto> {
    requireReady(await this.readiness.reportRequired());
    return { status: 'ok' };
  }

  @Public()
  @Get('sdk-version')
  @ApiRoute('get_automation_sdk_version', 'The version that runs use', {
    description: 'Runs are conversations of this service, so it has the same version.',
    answer: { type: AutomationSdkVersionDto, description: 'That of the service' },
  })
  sdkVersion(): AutomationSdkVersionDto {
    return { sdk_version: productVersion() };
  }

  @Public()
  @Get('server_info')
  @ApiRoute('automation_server_info', 'Name and version of the service', {
    description: WHERE,
    answer: { type: AutomationServerInfoDto, description: 'This service' },
  })
  serverInfo(): AutomationServerInfoDto {
    return { title: 'Slipway', version: productVersion() };
  }

  @Get('v1/capabilities')
  @ApiRoute('get_automation_capabilities', 'What automations can do here', {
    description: '`notOffered` names what is answered with 501.',
    answer: { type: CapabilitiesDto, description: 'Triggers, functions of filters, and what is not offered' },
  })
  async capabilities(@CurrentOwner() _owner: Owner): Promise<CapabilitiesDto> {
    const parts = await this.readiness.reportRequired();
    return {
      ready: parts.every(({ status }) => status === 'ok'),
      maxAutomationTimeoutSeconds: MAX_SECONDS,
      triggerKinds: TRIGGER_KINDS,
      eventSources: BUILT_IN_SOURCES,
      eventTypes: EVENT_TYPES.split(' '),
      triggers: {
        cron: CRON_CAPABILITIES,
        event: { filterLanguage: 'jmespath', filterFunctions: FILTER_FUNCTIONS },
      },
      features: ['prompt', 'tasks', 'concurrency', 'budget'],
      repoProviders: [...PROVIDER_TYPES],
      notOffered: Object.keys(NOT_OFFERED),
    };
  }
}

@ApiExcludeController()
@Controller(BASE)
export class NotOfferedController {
  @All(Object.keys(REFUSED_FOR_ALL))
  refuseAll(@Req() request: Request): never {
    throw refusal(REFUSED_FOR_ALL, request);
  }

  @Get(Object.keys(REFUSED_GET))
  refuseGet(@Req() request: Request): never {
    throw refusal(REFUSED_GET, request);
  }

  @Post(Object.keys(REFUSED_POST))
  refusePost(@Req() request: Request): never {
    throw refusal(REFUSED_POST, request);
  }
}

function refusal(refusals: Refusals, { route }: Request): DomainError {
  const { path } = route as { path: string };
  const what = refusals[path.slice(BASE.length + 1)];
  const detail = what ? NOT_OFFERED[what] : 'This is not offered here.';
  return new DomainError('not_offered', 'not_offered', detail);
}
