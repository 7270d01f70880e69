import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { Public } from '../auth/auth.decorators.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { ANY_OBJECT, Shown } from '../common/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { Readiness, requireReady } from '../health/readiness.js';
import { MAX_AUTOMATION_SECONDS } from './definitions/automation.dto.js';
import { FILTER_FUNCTIONS } from './definitions/event-filter.js';
import { CRON_CAPABILITIES } from './definitions/schedule.js';
import { TRIGGER_KINDS } from './definitions/trigger.dto.js';
import { BUILT_IN_SOURCES } from './events/event-source.js';
import { CurrentOwner, type Owner } from './current-owner.js';
import { NOT_OFFERED } from './not-offered.controller.js';

/** The ones that clients offer to choose from; a trigger may name any. */
const EVENT_TYPES =
  'push issues.* issue_comment.* pull_request.* pull_request_review.* check_run.* issue.* note.* merge_request.* pipeline.* pullrequest.* repo.* pr.*'.split(
    ' ',
  );

class AutomationHealthDto {
  @ApiProperty({ example: 'ok' }) status: string;
}

class AutomationSdkVersionDto {
  @Shown('Of the service: no sandbox installs anything for a run.', '0.2.0') sdk_version: string;
}

class AutomationServerInfoDto {
  @ApiProperty({ example: 'Slipway' }) title: string;
  @ApiProperty({ example: '0.2.0' }) version: string;
}

@ApiSchema({ name: 'AutomationCapabilities' })
class CapabilitiesDto {
  @ApiProperty({ example: true }) ready: boolean;
  @ApiProperty({ type: 'integer', example: MAX_AUTOMATION_SECONDS }) maxAutomationTimeoutSeconds: number;
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
    answer: { type: AutomationHealthDto, description: 'The process answers' },
  })
  health(): AutomationHealthDto {
    return { status: 'ok' };
  }

  @Public()
  @Get('ready')
  @ApiRoute('automation_ready', 'Same as /ready', {
    description: WHERE,
    answer: { type: AutomationHealthDto, description: 'This replica is ready for requests' },
    problems: [503],
  })
  async ready(): Promise<AutomationHealthDto> {
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
      maxAutomationTimeoutSeconds: MAX_AUTOMATION_SECONDS,
      triggerKinds: TRIGGER_KINDS,
      eventSources: BUILT_IN_SOURCES,
      eventTypes: EVENT_TYPES,
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
