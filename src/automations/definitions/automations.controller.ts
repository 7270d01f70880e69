import { Body, Controller, Delete, Get, Headers, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { ApiProperty, ApiResponse, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { tooMany, unknownId } from '../../common/errors/domain-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import { ApiRoute, badInput, documented, thrown } from '@slipway/api/openapi/api-route.js';
import {
  Always,
  ANY_OBJECT,
  OrNull,
  Shown,
  ShownOrNull,
  Time,
  TimeOrNull,
  toWire,
  USER_ID,
} from '@slipway/api/openapi/responses.js';
import { OffsetQueryDto } from '@slipway/api/pagination/page.dto.js';
import { FIVE_FIELDS } from '@slipway/common/schedule.js';
import { Identifier } from '@slipway/api/validation/field-decorators.js';
import { ApiIdempotencyKey, idempotencyKey } from '../../v1/idempotency/idempotency.service.js';
import type { Owner } from '../../auth/owned.repository.js';
import { CurrentOwner } from '../../organizations/installation-organization.js';
import { type AutomationRun, RUN_STATUSES, RUN_TRIGGERS } from '../runs/automation-run.entity.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import {
  AUTOMATION_ID,
  AUTOMATION_STATES,
  AutomationIdDto,
  type AutomationState,
  CreateAutomationDto,
  DraftReportDto,
  ListAutomationsQueryDto,
  PROMPT_EXAMPLE,
  RUN_ID,
  UpdateAutomationDto,
  ValidateDraftDto,
} from './automation.dto.js';
import { type Automation, AutomationRepository, MAX_AUTOMATIONS } from './automation.repository.js';
import { EventSubjectDto } from '../events/event-subject.js';
import { AUTOMATION_TEMPLATES, type AutomationTemplate } from './automation-templates.js';
import { AutomationsService } from './automations.service.js';
import { CRON_EXAMPLE } from './trigger.dto.js';

const CONVERSATION_ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';
/** What the peer's document has, and is not offered. */
const ABSENT = {
  tarball_path: '',
  entrypoint: '',
  setup_script_path: null,
  plugin_spec: null,
  disabled_reason: null,
  disabled_at: null,
};

@Always(ABSENT)
@ApiSchema({ name: 'AutomationResponse' })
class AutomationDto {
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ example: 'Morning triage' }) name: string;
  @OrNull(null) description: string | null;
  @OrNull('Fix what fails.') prompt: string | null;
  @OrNull('fast') model: string | null;
  @Shown('The other members of the request: `repos`, `tasks`, …', { preset: 'prompt', repos: [] }, ANY_OBJECT)
  preset_metadata: Record<string, unknown>;
  @ApiProperty({ ...ANY_OBJECT, example: CRON_EXAMPLE }) trigger: object;
  @ApiProperty({ type: [String], example: ['triage'] }) tags: string[];
  @ApiProperty({ type: 'integer', nullable: true, example: 3600 }) timeout: number | null;
  @ApiProperty({ type: Boolean, nullable: true, example: null }) keep_alive: boolean | null;
  @ApiProperty({ enum: AUTOMATION_STATES, enumName: 'AutomationState', example: 'ACTIVE' })
  state: AutomationState;
  @Shown('Older name of `state`.', true) enabled: boolean;
  @TimeOrNull('2026-11-23T08:00:00.000Z') next_run_at: Date | null;
  @TimeOrNull(null) last_triggered_at: Date | null;
  @Time() created_at: Date;
  @Time() updated_at: Date;
}

@ApiSchema({ name: 'AutomationListResponse' })
class AutomationListDto {
  @ApiProperty({ type: [AutomationDto] }) automations: AutomationDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;
}

@ApiSchema({ name: 'AutomationTemplateInfo' })
class TemplateInfoDto implements AutomationTemplate {
  @ApiProperty({ example: 'nightly-failing-checks' }) id: string;
  @ApiProperty({ example: 'Fix failing checks every night' }) name: string;
  @ApiProperty({ example: 'At three in the morning, agents fix the checks that fail.' }) description: string;
  @Shown('The body of a new automation, to be changed and sent.', { name: 'Nightly' }, ANY_OBJECT)
  automation: Record<string, unknown>;
}

class TemplatesDto {
  @ApiProperty({ type: [TemplateInfoDto] }) templates: TemplateInfoDto[];
}

class TagCountDto {
  @ApiProperty({ example: 'triage' }) tag: string;
  @ApiProperty({ type: 'integer', example: 2 }) count: number;
}

class TagCountsDto {
  @ApiProperty({ type: [TagCountDto], description: 'The most used first.' }) tags: TagCountDto[];
}

class RunIdDto {
  @Identifier('Id of the run.', { required: true, example: RUN_ID }) run_id: string;
}

