import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { ANY_OBJECT, Shown, ShownOrNull, USER_ID } from '../../common/openapi/responses.js';
import { AT, AUTOMATION_ID } from './automation.dto.js';
import { type Automation, AUTOMATION_STATES, type AutomationState } from './automation.entity.js';

const NOT_OFFERED = 'Not offered here.';

@ApiSchema({ name: 'AutomationResponse' })
export class AutomationDto {
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ example: 'Morning triage' }) name: string;
  @ApiProperty({ type: String, nullable: true, example: null }) description: string | null;
  @ApiProperty({ type: String, nullable: true, example: 'Fix what fails.' }) prompt: string | null;
  @ApiProperty({ type: String, nullable: true, example: 'fast' }) model: string | null;

  @Shown(
    'The other members of the request: `repos`, `tasks`, `concurrency`, …',
    { preset: 'prompt', repos: [], max_runs_per_day: 100 },
    ANY_OBJECT,
  )
  preset_metadata: Record<string, unknown>;

  @ApiProperty({ ...ANY_OBJECT, example: { type: 'cron', schedule: '0 9 * * 1-5', timezone: 'UTC' } })
  trigger: object;

  @ApiProperty({ type: [String], example: ['triage'] }) tags: string[];
  @ApiProperty({ type: 'integer', nullable: true, example: 3600 }) timeout: number | null;
  @ApiProperty({ type: Boolean, nullable: true, example: null }) keep_alive: boolean | null;
  @ApiProperty({ enum: AUTOMATION_STATES, enumName: 'AutomationState', example: 'ACTIVE' })
  state: AutomationState;
  @Shown('Older name of `state`.', true) enabled: boolean;

  @ApiProperty({ type: Date, nullable: true, example: AT }) next_run_at: Date | null;
  @ApiProperty({ type: Date, nullable: true, example: null }) last_triggered_at: Date | null;
  @ApiProperty({ example: AT }) created_at: Date;
  @ApiProperty({ example: AT }) updated_at: Date;

  @Shown(NOT_OFFERED, '') tarball_path: string;
  @Shown(NOT_OFFERED, '') entrypoint: string;
  @ShownOrNull(NOT_OFFERED, null) setup_script_path: null;
  @ShownOrNull(NOT_OFFERED, null) plugin_spec: null;
  @ShownOrNull(NOT_OFFERED, null) disabled_reason: null;
  @ShownOrNull(NOT_OFFERED, null) disabled_at: null;
}

@ApiSchema({ name: 'AutomationListResponse' })
export class AutomationListDto {
  @ApiProperty({ type: [AutomationDto] }) automations: AutomationDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;
}

export function toAutomationDto(automation: Automation): AutomationDto {
  const { id, name, description, trigger, tags, state } = automation;
  const { prompt, model, timeout, keep_alive, ...work } = automation.work;
  const { maxRunsPerDay, limit, whenBusy } = automation.limits;
  return {
    id,
    user_id: automation.userId,
    org_id: automation.orgId,
    name,
    description,
    prompt,
    model,
    preset_metadata: {
      preset: 'prompt',
      ...work,
      max_runs_per_day: maxRunsPerDay,
      concurrency: { limit, when_busy: whenBusy },
    },
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
    setup_script_path: null,
    plugin_spec: null,
    disabled_reason: null,
    disabled_at: null,
  };
}
