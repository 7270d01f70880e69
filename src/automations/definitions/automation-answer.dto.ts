import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { type Automation, AUTOMATION_STATES, type AutomationState } from './automation.entity.js';

const ID = '6f1c2b7e-93d4-4c58-a1f0-5e7d8c9b0a12';
const USER_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';
const AT = '2026-11-21T09:30:00.000Z';
const NOT_OFFERED = {
  type: String,
  nullable: true,
  description: 'Not offered here.',
  example: null,
} as const;

@ApiSchema({ name: 'AutomationResponse' })
export class AutomationDto {
  @ApiProperty({ format: 'uuid', example: ID }) id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ example: 'Morning triage' }) name: string;
  @ApiProperty({ type: String, nullable: true, example: null }) description: string | null;
  @ApiProperty({ type: String, nullable: true, example: 'Fix what fails.' }) prompt: string | null;
  @ApiProperty({ type: String, nullable: true, example: 'fast' }) model: string | null;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'The other members of the request: `repos`, `tasks`, `concurrency`, …',
    example: { preset: 'prompt', repos: [], max_runs_per_day: 100 },
  })
  preset_metadata: Record<string, unknown>;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    example: { type: 'cron', schedule: '0 9 * * 1-5', timezone: 'UTC' },
  })
  trigger: object;

  @ApiProperty({ type: [String], example: ['triage'] }) tags: string[];
  @ApiProperty({ type: 'integer', nullable: true, example: 3600 }) timeout: number | null;
  @ApiProperty({ type: Boolean, nullable: true, example: null }) keep_alive: boolean | null;
  @ApiProperty({ enum: AUTOMATION_STATES, enumName: 'AutomationState', example: 'ACTIVE' })
  state: AutomationState;
  @ApiProperty({ description: 'Older name of `state`.', example: true }) enabled: boolean;

  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: AT }) next_run_at: string | null;
  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: null })
  last_triggered_at: string | null;
  @ApiProperty({ format: 'date-time', example: AT }) created_at: string;
  @ApiProperty({ format: 'date-time', example: AT }) updated_at: string;

  @ApiProperty({ description: 'Not offered here.', example: '' }) tarball_path: string;
  @ApiProperty({ description: 'Not offered here.', example: '' }) entrypoint: string;
  @ApiProperty(NOT_OFFERED) setup_script_path: null;
  @ApiProperty(NOT_OFFERED) plugin_spec: null;
  @ApiProperty(NOT_OFFERED) disabled_reason: null;
  @ApiProperty(NOT_OFFERED) disabled_at: null;
}

@ApiSchema({ name: 'AutomationListResponse' })
export class AutomationListDto {
  @ApiProperty({ type: [AutomationDto] }) automations: AutomationDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;
}

export function toAutomationDto(automation: Automation): AutomationDto {
  const { prompt, model, timeout, keep_alive, ...work } = automation.work;
  const { maxRunsPerDay, limit, whenBusy } = automation.limits;
  return {
    id: automation.id,
    user_id: automation.userId,
    org_id: automation.orgId,
    name: automation.name,
    description: automation.description,
    prompt,
    model,
    preset_metadata: {
      preset: 'prompt',
      ...work,
      max_runs_per_day: maxRunsPerDay,
      concurrency: { limit, when_busy: whenBusy },
    },
    trigger: automation.trigger,
    tags: automation.tags,
    timeout,
    keep_alive,
    state: automation.state,
    enabled: automation.state === 'ACTIVE',
    next_run_at: automation.nextRunAt?.toISOString() ?? null,
    last_triggered_at: automation.lastTriggeredAt?.toISOString() ?? null,
    created_at: automation.createdAt.toISOString(),
    updated_at: automation.updatedAt.toISOString(),
    tarball_path: '',
    entrypoint: '',
    setup_script_path: null,
    plugin_spec: null,
    disabled_reason: null,
    disabled_at: null,
  };
}