@ApiSchema({ name: 'AutomationRunResponse' })
class AutomationRunDto {
  @ApiProperty({ format: 'uuid', example: RUN_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) automation_id: string;
  @ApiProperty({ enum: RUN_STATUSES, enumName: 'RunStatus', example: 'COMPLETED' }) status: string;
  @ApiProperty({ enum: RUN_TRIGGERS, example: 'cron' }) trigger_source: string;
  @ShownOrNull('Why it failed, or was not run.', null) error_detail: string | null;
  @ShownOrNull('The first one.', CONVERSATION_ID) conversation_id: string | null;
  @Shown('All of them, and their suggested tasks.', { conversation_ids: [CONVERSATION_ID] }, ANY_OBJECT)
  run_metadata: Record<string, unknown>;
  @ApiProperty({ type: EventSubjectDto, nullable: true, description: 'Which event caused it.' })
  event: EventSubjectDto | null;
  @Shown('USD, when it is over.', 0.42, { type: Number, nullable: true }) cost: number | null;
  @TimeOrNull(null) timeout_at: Date | null;
  @ShownOrNull('That of its conversation.', null) sandbox_id: null;
  @Time() created_at: Date;
  @TimeOrNull('2026-11-21T09:30:01.000Z') started_at: Date | null;
  @TimeOrNull('2026-11-21T09:34:10.000Z') completed_at: Date | null;
}

@ApiSchema({ name: 'AutomationRunListResponse' })
class AutomationRunListDto {
  @ApiProperty({ type: [AutomationRunDto] }) runs: AutomationRunDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, example: { COMPLETED: 1 } })
  status_counts: Record<string, number>;
}

const ON_LABEL = { type: 'event', source: 'github', on: 'issues.labeled', filter: "label.name == 'agent'" };
const LABELED = { key: 'issues.labeled', payload: { label: { name: 'agent' } } };

const EXAMPLES = {
  schedule: {
    summary: 'Every working day at nine, the most pressing suggested tasks',
    value: { name: 'Morning triage', tasks: { limit: 3 }, trigger: CRON_EXAMPLE },
  },
  event: {
    summary: 'When an issue gets the label agent',
    value: { name: 'Labelled issues', prompt: PROMPT_EXAMPLE, trigger: ON_LABEL },
  },
};
const DRAFT_EXAMPLES = {
  schedule: { summary: 'When a schedule starts', value: { trigger: CRON_EXAMPLE } },
  event: { summary: 'Whether an event starts it', value: { trigger: ON_LABEL, event: LABELED } },
};

const UNKNOWN = thrown(unknownId('automation'), 'Unknown automation, or not yours');
const UNKNOWN_EVENT = thrown(unknownId('event'), 'Unknown event, not yours, or its payload is gone');
const UNKNOWN_RUN = thrown(unknownId('run'), 'Unknown run, or not yours');
const TOO_MANY_RUNS = documented(429, 'It has had 100 runs within a day (max_runs_per_day).');
const OVER = documented(409, 'This run is over.', 'The run is over');
const TOO_MANY = thrown(tooMany('automation', MAX_AUTOMATIONS), 'As many automations as may be');
const BAD_SCHEDULE = badInput('body.trigger.schedule', FIVE_FIELDS);

