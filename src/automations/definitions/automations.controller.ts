import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { tooMany, unknownId } from '../../common/errors/domain-error.js';
import { ApiRoute, badInput, thrown } from '../../common/openapi/api-route.js';
import {
  Always,
  ANY_OBJECT,
  OrNull,
  Shown,
  Time,
  TimeOrNull,
  USER_ID,
} from '../../common/openapi/responses.js';
import { CurrentOwner, type Owner } from '../current-owner.js';
import {
  AUTOMATION_ID,
  AutomationIdDto,
  CreateAutomationDto,
  ListAutomationsQueryDto,
  UpdateAutomationDto,
} from './automation.dto.js';
import { type Automation, AUTOMATION_STATES, type AutomationState } from './automation.entity.js';
import { AutomationRepository, MAX_AUTOMATIONS } from './automation.repository.js';
import { AutomationsService } from './automations.service.js';
import { DraftReportDto, ValidateDraftDto } from './draft.dto.js';
import { FIVE_FIELDS } from './schedule.js';
import { CRON_EXAMPLE } from './trigger.dto.js';

/** Members of the peer's answer about what is not offered here. */
const NOTHING = { setup_script_path: null, plugin_spec: null, disabled_reason: null, disabled_at: null };
const NO_CODE = 'Code of your own is not offered here.';

@Always(NOTHING)
@ApiSchema({ name: 'AutomationResponse' })
class AutomationDto {
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ example: 'Morning triage' }) name: string;
  @OrNull(null) description: string | null;
  @OrNull('Fix what fails.') prompt: string | null;
  @OrNull('fast') model: string | null;

  @Shown(
    'The other members of the request: `repos`, `tasks`, `concurrency`, …',
    { preset: 'prompt', repos: [], max_runs_per_day: 100 },
    ANY_OBJECT,
  )
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
  @Shown(NO_CODE, '') tarball_path: string;
  @Shown(NO_CODE, '') entrypoint: string;
}

@ApiSchema({ name: 'AutomationListResponse' })
class AutomationListDto {
  @ApiProperty({ type: [AutomationDto] }) automations: AutomationDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;
}

class TagCountDto {
  @ApiProperty({ example: 'triage' }) tag: string;
  @ApiProperty({ type: 'integer', example: 2 }) count: number;
}

class TagCountsDto {
  @ApiProperty({ type: [TagCountDto], description: 'The most used first.' }) tags: TagCountDto[];
}

const ON_LABEL = {
  type: 'event',
  source: 'github',
  on: 'issues.labeled',
  filter: "label.name == 'agent' && glob(repository.full_name, 'octo/*')",
};

const EXAMPLES = {
  schedule: {
    summary: 'Every working day at nine, the most pressing suggested tasks',
    value: {
      name: 'Morning triage',
      tasks: { task_types: ['FAILING_CHECKS'], limit: 3 },
      trigger: CRON_EXAMPLE,
    },
  },
  event: {
    summary: 'When an issue gets the label agent',
    value: {
      name: 'Labelled issues',
      prompt: 'Solve this issue and open a pull request: {{ event.issue.html_url }} {{ event.issue.body }}',
      repos: [{ url: 'octo/app', provider: 'github' }],
      trigger: ON_LABEL,
    },
  },
};

const LABELED = { action: 'labeled', label: { name: 'agent' }, repository: { full_name: 'octo/app' } };

const DRAFT_EXAMPLES = {
  schedule: { summary: 'When a schedule starts', value: { trigger: CRON_EXAMPLE } },
  event: {
    summary: 'Whether an event starts it',
    value: { trigger: ON_LABEL, event: { key: 'issues.labeled', payload: LABELED } },
  },
};

const UNKNOWN = thrown(unknownId('automation'), 'Unknown automation, or not yours');
const TOO_MANY = thrown(tooMany('automation', MAX_AUTOMATIONS), 'As many automations as may be');
const BAD_SCHEDULE = badInput('body.trigger.schedule', FIVE_FIELDS);

@ApiTags('Automations')
@Controller('api/automation/v1')
export class AutomationsController {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly service: AutomationsService,
  ) {}

  @Post('preset/prompt')
  @ApiRoute('create_automation', 'Create an automation', {
    description:
      'From now on it starts a conversation whenever its trigger says so, with your settings, tokens and limits.',
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
    answer: {
      type: DraftReportDto,
      description: 'What is wrong, when it starts, and whether the event does it',
    },
    examples: DRAFT_EXAMPLES,
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
}

function toAutomationDto(automation: Automation): AutomationDto {
  const { id, name, description, trigger, tags, state } = automation;
  const { prompt, model, timeout, keep_alive, ...work } = automation.work;
  const { maxRunsPerDay: max_runs_per_day, limit, whenBusy: when_busy } = automation.limits;
  return {
    id,
    user_id: automation.userId,
    org_id: automation.orgId,
    name,
    description,
    prompt,
    model,
    preset_metadata: { preset: 'prompt', ...work, max_runs_per_day, concurrency: { limit, when_busy } },
    trigger,
    tags,
    timeout,
    keep_alive,
    state,
    enabled: state === 'ACTIVE',
    next_run_at: automation.nextRunAt,
    last_triggered_at: automation.lastTriggeredAt,
    created_at: automation.createdAt,
    updated_at: automation.updatedAt,
    tarball_path: '',
    entrypoint: '',
    ...NOTHING,
  };
}
