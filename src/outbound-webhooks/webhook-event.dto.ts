import { ApiExtraModels, ApiProperty } from '@nestjs/swagger';
import { OrNull, Shown, ShownOrNull, TEXT_MAP } from '../common/openapi/responses.js';
import type { SentWebhook } from '../common/openapi/webhooks.js';
import { TEST_EVENT, type WebhookEventType } from './webhook-event.js';

const CONVERSATION_ID = '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21';
const SANDBOX_ID = '3kTMd9ZpQ2sVbX7cRfLw1A';

function Cost(description: string): PropertyDecorator {
  return Shown(description, 0.42, { type: Number, nullable: true });
}

class ReportedPullRequestDto {
  @ApiProperty({ type: 'integer', example: 17 }) number: number;
  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' }) url: string;
}

class ConversationFailureReportDto {
  @ApiProperty({ example: 'LlmAuthenticationFailed' }) code: string;
  @ApiProperty({ example: "The model's provider answered 401: Incorrect API key provided." }) detail: string;
}

class ConversationReportDto {
  @ApiProperty({ example: CONVERSATION_ID }) conversation_id: string;
  @ApiProperty({ example: SANDBOX_ID }) sandbox_id: string;

  @ApiProperty({
    type: Object,
    required: false,
    nullable: true,
    description: 'With `result_schema`, once there is one; not if it has more than 64 KiB.',
    example: { passed: true },
  })
  result?: unknown;

  @ApiProperty({ type: ConversationFailureReportDto, nullable: true, description: 'Why it failed.' })
  error: ConversationFailureReportDto | null;

  @ApiProperty({ ...TEXT_MAP, example: { team: 'checkout' } }) tags: Record<string, string>;

  @Cost('USD so far.') cost: number | null;

  @OrNull('octo/app') repository: string | null;

  @ApiProperty({ type: ReportedPullRequestDto, nullable: true, description: 'The newest.' })
  pull_request: ReportedPullRequestDto | null;
}

@ApiExtraModels(ConversationReportDto)
class ConversationStatusReportDto extends ConversationReportDto {
  @ApiProperty({ description: 'As in the type.', example: 'finished' }) execution_status: string;
}

class BudgetReportDto extends ConversationReportDto {
  @ApiProperty({ description: 'The share of the budget that is spent.', enum: [0.8, 1] }) threshold: number;
  @ApiProperty({ description: 'USD.', example: 2.5 }) budget: number;
}

class ConversationReadyReportDto extends ConversationReportDto {
  @ApiProperty({ example: 'c4b1f0e29d3a4857b6c5d4e3f2a1b0c9' }) start_task_id: string;
}

class StartFailureReportDto extends ConversationReadyReportDto {
  @OrNull('The repository octo/app could not be cloned.') detail: string | null;
}

class PullRequestReportDto extends ReportedPullRequestDto {
  @ApiProperty({ example: CONVERSATION_ID }) conversation_id: string;
  @ApiProperty({ example: 'octo/app' }) repository: string;
}

class FollowReportDto extends PullRequestReportDto {
  @ApiProperty({ type: 'integer', example: 2 }) round: number;
  @ShownOrNull('Why it ended.', null) reason: string | null;
  @Cost('USD.') cost: number | null;
}

class AutomationRunReportDto {
  @ApiProperty({ format: 'uuid', example: 'b1f4c9d2-6a7e-4d35-8c90-1e2f3a4b5c6d' }) run_id: string;
  @ApiProperty({ format: 'uuid', example: '6f1c2b7e-93d4-4c58-a1f0-5e7d8c9b0a12' }) automation_id: string;
  @ApiProperty({ enum: ['COMPLETED', 'FAILED', 'CANCELLED'], example: 'COMPLETED' }) status: string;
  @Cost('USD.') cost: number | null;
  @OrNull(CONVERSATION_ID) conversation_id: string | null;
  @OrNull(null) error: string | null;
}

class TestReportDto {
  @ApiProperty({ format: 'uuid', example: '5d1f9a1e-0f5b-4a57-8d0e-6c1b2a3f4e5d' }) endpoint_id: string;
}

export const WEBHOOKS: Record<WebhookEventType | typeof TEST_EVENT, SentWebhook> = {
  'conversation.ready': ['A conversation has started', ConversationReadyReportDto],
  'conversation.start_failed': ['A conversation could not be started', StartFailureReportDto],
  'conversation.running': ['The agent works', ConversationStatusReportDto],
  'conversation.paused': ['The agent was paused', ConversationStatusReportDto],
  'conversation.waiting_for_confirmation': [
    'The agent asks whether it may go on',
    ConversationStatusReportDto,
  ],
  'conversation.finished': ['The agent has finished', ConversationStatusReportDto],
  'conversation.error': ['The agent has failed', ConversationStatusReportDto],
  'conversation.stuck': ['The agent repeats itself, and was stopped', ConversationStatusReportDto],
  'pull_request.opened': ['The agent has opened a pull request', PullRequestReportDto],
  'pull_request.round': ['The agent goes on, because of what happened to its pull request', FollowReportDto],
  'pull_request.reached': ['A followed pull request has reached its goal', FollowReportDto],
  'pull_request.gave_up': ['A followed pull request is given up', FollowReportDto],
  'budget.threshold': ['A conversation has used up 80 % or all of its budget', BudgetReportDto],
  'automation.run.finished': ['A run of an automation is over', AutomationRunReportDto],
  [TEST_EVENT]: ['A test that was asked for', TestReportDto],
};
