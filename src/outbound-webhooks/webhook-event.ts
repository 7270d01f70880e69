import { ApiExtraModels, ApiProperty } from '@nestjs/swagger';
import { OrNull, Shown, ShownOrNull, TEXT_MAP } from '@slipway/api/openapi/responses.js';
import type { SentWebhook } from '@slipway/api/openapi/webhooks.js';

export const WEBHOOK_EVENT_TYPES = [
  'conversation.ready',
  'conversation.start_failed',
  'conversation.running',
  'conversation.paused',
  'conversation.waiting_for_confirmation',
  'conversation.finished',
  'conversation.error',
  'conversation.stuck',
  'pull_request.opened',
  'pull_request.round',
  'pull_request.reached',
  'pull_request.gave_up',
  'budget.threshold',
  'automation.run.finished',
] as const;

export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** Includes future types. */
export const EVERY_EVENT = '*';
/** Sent by `POST …/test`, even to endpoints that do not subscribe to it. */
export const TEST_EVENT = 'test';

export interface WebhookEvent {
  type: WebhookEventType;
  /** Ids, facts and why a conversation failed; never a secret. */
  data: Record<string, unknown>;
  /** The conversation's title, for notifications; webhooks do not have it. */
  title?: string | null;
}

/** What events of a conversation say about it, null where there is nothing to say. */
export interface ConversationReport {
  conversation_id: string;
  sandbox_id: string;
  /** Only where a result was asked for. */
  result: unknown;
  error: { code: string; detail: string } | null;
  tags: Record<string, string>;
  /** USD. */
  cost: number | null;
  repository: string | null;
  /** The newest. */
  pull_request: { number: number; url: string } | null;
}

/** The event for a conversation's new status; null for a status without one. */
export function statusEvent(
  status: string,
  report: ConversationReport,
  title: string | null = null,
): WebhookEvent | null {
  const type = WEBHOOK_EVENT_TYPES.find((known) => known === `conversation.${status}`);
  return type === undefined ? null : { type, data: { ...report, execution_status: status }, title };
}

/** Shares of a budget, each of which is told once. */
const BUDGET_THRESHOLDS = [1, 0.8];

export interface Spending {
  /** USD. */
  cost: number;
  /** USD; null: unlimited. */
  budget: number | null;
}

/** The event for a budget of which more has been spent; null unless that passed a threshold. */
export function budgetEvent(before: Spending, after: Spending, report: object): WebhookEvent | null {
  const threshold = BUDGET_THRESHOLDS.find((share) => !hasReached(before, share) && hasReached(after, share));
  return threshold === undefined
    ? null
    : { type: 'budget.threshold', data: { ...report, threshold, budget: after.budget } };
}

function hasReached({ cost, budget }: Spending, share: number): boolean {
  return budget !== null && cost >= budget * share;
}

/** The body of a delivery, the same bytes in every attempt. */
export function deliveryBody(id: string, { type, data }: { type: string; data: object }, at: Date): string {
  return JSON.stringify({ id, type, timestamp: at.toISOString(), data });
}

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
