import { All, Controller, Get, Post, Req } from '@nestjs/common';
import { ApiExcludeController, ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import type { Owner } from '../auth/owned.repository.js';
import { DomainError } from '../common/errors/domain-error.js';
import { JMESPATH_FUNCTIONS } from '@slipway/common/jmespath.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { ANY_OBJECT, Shown } from '@slipway/api/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { CRON_CAPABILITIES } from '@slipway/common/schedule.js';
import { CurrentOwner } from '../organizations/installation-organization.js';
import { PROVIDER_TYPES } from '@slipway/git-providers/git-provider.js';
import { WEBHOOK_EVENT_KEYS, WEBHOOK_SOURCES } from '@slipway/git-providers/git-servers.js';
import { Readiness } from '../health/readiness.js';
import { MAX_SECONDS } from './definitions/automation.dto.js';
import { TRIGGER_KINDS } from './definitions/trigger.dto.js';

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

const REFUSED = new Map<string, keyof typeof NOT_OFFERED>([
  ['uploads{/*rest}', 'tarballs'],
  [':id/tarball', 'tarballs'],
  ['preset/plugin', 'plugins'],
  ['plugin-spec', 'plugins'],
  ['drafts{/*rest}', 'drafts'],
  ['kv{/*rest}', 'kv'],
  ['git-sync/*rest', 'git_sync'],
  ['telemetry/*rest', 'telemetry'],
  ['runs/:run_id/complete', 'run_reports'],
  ['runs/:run_id/phase', 'run_reports'],
  ['events/:source/requested-types', 'requested_event_types'],
]);

class AutomationSdkVersionDto {
  @ApiProperty({ example: '0.2.0' }) sdk_version: string;
}

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

/** What the peer's clients ask before they show their pages. */
@ApiTags('Automations')
@Controller('api/automation')
export class ServiceInfoController {
  constructor(private readonly readiness: Readiness) {}

  @Public()
  @Get('sdk-version')
  @ApiRoute('get_automation_sdk_version', 'The version that runs use', {
    description: 'Runs are conversations of this service, so it has the same version.',
    answer: { type: AutomationSdkVersionDto, description: 'That of the service' },
  })
  sdkVersion(): AutomationSdkVersionDto {
    return { sdk_version: productVersion() };
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
      eventSources: WEBHOOK_SOURCES,
      eventTypes: WEBHOOK_EVENT_KEYS,
      triggers: {
        cron: CRON_CAPABILITIES,
        event: { filterLanguage: 'jmespath', filterFunctions: JMESPATH_FUNCTIONS },
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
  @Post()
  refuseTarball(): never {
    throw notOffered('tarballs');
  }

  @All([...REFUSED.keys()])
  refuse(@Req() { route }: Request): never {
    const { path }: { path: string } = route;
    throw notOffered(REFUSED.get(path.slice(BASE.length + 1)) ?? 'tarballs');
  }
}

function notOffered(what: keyof typeof NOT_OFFERED): DomainError {
  return new DomainError('not_offered', NOT_OFFERED[what]);
}
