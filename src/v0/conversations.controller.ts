import { Body, Controller, Delete, Get, Param, Patch, Query } from '@nestjs/common';
import { ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser, UserId } from '../auth/auth.decorators.js';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown, Time } from '@slipway/api/openapi/responses.js';
import { NextPageId, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { Choice, Text } from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import { ConversationPresenter } from '../v1/app-conversations/api/conversation.presenter.js';
import {
  type AppConversationDto,
  UpdateConversationDto,
} from '../v1/app-conversations/api/dto/conversation.dto.js';
import { CONVERSATION_TRIGGERS } from '../v1/app-conversations/conversation.entity.js';
import { ConversationQueries } from '../v1/app-conversations/conversation.queries.js';
import { ConversationsService } from '../v1/app-conversations/conversations.service.js';
import { ConversationIdDto, UNKNOWN_CONVERSATION } from '../v1/events/events.dto.js';
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

class SearchConversationInfosQueryDto extends PageQuery('Conversations on a page.', 20) {
  @Text('Of each page, only those about this repository.', { example: 'acme/checkout' })
  selected_repository?: string;

  @Choice('Of each page, only those that were begun so.', { values: CONVERSATION_TRIGGERS, example: 'gui' })
  conversation_trigger?: string;
}

class ConversationInfoDto {
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
class ConversationInfoPageDto {
  @ApiProperty({ type: [ConversationInfoDto] }) results: ConversationInfoDto[];
  @NextPageId() next_page_id: string | null;
}

class ConversationRuntimeDto {
  @ApiProperty({ description: 'The sandbox.', example: '3kTMd9ZpQ2sVbX7cRfLw1A' }) runtime_id: string;
  @ApiProperty({ example: ID }) session_id: string;
}

function toConversationInfoDto(conversation: AppConversationDto): ConversationInfoDto {
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

function isWanted(
  { selected_repository: repository, trigger }: ConversationInfoDto,
  query: SearchConversationInfosQueryDto,
): boolean {
  return (
    (query.selected_repository === undefined || query.selected_repository === repository) &&
    (query.conversation_trigger === undefined || query.conversation_trigger === trigger)
  );
}

/** V1's conversations in the format of the older web application. */
@ApiTags('Conversations')
@Controller('api/conversations')
export class ConversationInfosController {
  constructor(
    private readonly queries: ConversationQueries,
    private readonly conversations: ConversationsService,
    private readonly presenter: ConversationPresenter,
  ) {}

  @Get()
  @ApiRoute('search_conversations_', 'Conversations, as the older web application lists them', {
    description: 'The newest first; the same as GET /api/v1/app-conversations/search shows of your own.',
    answer: { type: ConversationInfoPageDto, description: 'A page of conversations' },
  })
  async search(
    @CurrentUser() user: AuthUser,
    @Query() query: SearchConversationInfosQueryDto,
  ): Promise<ConversationInfoPageDto> {
    const { items, nextPageId } = await this.queries.search(
      user,
      { owner: 'me', withSubConversations: false },
      { limit: query.limit, pageId: query.page_id },
    );
    const infos = items.map((row) => toConversationInfoDto(this.presenter.conversation(row)));
    return { results: infos.filter((info) => isWanted(info, query)), next_page_id: nextPageId };
  }

  @Get(':id')
  @ApiRoute(
    'get_conversation_api_conversations__conversation_id__get',
    'One conversation, as the older web application shows it',
    {
      answer: { type: ConversationInfoDto, description: 'The conversation' },
      problems: [UNKNOWN_CONVERSATION],
    },
  )
  async get(@UserId() userId: string, @Param() { id }: ConversationIdDto): Promise<ConversationInfoDto> {
    return toConversationInfoDto(this.presenter.conversation(await this.queries.get(userId, id)));
  }

  @Get(':id/config')
  @ApiRoute(
    'get_remote_runtime_config_api_conversations__conversation_id__config_get',
    'Where a conversation runs',
    {
      answer: { type: ConversationRuntimeDto, description: 'Its sandbox' },
      problems: [UNKNOWN_CONVERSATION],
    },
  )
  async config(
    @UserId() userId: string,
    @Param() { id }: ConversationIdDto,
  ): Promise<ConversationRuntimeDto> {
    const { id: session_id, sandbox_id: runtime_id } = this.presenter.conversation(
      await this.queries.get(userId, id),
    );
    return { runtime_id, session_id };
  }

  @Patch(':id')
  @ApiRoute('update_conversation_api_conversations__conversation_id__patch', 'Rename a conversation', {
    description: 'Takes what PATCH /api/v1/app-conversations/{id} takes.',
    answer: { schema: { type: 'boolean' }, description: 'Renamed', example: true },
    problems: [UNKNOWN_CONVERSATION],
    invalid: badInput('body.title', 'Expected a title that is not blank.'),
  })
  async rename(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationIdDto,
    @Body() body: UpdateConversationDto,
  ): Promise<boolean> {
    await this.conversations.update(user, id, body);
    return true;
  }

  @Delete(':id')
  @ApiRoute('delete_conversation_api_conversations__conversation_id__delete', 'Remove a conversation', {
    answer: { schema: { type: 'boolean' }, description: 'Removed', example: true },
    problems: [UNKNOWN_CONVERSATION],
  })
  async remove(@UserId() userId: string, @Param() { id }: ConversationIdDto): Promise<boolean> {
    await this.conversations.remove(userId, id);
    return true;
  }
}
