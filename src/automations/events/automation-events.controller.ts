import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiProperty, ApiResponse, ApiSchema, ApiTags, OmitType } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/auth.decorators.js';
import type { Owner } from '../../auth/owned.repository.js';
import { found, unknownId } from '../../common/errors/domain-error.js';
import { ApiRoute, thrown } from '@slipway/api/openapi/api-route.js';
import { Shown, ShownOrNull, Time, USER_ID as ORG_ID } from '@slipway/api/openapi/responses.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { Identifier, Text } from '@slipway/api/validation/field-decorators.js';
import { CurrentOwner } from '../../organizations/installation-organization.js';
import { webhooksOf } from '@slipway/git-providers/git-servers.js';
import { AUTOMATION_ID, RUN_ID } from '../definitions/automation.dto.js';
import { AutomationEventRepository, type EventOutcome } from './automation-event.repository.js';
import { AutomationEventsService, invalidSignature } from './automation-events.service.js';
import { isLargeEvent, MAX_HOST_EVENT_BYTES, receivedWebhook } from './event-source.js';
import { EventSubjectDto, subjectOf } from './event-subject.js';

const UNKNOWN = thrown(unknownId('event'), 'Unknown event, or not yours');
const BAD_SIGNATURE = thrown(
  invalidSignature(),
  'Wrong or missing signature, unknown organization, or unknown source',
);
const EVENT_ID = 'c7a1d4e8-2b6f-4093-9d5e-8f1a2b3c4d5e';

class EventAddressDto {
  @Text('Id of the organization.', { required: true, example: ORG_ID, maxLength: 64 }) org_id: string;
  @Text('Source of the webhook.', { required: true, example: 'github', maxLength: 50 }) source: string;
}

class EventRepositoryDto {
  @Text('Where the secret is that of one repository: its name.', { example: 'octo/app', maxLength: 255 })
  repository?: string;
}

class EventIdDto {
  @Identifier('Id of the event.', { required: true, example: EVENT_ID }) event_id: string;
}

class MatchReasonDto implements EventOutcome {
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) automation_id: string;
  @ApiProperty({ type: String, nullable: true, format: 'uuid', example: RUN_ID }) run_id: string | null;
  @ShownOrNull('Why there is none.', null) reason: string | null;
}

class MatchDto extends OmitType(MatchReasonDto, ['reason']) {}

@ApiSchema({ name: 'AutomationEventResponse' })
class ReceivedEventDto {
  @ApiProperty({ format: 'uuid', example: EVENT_ID }) event_id: string;
  @ApiProperty({ type: [MatchDto] }) matched: MatchDto[];
  @Shown('The delivery was known.', false) duplicate: boolean;
  @Shown(
    'It was larger than 1 MiB: members larger than 64 KiB, such as the commits of a push, were left out.',
    false,
  )
  truncated: boolean;
}

@ApiSchema({ name: 'AutomationEventMatches' })
class EventMatchesDto {
  @ApiProperty({ format: 'uuid', example: EVENT_ID }) event_id: string;
  @ApiProperty({ example: 'github' }) source: string;
  @ApiProperty({ example: 'issues.labeled' }) key: string;
  @ApiProperty({ type: [MatchReasonDto] }) matches: MatchReasonDto[];
}

@ApiSchema({ name: 'AutomationEvent' })
class PastEventDto {
  @ApiProperty({ format: 'uuid', example: EVENT_ID }) id: string;
  @ApiProperty({ example: 'github' }) source: string;
  @ApiProperty({ type: EventSubjectDto }) subject: EventSubjectDto;
  @Time() created_at: Date;
}

class PastEventsDto {
  @ApiProperty({ type: [PastEventDto] }) events: PastEventDto[];
}

class PastEventsQueryDto {
  @Text('Only those of this source.', { example: 'github', maxLength: 50 }) source?: string;
}

@ApiTags('Automations')
@Controller('api/automation/v1/events')
export class AutomationEventsController {
  constructor(
    private readonly events: AutomationEventRepository,
    private readonly service: AutomationEventsService,
  ) {}

  @Public()
  @Post(':org_id/:source')
  @JsonBodyBounds({ raw: true, bytes: MAX_HOST_EVENT_BYTES })
  @ApiResponse({ status: 200, type: ReceivedEventDto, description: 'The event was known' })
  @ApiResponse({ status: 204, description: 'A test of the connection by Bitbucket Data Center' })
  @ApiRoute('receive_automation_event', 'Take an event of a git host', {
    description:
      'For webhooks of hosts: needs no key, but the signature of the host. What is unknown is answered as a wrong signature is. A delivery that is known is answered with 200.',
    status: 202,
    answer: { type: ReceivedEventDto, description: 'The event is stored, with the runs that it made' },
    problems: [BAD_SIGNATURE, 413, 429, 502, 504],
  })
  async receive(
    @Param() { org_id: orgId, source }: EventAddressDto,
    @Query() { repository }: EventRepositoryDto,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ReceivedEventDto | undefined> {
    const sent = receivedWebhook(request);
    if (webhooksOf(source)?.isTest?.(sent)) {
      response.status(204);
      return undefined;
    }
    const { id, outcomes, isDuplicate } = await this.service.receive(orgId, source, sent, repository ?? null);
    response.status(isDuplicate ? 200 : 202);
    const begun = outcomes.filter(({ run_id }) => run_id !== null);
    const matched = begun.map(({ automation_id, run_id }) => ({ automation_id, run_id }));
    return { event_id: id, matched, duplicate: isDuplicate, truncated: isLargeEvent(sent) };
  }

  @Get()
  @ApiRoute('list_automation_events', 'List events to try an automation with', {
    description: 'The newest 50 that have come within a day and whose payload is still there. See validate.',
    answer: { type: PastEventsDto, description: 'The newest first' },
  })
  async list(@CurrentOwner() owner: Owner, @Query() { source }: PastEventsQueryDto): Promise<PastEventsDto> {
    const rows = await this.events.newest(owner, source);
    return {
      events: rows.map(({ id, source: from, eventKey, subject, createdAt }) => {
        return { id, source: from, subject: subject ?? subjectOf(eventKey, null), created_at: createdAt };
      }),
    };
  }

  @Get(':event_id/matches')
  @ApiRoute('get_automation_event_matches', 'What an event meant for each automation', {
    description:
      'Events are kept for a day, and the newest 10,000 of an organization, within AUTOMATION_EVENT_BYTES. Why there is no run is found out now: an automation that was changed since is tried as it is.',
    answer: { type: EventMatchesDto, description: 'The automations of its source, and why not' },
    problems: [UNKNOWN],
  })
  async matches(@CurrentOwner() owner: Owner, @Param() { event_id }: EventIdDto): Promise<EventMatchesDto> {
    const event = found(await this.events.findOneBy({ ...owner, id: event_id }), 'event');
    return {
      event_id,
      source: event.source,
      key: event.eventKey,
      matches: await this.service.matches(event),
    };
  }
}
