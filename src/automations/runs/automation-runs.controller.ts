import { Controller, Get, Headers, Param, Post, Query } from '@nestjs/common';
import { ApiHeader, ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { toHexId } from '../../common/identifiers.js';
import { ApiRoute, documented } from '../../common/openapi/api-route.js';
import { ANY_OBJECT, Shown, ShownOrNull } from '../../common/openapi/responses.js';
import { Identifier } from '../../common/validation/field-decorators.js';
import { idempotencyKey } from '../../v1/idempotency/idempotency.service.js';
import { CurrentOwner, type Owner, unknown } from '../current-owner.js';
import { AT, AUTOMATION_ID, AutomationIdDto, OffsetQueryDto, RUN_ID } from '../definitions/automation.dto.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { newestFirst } from '../owned.repository.js';
import { type AutomationRun, RUN_STATUSES, RUN_TRIGGERS } from './automation-run.entity.js';
import { AutomationRunRepository } from './automation-run.repository.js';

const UNKNOWN = unknown('automation');
const TOO_MANY = { status: 429, detail: 'It has had 100 runs within a day (max_runs_per_day).' };
const OVER = documented(409, 'This run is over.', 'The run is over');
const CONVERSATION_ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';

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

  @Shown(
    'All conversations, and the suggested tasks that they work on.',
    { conversation_ids: [CONVERSATION_ID], tasks: null },
    ANY_OBJECT,
  )
  run_metadata: Record<string, unknown>;

  @Shown('USD, when it is over.', 0.42, { type: Number, nullable: true }) cost: number | null;
  @ApiProperty({ type: Date, nullable: true, example: null }) timeout_at: Date | null;
  @ShownOrNull('That of its conversation.', null) sandbox_id: null;
  @ApiProperty({ example: AT }) created_at: Date;
  @ApiProperty({ type: Date, nullable: true, example: AT }) started_at: Date | null;
  @ApiProperty({ type: Date, nullable: true, example: AT }) completed_at: Date | null;
}

@ApiSchema({ name: 'AutomationRunListResponse' })
class AutomationRunListDto {
  @ApiProperty({ type: [AutomationRunDto] }) runs: AutomationRunDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, example: { COMPLETED: 1 } })
  status_counts: Record<string, number>;
}

@ApiTags('Automations')
@Controller('api/automation/v1')
export class AutomationRunsController {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
  ) {}

  @Post(':id/dispatch')
  @ApiHeader({
    name: 'Idempotency-Key',
    description: 'A repetition under this key answers the same run.',
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
    example: 'f1a2b3c4-7d6e-4f50-8a9b-0c1d2e3f4a5b',
  })
  @ApiRoute('dispatch_automation', 'Run an automation now', {
    description:
      'Answers at once, also where the automation is not active. A busy automation does what its `concurrency` says.',
    status: 201,
    answer: { type: AutomationRunDto, description: 'The run' },
    problems: [UNKNOWN, TOO_MANY],
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
  async list(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationIdDto,
    @Query() { limit, offset }: OffsetQueryDto,
  ): Promise<AutomationRunListDto> {
    const { id: automationId } = await this.automations.getOf(owner, id);
    const [runs, total] = await newestFirst(this.runs, { automationId }, { limit, offset });
    const status_counts = await this.runs.statusCounts(automationId);
    return { runs: runs.map(toAutomationRunDto), total, status_counts };
  }

  @Post('runs/:run_id/cancel')
  @ApiRoute('cancel_automation_run', 'Cancel a run', {
    description:
      'One that waits does not begin; the conversations of one that runs are paused within seconds.',
    answer: { type: AutomationRunDto, description: 'The run as it is now' },
    problems: [unknown('run'), OVER],
  })
  async cancel(@CurrentOwner() owner: Owner, @Param() { run_id: id }: RunIdDto): Promise<AutomationRunDto> {
    return toAutomationRunDto(await this.runs.cancel(owner, id));
  }
}

function toAutomationRunDto(run: AutomationRun): AutomationRunDto {
  const { id, status, cost, tasks, startedAt, work } = run;
  const conversationIds = run.conversationIds.map(toHexId);
  return {
    id,
    automation_id: run.automationId,
    status,
    trigger_source: run.triggerSource,
    error_detail: run.errorDetail,
    conversation_id: conversationIds[0] ?? null,
    run_metadata: { conversation_ids: conversationIds, tasks },
    cost,
    timeout_at: startedAt && work.timeout ? new Date(startedAt.getTime() + work.timeout * 1000) : null,
    sandbox_id: null,
    created_at: run.createdAt,
    started_at: startedAt,
    completed_at: run.completedAt,
  };
}
