import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { toHexId } from '../../common/identifiers.js';
import { ANY_OBJECT, Shown, ShownOrNull } from '../../common/openapi/responses.js';
import { Identifier } from '../../common/validation/text-fields.js';
import { AT, AUTOMATION_ID, RUN_ID } from '../definitions/automation.dto.js';
import {
  type AutomationRun,
  RUN_STATUSES,
  RUN_TRIGGERS,
  type RunStatus,
  type RunTrigger,
} from './automation-run.entity.js';

const CONVERSATION_ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';

export class RunIdDto {
  @Identifier('Id of the run.', { required: true, example: RUN_ID }) run_id: string;
}

@ApiSchema({ name: 'AutomationRunResponse' })
export class AutomationRunDto {
  @ApiProperty({ format: 'uuid', example: RUN_ID }) id: string;
  @ApiProperty({ format: 'uuid', example: AUTOMATION_ID }) automation_id: string;
  @ApiProperty({ enum: RUN_STATUSES, enumName: 'RunStatus', example: 'COMPLETED' }) status: RunStatus;
  @ApiProperty({ enum: RUN_TRIGGERS, example: 'cron' }) trigger_source: RunTrigger;

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
export class AutomationRunListDto {
  @ApiProperty({ type: [AutomationRunDto] }) runs: AutomationRunDto[];
  @ApiProperty({ type: 'integer', description: 'Of all pages.', example: 1 }) total: number;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, example: { COMPLETED: 1 } })
  status_counts: Record<string, number>;
}

export function toAutomationRunDto(run: AutomationRun): AutomationRunDto {
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