@ApiTags('Automations')
@Controller('api/automation/v1')
export class AutomationsController {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly service: AutomationsService,
    private readonly runs: AutomationRunRepository,
  ) {}

  @Post('preset/prompt')
  @ApiResponse({ status: 200, type: AutomationDto, description: 'The one that the template has made' })
  @ApiRoute('create_automation', 'Create an automation', {
    description: 'It starts conversations when its trigger says so, with your settings, tokens and limits.',
    status: 201,
    answer: { type: AutomationDto, description: 'The automation' },
    examples: EXAMPLES,
    problems: [TOO_MANY],
    invalid: BAD_SCHEDULE,
  })
  async create(
    @CurrentOwner() owner: Owner,
    @Body() body: CreateAutomationDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<AutomationDto> {
    const { row, isNew } = await this.service.create(owner, body);
    // Clients that use templates take 200 for one that existed.
    response.status(isNew ? 201 : 200);
    return toAutomationDto(row);
  }

  @Post('validate')
  @ApiRoute('validate_automation', 'Check an automation before it is created', {
    description: 'Changes nothing, and answers 200 for one that is not valid too.',
    answer: { type: DraftReportDto, description: 'What is wrong, and when or whether it starts' },
    examples: DRAFT_EXAMPLES,
    problems: [UNKNOWN_EVENT],
  })
  async validate(@CurrentOwner() owner: Owner, @Body() body: ValidateDraftDto): Promise<DraftReportDto> {
    return this.service.validate(owner, body);
  }

  @Get()
  @ApiRoute('list_automations', 'List automations', {
    description: 'The newest first.',
    answer: { type: AutomationListDto, description: 'A page of your automations' },
  })
  async list(
    @CurrentOwner() owner: Owner,
    @Query() query: ListAutomationsQueryDto,
  ): Promise<AutomationListDto> {
    const [automations, total] =
      query.created_by === 'others' ? [[], 0] : await this.automations.page(owner, query);
    return { automations: automations.map(toAutomationDto), total };
  }

  @Get('templates')
  @ApiRoute('list_automation_templates', 'List templates of automations', {
    description: 'What many automate. Each makes a good automation once its repository is chosen.',
    answer: { type: TemplatesDto, description: 'The same for everybody' },
  })
  templates(): TemplatesDto {
    return { templates: [...AUTOMATION_TEMPLATES] };
  }

  @Get('tags')
  @ApiRoute('list_automation_tags', 'List the tags of automations', {
    description: 'Of your automations in this organization.',
    answer: { type: TagCountsDto, description: 'Tags with the number of their automations' },
  })
  async tags(@CurrentOwner() owner: Owner): Promise<TagCountsDto> {
    return { tags: await this.automations.tagCounts(owner) };
  }

  @Get(':id')
  @ApiRoute('get_automation', 'Look at an automation', {
    description: 'What it does, when, and when it did so last.',
    answer: { type: AutomationDto, description: 'The automation' },
    problems: [UNKNOWN],
  })
  async get(@CurrentOwner() owner: Owner, @Param() { id }: AutomationIdDto): Promise<AutomationDto> {
    return toAutomationDto(await this.automations.getOf(owner, id));
  }

  @Patch(':id')
  @ApiRoute('update_automation', 'Change an automation', {
    description: 'What is left out stays. Runs that were made before stay as they were.',
    answer: { type: AutomationDto, description: 'The automation as it is now' },
    examples: { pause: { summary: 'Start nothing for now', value: { state: 'INACTIVE' } } },
    problems: [UNKNOWN],
    invalid: BAD_SCHEDULE,
  })
  async update(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationIdDto,
    @Body() body: UpdateAutomationDto,
  ): Promise<AutomationDto> {
    return toAutomationDto(await this.service.change(owner, id, body));
  }

  @Delete(':id')
  @ApiRoute('delete_automation', 'Remove an automation', {
    description: 'Its runs are removed with it; conversations that they began stay, and go on.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN],
  })
  async remove(@CurrentOwner() owner: Owner, @Param() { id }: AutomationIdDto): Promise<void> {
    await this.automations.removeOf(owner, id);
  }

  @Post(':id/dispatch')
  @ApiIdempotencyKey('run', 'f1a2b3c4-7d6e-4f50-8a9b-0c1d2e3f4a5b', 'as long as that is kept')
  @ApiRoute('dispatch_automation', 'Run an automation now', {
    description: 'Answers at once, also where it is not active. A busy one does what its `concurrency` says.',
    status: 201,
    answer: { type: AutomationRunDto, description: 'The run' },
    problems: [UNKNOWN, TOO_MANY_RUNS],
  })
  async dispatch(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationIdDto,
    @Headers('idempotency-key') key: string | undefined,
  ): Promise<AutomationRunDto> {
    return toAutomationRunDto(await this.runs.dispatch(owner, id, idempotencyKey(key)));
  }

  @Get(':id/runs')
  @ApiRoute('list_automation_runs', 'List the runs of an automation', {
    description: 'The newest first. They are kept for AUTOMATION_RUN_RETENTION_SECONDS.',
    answer: { type: AutomationRunListDto, description: 'A page of runs' },
    problems: [UNKNOWN],
  })
  async listRuns(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationIdDto,
    @Query() place: OffsetQueryDto,
  ): Promise<AutomationRunListDto> {
    const { id: automationId } = await this.automations.getOf(owner, id);
    const [runs, total] = await this.runs.page(automationId, place);
    const status_counts = await this.runs.statusCounts(automationId);
    return { runs: runs.map(toAutomationRunDto), total, status_counts };
  }

  @Post('runs/:run_id/cancel')
  @ApiRoute('cancel_automation_run', 'Cancel a run', {
    description: 'One that waits does not begin; the conversations of others are paused within seconds.',
    answer: { type: AutomationRunDto, description: 'The run as it is now' },
    problems: [UNKNOWN_RUN, OVER],
  })
  async cancel(@CurrentOwner() owner: Owner, @Param() { run_id: id }: RunIdDto): Promise<AutomationRunDto> {
    return toAutomationRunDto(await this.runs.cancel(owner, id));
  }
}

function toAutomationDto(automation: Automation): AutomationDto {
  const { prompt, model, timeout, keep_alive, ...work } = automation.work;
  return {
    ...toWire(automation, 'id', 'userId', 'orgId', 'name', 'description', 'trigger', 'tags', 'state'),
    ...toWire(automation, 'nextRunAt', 'lastTriggeredAt', 'createdAt', 'updatedAt'),
    prompt,
    model,
    timeout,
    keep_alive,
    preset_metadata: { preset: 'prompt', ...work },
    enabled: automation.state === 'ACTIVE',
    ...ABSENT,
  };
}

function toAutomationRunDto(run: AutomationRun): AutomationRunDto {
  const { startedAt, tasks, work } = run;
  const conversation_ids = run.conversationIds.map(toHexId);
  return {
    ...toWire(run, 'id', 'automationId', 'status', 'triggerSource', 'event', 'errorDetail', 'cost'),
    ...toWire(run, 'createdAt', 'startedAt', 'completedAt'),
    conversation_id: conversation_ids[0] ?? null,
    run_metadata: { conversation_ids, tasks },
    timeout_at: startedAt && work.timeout ? new Date(startedAt.getTime() + work.timeout * 1000) : null,
    sandbox_id: null,
  };
}
