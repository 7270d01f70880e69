import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { toHexId } from '../../common/identifiers.js';
import { Identifier } from '../../common/validation/text-fields.js';
import {
  type AutomationRun,
  RUN_STATUSES,
  RUN_TRIGGERS,
  type RunStatus,
  type RunTrigger,
} from './automation-run.entity.js';
import type { RunPage } from './automation-runs.service.js';

const RUN_ID = 'b1f4c9d2-6a7e-4d35-8c90-1e2f3a4b5c6d';
const AUTOMATION_ID = '6f1c2b7e-93d4-4c58-a1f0-5e7d8c9b0a12';
const CONVERSATION_ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';
const AT = '2026-11-21T09:30:00.000Z';

export class RunIdDto {
  @Identifier('Id of the run.', { required: true, example: RUN_ID }) run_id: string;
}

@ApiSchema({ name: 'AutomationRunResponse' })
export class AutomationRunDto {
  @ApiProperty({ format: 'uuid', example: RUN_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) automation_id: string;
  @ApiProperty({ enum: RUN_STATUSES, enumName: 'RunStatus', example: 'COMPLETED' }) status: RunStatus;
  @ApiProperty({ enum: RUN_TRIGGERS, example: 'cron' }) trigger_source: RunTrigger;

  @ApiProperty({ type: String, nullable: true, description: 'Why it failed, or was not run.', example: null })
  error_detail: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'The first one.', example: CONVERSATION_ID })
  conversation_id: string | null;

  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'All conversations, and the suggested tasks that they work on.',
    example: { conversation_ids: [CONVERSATION_ID], tasks: null },
  })
  run_metadata: Record<string, unknown>;

  @ApiProperty({ type: Number, nullable: true, description: 'USD, when it is over.', example: 0.42 })
  cost: number | null;

  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: null }) timeout_at:
    string | null;
  @ApiProperty({ type: String, nullable: true, description: 'That of its conversation.', example: null })
  sandbox_id: null;
  @ApiProperty({ format: 'date-time', example: AT }) created_at: string;
  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: AT }) started_at: string | null;
  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: AT })
  completed_at: string | null;
}

@ApiSchema({ name: 'AutomationRunListResponse' })
export class AutomationRunListDto {
  @ApiProperty({ type: [AutomationRunDto] }) runs: AutomationRunDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, example: { COMPLETED: 1 } })
  status_counts: Record<string, number>;
}

export function toAutomationRunDto(run: AutomationRun): AutomationRunDto {
  const conversationIds = run.conversationIds.map(toHexId);
  const { timeout } = run.work;
  return {
    id: run.id,
    automation_id: run.automationId,
    status: run.status,
    trigger_source: run.triggerSource,
    error_detail: run.errorDetail,
    conversation_id: conversationIds[0] ?? null,
    run_metadata: { conversation_ids: conversationIds, tasks: run.tasks },
    cost: run.cost,
    timeout_at:
      timeout === null || run.startedAt === null
        ? null
        : new Date(run.startedAt.getTime() + timeout * 1000).toISOString(),
    sandbox_id: null,
    created_at: run.createdAt.toISOString(),
    started_at: run.startedAt?.toISOString() ?? null,
    completed_at: run.completedAt?.toISOString() ?? null,
  };
}

export function toAutomationRunListDto({ runs, total, statusCounts }: RunPage): AutomationRunListDto {
  return { runs: runs.map(toAutomationRunDto), total, status_counts: statusCounts };
}
