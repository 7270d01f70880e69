import { ApiProperty, PickType } from '@nestjs/swagger';
import { CONVERSATION_STATUSES, type ConversationStatus } from '@slipway/agent-protocol/conversation-api.js';
import { OrNull, Shown, USER_ID } from '@slipway/api/openapi/responses.js';
import { Choice, Flag, Identifier, Integer, Text } from '@slipway/api/validation/field-decorators.js';
import { OrganizationIdDto } from '../../../../organizations/organizations.dto.js';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../../sandboxes/sandbox-status.js';
import {
  CONVERSATION_ORDERS,
  DIRECTIONS,
  type OrganizationSearch,
  type OrganizationStats,
  TIME_WINDOWS,
} from '../../organization-conversation.queries.js';
import { AppConversationDto } from './conversation.dto.js';

const isStatus = (text: string): text is ConversationStatus =>
  (CONVERSATION_STATUSES as readonly string[]).includes(text);
const WINDOWS = ['all', '7d', '30d', '90d'] as const satisfies (keyof typeof TIME_WINDOWS)[];

export class OrganizationConversationIdDto extends OrganizationIdDto {
  @Identifier('Id of the conversation.', { required: true, example: '5d2f8c1e-7a3b-4c9d-8e0f-1a2b3c4d5e6f' })
  conversation_id: string;
}

const STATUS = CONVERSATION_STATUSES.join('|');
const STATUSES_FORM = `^(?:${STATUS})(?:,(?:${STATUS}))*$`;

export class OrganizationConversationsQueryDto {
  @Text('Part of the title or of the address of the owner, or the id of the sandbox.', {
    example: 'parser',
    maxLength: 200,
  })
  search?: string;

  @Choice('What counts.', { values: CONVERSATION_ORDERS, default: 'updated_at', example: 'updated_at' })
  sort_by?: OrganizationSearch['orderBy'];

  @Choice('Which comes first.', { values: DIRECTIONS, default: 'desc', example: 'desc' })
  sort_order?: OrganizationSearch['direction'];

  @Text('What the agent does, of sandboxes that run: one or more, with commas.', {
    example: 'running,paused',
    form: { pattern: STATUSES_FORM },
    rule: (text) =>
      text.split(',').every(isStatus)
        ? null
        : `Expected some of ${CONVERSATION_STATUSES.join(', ')}, with commas.`,
  })
  execution_status?: string;

  @Choice('Only those whose sandbox has this status.', { values: SANDBOX_STATUSES, example: 'RUNNING' })
  sandbox_status?: SandboxStatus;

  @Choice('Only those that changed in these days.', { values: WINDOWS, default: 'all', example: '30d' })
  time_window?: (typeof WINDOWS)[number];

  @Integer('Page, from 1 on.', { minimum: 1, maximum: 100_000, default: 1 }) page = 1;
  @Integer('Conversations on a page; one of 4 MiB ends earlier.', { minimum: 1, maximum: 100, default: 20 })
  per_page = 20;

  @Flag('Also those that are part of another one.', { default: false, example: true })
  include_sub_conversations?: boolean;
}

export function toOrganizationSearch(
  query: OrganizationConversationsQueryDto,
  owners: readonly string[],
): OrganizationSearch {
  const { page, per_page: limit, execution_status: statuses } = query;
  return {
    text: query.search || null,
    owners,
    statuses: statuses === undefined ? null : statuses.split(',').filter(isStatus),
    sandboxStatus: query.sandbox_status ?? null,
    changedWithinDays: TIME_WINDOWS[query.time_window ?? 'all'],
    withSubConversations: query.include_sub_conversations ?? false,
    orderBy: query.sort_by ?? 'updated_at',
    direction: query.sort_order ?? 'desc',
    offset: (page - 1) * limit,
    limit,
  };
}

/** Of the peer; what opens the sandbox is not among it. */
const SHOWN = [
  'id',
  'title',
  'llm_model',
  'agent_kind',
  'created_at',
  'updated_at',
  'sandbox_id',
  'sandbox_status',
  'execution_status',
  'selected_repository',
  'selected_branch',
  'git_provider',
  'trigger',
  'pr_number',
  'tags',
  'visibility',
] as const;

export class OrganizationConversationDto extends PickType(AppConversationDto, SHOWN) {
  @ApiProperty({ format: 'uuid', example: USER_ID }) user_id: string;
  @OrNull('ada@example.com') user_email: string | null;
  @Shown('USD.', 0.42) accumulated_cost: number;
  @ApiProperty({ type: 'integer', example: 18_200 }) prompt_tokens: number;
  @ApiProperty({ type: 'integer', example: 940 }) completion_tokens: number;
  @ApiProperty({ type: 'integer', example: 19_140 }) total_tokens: number;
  @ApiProperty({ type: 'integer', example: 12_000 }) cache_read_tokens: number;
  @ApiProperty({ type: 'integer', example: 0 }) cache_write_tokens: number;
}

export class OrganizationConversationPageDto {
  @ApiProperty({ type: [OrganizationConversationDto] }) items: OrganizationConversationDto[];
  @ApiProperty({ type: 'integer', example: 1 }) total_items: number;
  @ApiProperty({ type: 'integer', example: 1 }) page: number;
  @ApiProperty({ type: 'integer', example: 20 }) per_page: number;
  @ApiProperty({ type: 'integer', example: 1 }) total_pages: number;
}

export class OrganizationStatsDto implements OrganizationStats {
  @Shown('Agents that work now.', 2, { type: 'integer' }) active_conversations: number;
  @Shown('Sandboxes with conversations that run now.', 3, { type: 'integer' }) running_runtimes: number;
  @ApiProperty({ type: 'integer', example: 5 }) completed_24h: number;
  @ApiProperty({ type: 'integer', example: 17 }) completed_7d: number;
  @ApiProperty({ type: 'integer', example: 60 }) completed_30d: number;
  @Shown('USD, of conversations that are kept.', 12.5) total_cost: number;
  @ApiProperty({ type: 'integer', example: 918_200 }) total_prompt_tokens: number;
  @ApiProperty({ type: 'integer', example: 40_940 }) total_completion_tokens: number;
  @ApiProperty({ type: 'integer', example: 959_140 }) total_tokens: number;
}

/** Picks what lists of an organization show. */
export function toOrganizationConversationDto(
  shown: AppConversationDto,
  userId: string,
): OrganizationConversationDto {
  const usage = shown.metrics?.accumulated_token_usage ?? null;
  const [prompt, completion] = [usage?.prompt_tokens ?? 0, usage?.completion_tokens ?? 0];
  const picked = Object.fromEntries(SHOWN.map((name) => [name, shown[name]]));
  return {
    ...(picked as Pick<AppConversationDto, (typeof SHOWN)[number]>),
    user_id: userId,
    user_email: shown.created_by_email,
    accumulated_cost: shown.metrics?.accumulated_cost ?? 0,
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cache_read_tokens: usage?.cache_read_tokens ?? 0,
    cache_write_tokens: usage?.cache_write_tokens ?? 0,
  };
}
