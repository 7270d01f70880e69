import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { ApiResponse, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import { ApiRoute, documented } from '../../common/openapi/api-route.js';
import { CurrentOwner, type Owner, unknown } from '../current-owner.js';
import { AutomationDto, AutomationListDto, toAutomationDto } from './automation-answer.dto.js';
import {
  AutomationIdDto,
  CreateAutomationDto,
  ListAutomationsQueryDto,
  TagCountsDto,
  UpdateAutomationDto,
} from './automation.dto.js';
import { AutomationRepository } from './automation.repository.js';
import { AutomationsService } from './automations.service.js';
import { DraftReportDto, ValidateDraftDto } from './draft.dto.js';
import { FIVE_FIELDS } from './schedule.js';
import { CRON_EXAMPLE } from './trigger.dto.js';

const EXAMPLES = {
  schedule: {
    summary: 'Every working day at nine, the most pressing suggested tasks',
    value: {
      name: 'Morning triage',
      tasks: { task_types: ['FAILING_CHECKS', 'MERGE_CONFLICTS'], limit: 3 },
      trigger: CRON_EXAMPLE,
    },
  },
  event: {
    summary: 'When an issue gets the label agent',
    value: {
      name: 'Labelled issues',
      prompt: 'Solve this issue and open a pull request: {{ event.issue.html_url }} {{ event.issue.body }}',
      repos: [{ url: 'octo/app', provider: 'github' }],
      trigger: {
        type: 'event',
        source: 'github',
        on: 'issues.labeled',
        filter: "label.name == 'agent' && glob(repository.full_name, 'octo/*')",
      },
      concurrency: { limit: 2, when_busy: 'queue' },
    },
  },
};

const DRAFT_EXAMPLES = {
  schedule: { summary: 'When a schedule starts', value: { trigger: CRON_EXAMPLE } },
  event: {
    summary: 'Whether an event starts it',
    value: {
      trigger: { type: 'event', source: 'github', on: 'issues.labeled', filter: "label.name == 'agent'" },
      event: { key: 'issues.labeled', payload: { action: 'labeled', label: { name: 'agent' } } },
    },
  },
};

const UNKNOWN = unknown('automation');
const TOO_MANY = documented(
  409,
  'You have 100 automations, the most that are kept; delete one first.',
  'As many automations as may be',
);
const BAD_SCHEDULE = { loc: ['body', 'trigger', 'schedule'], type: 'value_error', msg: FIVE_FIELDS };

@ApiTags('Automations')
@Controller('api/automation/v1')
export class AutomationsController {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly service: AutomationsService,
  ) {}

  @Post('preset/prompt')
  @ApiResponse({
    status: 200,
    type: AutomationDto,
    description: 'The one that was made from the same template',
  })
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
      description: 'What is wrong, when it starts, and whether the event starts it',
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
    @Query() { limit, offset, tag, created_by }: ListAutomationsQueryDto,
  ): Promise<AutomationListDto> {
    if (created_by === 'others') {
      return { automations: [], total: 0 };
    }
    const [automations, total] = await this.automations.pageOfTag(owner, tag, { limit, offset });
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
