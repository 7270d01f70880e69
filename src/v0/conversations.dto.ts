import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { OrNull, Shown, Time } from '../common/openapi/responses.js';
import { NextPageId, PageQuery } from '../common/pagination/page.dto.js';
import { Choice, Text } from '../common/validation/text-fields.js';
import { PROVIDER_TYPES, type ProviderType } from '../git-providers/git-provider.js';
import type { AppConversationDto } from '../v1/app-conversations/api/dto/conversation.dto.js';
import { CONVERSATION_TRIGGERS } from '../v1/app-conversations/conversation.entity.js';
import type { SandboxStatus } from '../v1/sandboxes/sandbox-status.js';

const ID = '5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f';
const STATUSES = ['STARTING', 'RUNNING', 'STOPPED', 'ARCHIVED', 'ERROR'] as const;
type ConversationInfoStatus = (typeof STATUSES)[number];
const RUNTIME_STATUSES = ['STATUS$READY', 'STATUS$ERROR'] as const;

const STATUS_OF_SANDBOX: Record<SandboxStatus, ConversationInfoStatus> = {
  STARTING: 'STARTING',
  RUNNING: 'RUNNING',
  PAUSED: 'STOPPED',
  ERROR: 'ERROR',
  MISSING: 'ARCHIVED',
};

export class SearchConversationInfosQueryDto extends PageQuery('Conversations on a page.', 20) {
  @Text('Of each page, only those about this repository.', { example: 'acme/checkout' })
  selected_repository?: string;

  @Choice('Of each page, only those that were begun so.', { values: CONVERSATION_TRIGGERS, example: 'gui' })
  conversation_trigger?: string;
}

export class ConversationInfoDto {
  @ApiProperty({ example: ID }) conversation_id: string;
  @ApiProperty({ example: 'Retry card payments' }) title: string;
  @Time('2026-11-21T09:31:00.000Z') last_updated_at: string;
  @Time() created_at: string;
  @ApiProperty({ enum: STATUSES, example: 'RUNNING' }) status: ConversationInfoStatus;

  @ApiProperty({ enum: [...RUNTIME_STATUSES, null], type: String, nullable: true, example: 'STATUS$READY' })
  runtime_status: (typeof RUNTIME_STATUSES)[number] | null;

  @OrNull('acme/checkout') selected_repository: string | null;
  @OrNull('main') selected_branch: string | null;

  @ApiProperty({ enum: [...PROVIDER_TYPES, null], type: String, nullable: true, example: 'github' })
  git_provider: ProviderType | null;

  @OrNull('gui') trigger: string | null;
  @Shown('Always 0: connections are not counted.', 0, { type: 'integer' }) num_connections: number;
  @OrNull(null) url: string | null;
  @OrNull(null) session_api_key: string | null;
  @ApiProperty({ type: [Number], items: { type: 'integer' }, example: [128] }) pr_number: number[];
  @ApiProperty({ enum: ['V1'], example: 'V1' }) conversation_version: 'V1';
}

@ApiSchema({ name: 'ConversationInfoResultSet' })
export class ConversationInfoPageDto {
  @ApiProperty({ type: [ConversationInfoDto] }) results: ConversationInfoDto[];
  @NextPageId() next_page_id: string | null;
}

export class ConversationRuntimeDto {
  @ApiProperty({ description: 'The sandbox.', example: '3kTMd9ZpQ2sVbX7cRfLw1A' }) runtime_id: string;
  @ApiProperty({ example: ID }) session_id: string;
}

export function toConversationInfoDto(conversation: AppConversationDto): ConversationInfoDto {
  const { id, execution_status: execution } = conversation;
  const status = STATUS_OF_SANDBOX[conversation.sandbox_status];
  const hasFailed = execution === 'error' || execution === 'stuck';
  return {
    conversation_id: id,
    title: conversation.title ?? `Conversation ${id.slice(0, 5)}`,
    last_updated_at: conversation.updated_at,
    created_at: conversation.created_at,
    status,
    runtime_status: status === 'RUNNING' ? (hasFailed ? 'STATUS$ERROR' : 'STATUS$READY') : null,
    selected_repository: conversation.selected_repository,
    selected_branch: conversation.selected_branch,
    git_provider: conversation.git_provider,
    trigger: conversation.trigger,
    num_connections: 0,
    url: conversation.conversation_url,
    session_api_key: conversation.session_api_key,
    pr_number: conversation.pr_number,
    conversation_version: 'V1',
  };
}

export function isWanted(
  { selected_repository: repository, trigger }: ConversationInfoDto,
  query: SearchConversationInfosQueryDto,
): boolean {
  return (
    (query.selected_repository === undefined || query.selected_repository === repository) &&
    (query.conversation_trigger === undefined || query.conversation_trigger === trigger)
  );
}
