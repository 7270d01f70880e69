import { Controller, Get, Headers, Param, Post, Query } from '@nestjs/common';
import { ApiHeader, ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented } from '../../common/openapi/api-route.js';
import { idempotencyKey } from '../../v1/idempotency/idempotency.service.js';
import { CurrentOwner, type Owner, unknown } from '../current-owner.js';
import { AutomationIdDto, OffsetQueryDto } from '../definitions/automation.dto.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { newestFirst } from '../owned.repository.js';
import { AutomationRunRepository } from './automation-run.repository.js';
import {
  AutomationRunDto,
  AutomationRunListDto,
  RunIdDto,
  toAutomationRunDto,
} from './automation-runs.dto.js';

const UNKNOWN = unknown('automation');
const TOO_MANY = { status: 429, detail: 'It has had 100 runs within a day (max_runs_per_day).' };
const OVER = documented(409, 'This run is over.', 'The run is over');

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
    @Query() { limit = 50, offset = 0 }: OffsetQueryDto,
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
