import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiSchema, IntersectionType } from '@nestjs/swagger';
import {
  CONVERSATION_STATUSES,
  type ConversationFailure,
  type ConversationStatus,
  COST_SOURCES,
  type CostSource,
  type MetricsSnapshot,
  type TokenUsage,
} from '@slipway/agent-protocol/conversation-api.js';
import { ANY_OBJECT, OrNull, Shown, ShownOrNull, TEXT_MAP, Time } from '@slipway/api/openapi/responses.js';
import { VISIBILITIES, type Visibility } from '../../../../auth/access.js';
import { PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { customRule } from '@slipway/api/validation/field.js';
import {
  Choice,
  Flag,
  FreeObject,
  Identifier,
  Instant,
  RepeatedText,
  sentenceRule,
  Text,
  TextMap,
} from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import {
  BranchName,
  ProviderName,
  RepositoryName,
  ShownProvider,
} from '../../../../git-providers/repository-fields.js';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../../sandboxes/sandbox-status.js';
import {
  CONVERSATION_TRIGGERS,
  type ConversationPullRequest,
  titleLengthProblem,
} from '../../conversation.entity.js';
import { SHOWN_STATES, type ShownState } from '../../shown-state.js';
import { type ConversationFilter, OWNERS } from '../../conversation-row.js';
import { FollowStateDto } from '../../followed/follow.dto.js';

const MAX_TAGS = 32;
const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
/** `name:value`. */
const TAG = /^[^:]+:/;
const MAX_TAG_LENGTH = 256;
/** Characters of JSON. */
export const MAX_METADATA_LENGTH = 16_384;

function tagNameProblem(name: string): string | null {
  return TAG_NAME.test(name)
    ? null
    : 'Expected a name of 1 to 63 letters, digits, dots, hyphens and underscores that begins with a letter or digit.';
}

/** Arrives as a `Map`. */
export function Tags(description: string, example: Record<string, string>): PropertyDecorator {
  return TextMap(description, {
    nullable: true,
    example,
    most: MAX_TAGS,
    valueLength: MAX_TAG_LENGTH,
    keySchema: { pattern: TAG_NAME.source },
    keyRule: sentenceRule(tagNameProblem),
  });
}

export function Metadata(description: string): PropertyDecorator {
  const example = { ticket: { id: 4711 } };
  return FreeObject(description, { nullable: true, example, maxLength: MAX_METADATA_LENGTH });
}

/** Tags that a conversation must have, each as `name:value`. */
function TagFilter(): PropertyDecorator {
  const list = RepeatedText('Only those with this tag, as `name:value`; repeat it for more.', {
    most: MAX_TAGS,
    // Name, colon and value.
    form: { pattern: TAG.source, maxLength: 64 + MAX_TAG_LENGTH },
    example: ['team:checkout'],
  });
  const form = customRule('tagForm', (value) =>
    Array.isArray(value) && value.some((text) => typeof text === 'string' && !TAG.test(text))
      ? [{ type: 'value_error', msg: 'Expected a tag such as team:checkout.' }]
      : [],
  );
  return applyDecorators(list, form);
}

/** Tags by name; absent without any. */
function parseTagFilter(given: readonly string[] | undefined): Record<string, string> | undefined {
  return given === undefined || given.length === 0
    ? undefined
    : Object.fromEntries(
        given.map((text) => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]),
      );
}

export class ConversationFilterQueryDto {
  @Text('Part of the title; case does not count.', { example: 'parser' }) title__contains?: string;
  @Instant('Created at this moment or later.', { example: '2026-11-01T00:00:00Z' }) created_at__gte?: Date;
  @Instant('Created before this moment.', { example: '2026-12-01T00:00:00Z' }) created_at__lt?: Date;
  @Instant('Changed at this moment or later.', { example: '2026-11-01T00:00:00Z' }) updated_at__gte?: Date;
  @Instant('Changed before this moment.', { example: '2026-12-01T00:00:00Z' }) updated_at__lt?: Date;
  @Text('Only those in this sandbox.', { example: '3kTMd9ZpQ2sVbX7cRfLw1A' }) sandbox_id__eq?: string;
  @TagFilter() tag?: string[];

  @Choice(
    'Only those in this state: of the agent while its sandbox runs, else of the sandbox; `ended` has none any more.',
    {
      values: SHOWN_STATES,
      example: 'running',
    },
  )
  state__eq?: ShownState;

  @RepositoryName('Only those of this repository.', {}) selected_repository__eq?: string;
  @Choice('Only those of this provider.', { values: PROVIDER_TYPES, example: 'github' })
  git_provider__eq?: ProviderType;

  @Identifier('Only those that this automation has started.', {
    example: '8a1c2d3e-4f50-4a61-9b72-8c93ad04be15',
  })
  automation_id__eq?: string;

  @Choice(
    'Only your own (`me`), or those that others share with you (`others`); both by default. In your personal organization (`X-Org-Id`) only your own.',
    { values: OWNERS, example: 'others' },
  )
  owner__eq?: ConversationFilter['owner'];
}

export class SearchConversationsQueryDto extends IntersectionType(
  ConversationFilterQueryDto,
  PageQuery('Conversations on a page; one of 4 MiB ends earlier.'),
) {
  @Flag('Also those that are part of another one.', { default: false, example: true })
  include_sub_conversations?: boolean;
}

export class ListConversationsQueryDto extends SearchConversationsQueryDto {
  @RepeatedText('Id of a conversation; repeat it for more, at most 100. Then nothing else counts.', {
    most: 100,
    example: ['5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f'],
  })
  ids?: string[];
}

export function toConversationFilter(
  query: ConversationFilterQueryDto,
  withSubConversations: boolean,
): ConversationFilter {
  return {
    titleContains: query.title__contains,
    createdFrom: query.created_at__gte,
    createdBefore: query.created_at__lt,
    updatedFrom: query.updated_at__gte,
    updatedBefore: query.updated_at__lt,
    sandboxId: query.sandbox_id__eq,
    tags: parseTagFilter(query.tag),
    state: query.state__eq,
    repository: query.selected_repository__eq,
    provider: query.git_provider__eq,
    automationId: query.automation_id__eq,
    owner: query.owner__eq,
    withSubConversations,
  };
}

export function VisibilityField(): PropertyDecorator {
  return Choice(
    'Who reads it besides you and administrators: `organization` lets all users of the installation read the conversation, its events and its kept changes. Only you reach its sandbox.',
    { values: VISIBILITIES, enumName: 'Visibility', example: 'organization' },
  );
}

/** Members that are left out stay, null clears. */
@ApiSchema({ name: 'AppConversationUpdateRequest' })
export class UpdateConversationDto {
  @Text('Title; null: made from what is said, again.', {
    nullable: true,
    trim: true,
    example: 'Parser tests',
    form: { minLength: 1, maxLength: 200 },
    rule: (title) => (title === '' ? 'Expected a title that is not blank.' : titleLengthProblem(title)),
  })
  title?: string | null;

  @Flag('Kept and shown; it shares nothing.', { nullable: true, example: false }) public?: boolean | null;
  @VisibilityField() visibility?: Visibility;

  @RepositoryName('Repository it is about.', { nullable: true }) selected_repository?: string | null;
  @BranchName('Branch it is about.', { nullable: true }) selected_branch?: string | null;
  @ProviderName('Where the repository is.', { nullable: true }) git_provider?: ProviderType | null;

  @Tags('All tags from now on; null: none.', { team: 'checkout', state: 'reviewed' })
  tags?: ReadonlyMap<string, string> | null;

  @Metadata('All of what you keep with the conversation; null: nothing. At most 16 KiB as JSON.')
  metadata?: Record<string, unknown> | null;
}

class LaunchedAgentProfileDto {
  @ApiProperty({ format: 'uuid', example: '8a1c2d3e-4f50-4a61-9b72-8c93ad04be15' }) agent_profile_id: string;
  @ApiProperty({ type: 'integer', example: 1 }) revision: number;
}

class TokenUsageDto implements TokenUsage {
  @ApiProperty({ example: 'provider/model-1' }) model: string;
  @ApiProperty({ type: 'integer', example: 18_200 }) prompt_tokens: number;
  @ApiProperty({ type: 'integer', example: 940 }) completion_tokens: number;
  @ApiProperty({ type: 'integer', example: 12_000 }) cache_read_tokens: number;
  @ApiProperty({ type: 'integer', example: 0 }) cache_write_tokens: number;
  @ApiProperty({ type: 'integer', example: 0 }) reasoning_tokens: number;
  @Shown('Of the model; 0 when it is not known.', 160_000, { type: 'integer' }) context_window: number;
  @ApiProperty({ type: 'integer', description: 'Of the last call.', example: 5_100 }) per_turn_token: number;
  @ApiProperty({ example: '' }) response_id: string;
}

@ApiSchema({ name: 'MetricsSnapshot' })
class MetricsDto implements MetricsSnapshot {
  @ApiProperty({ example: 'provider/model-1' }) model_name: string;
  @ApiProperty({ description: 'USD.', example: 0.42 }) accumulated_cost: number;
  @Shown('Whose figure the cost is: the least certain of those that it is made of.', 'catalogue', {
    enum: COST_SOURCES,
    required: false,
  })
  cost_source?: CostSource;
  @Shown('USD.', 5, { type: Number, nullable: true }) max_budget_per_task: number | null;
  @ApiProperty({ type: TokenUsageDto, nullable: true }) accumulated_token_usage: TokenUsageDto | null;
}

class ConversationFailureDto implements ConversationFailure {
  @ApiProperty({ maxLength: 100, example: 'LlmAuthenticationFailed' }) code: string;

  @ApiProperty({
    maxLength: 2_000,
    example: "The model's provider answered 401: Incorrect API key provided.",
  })
  detail: string;
}

class ConversationPullRequestDto implements ConversationPullRequest {
  @ApiProperty({ type: 'integer', example: 17 }) number: number;
  @ApiProperty({ format: 'uri', example: 'https://github.com/octo/app/pull/17' }) url: string;
  @ApiProperty({ example: 'Read empty files without a crash' }) title: string;
  @ApiProperty({ example: 'fix/parser' }) source_branch: string;
}

export class AppConversationDto {
  @Shown('32 hexadecimal digits.', '5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f') id: string;
  @OrNull('0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f') created_by_user_id: string | null;
  @ShownOrNull('Its owner.', 'ada@example.com') created_by_email: string | null;

  @Shown('Who reads it besides its owner and administrators.', 'private', {
    enum: VISIBILITIES,
    enumName: 'Visibility',
  })
  visibility: Visibility;

  @Shown('It stays when the sandbox is gone.', '3kTMd9ZpQ2sVbX7cRfLw1A') sandbox_id: string;
  @OrNull('octo/app') selected_repository: string | null;
  @OrNull('main') selected_branch: string | null;
  @ShownProvider({ nullable: true }) git_provider: ProviderType | null;
  @OrNull('Parser tests') title: string | null;

  @ApiProperty({
    enum: CONVERSATION_TRIGGERS,
    enumName: 'ConversationTrigger',
    nullable: true,
    example: 'gui',
  })
  trigger: string | null;

  @Shown('Pull requests it is about or has opened.', [7], { type: 'array', items: { type: 'integer' } })
  pr_number: number[];

  @OrNull('provider/model-1') llm_model: string | null;
  @ApiProperty({ example: 'openhands' }) agent_kind: string;
  @ApiProperty({ type: MetricsDto, nullable: true }) metrics: MetricsDto | null;
  @OrNull(null) parent_conversation_id: string | null;

  @Shown('Only where conversations are asked for by id.', [], { type: [String] })
  sub_conversation_ids: string[];

  @ApiProperty({ type: Boolean, nullable: true, example: null }) public: boolean | null;
  @ApiProperty({ ...TEXT_MAP, example: {} }) tags: Record<string, string>;
  @ApiProperty({ ...ANY_OBJECT, example: {} }) metadata: Record<string, unknown>;

  @ShownOrNull(
    'Branch that it works on: the one that was made for it, or that its last pull request is from.',
    'openhands-workspace-5d2f8c1e',
  )
  branch: string | null;

  @ApiProperty({ type: [ConversationPullRequestDto], description: 'Those that its agent has opened.' })
  pull_requests: ConversationPullRequestDto[];

  @Shown(
    'What the agent has finished with, where `result_schema` asked for it; null until then.',
    { passed: true },
    { nullable: true },
  )
  result: unknown;

  @Shown('How it follows its pull request; null unless `follow` asked for it.', null, {
    type: FollowStateDto,
    nullable: true,
  })
  follow: FollowStateDto | null;

  @Time() created_at: string;
  @Time('2026-11-21T09:42:10.512Z') updated_at: string;

  @Shown('MISSING: the sandbox or its files are gone; the conversation can be read only.', 'RUNNING', {
    enum: SANDBOX_STATUSES,
    enumName: 'SandboxStatus',
  })
  sandbox_status: SandboxStatus;

  @Shown('What the agent does; null unless the sandbox is RUNNING.', 'running', {
    enum: CONVERSATION_STATUSES,
    enumName: 'ConversationExecutionStatus',
    nullable: true,
  })
  execution_status: ConversationStatus | null;

  @Shown('Why it ended in `error` or `stuck`, also while its sandbox is paused; null otherwise.', null, {
    type: ConversationFailureDto,
    nullable: true,
  })
  error: ConversationFailureDto | null;

  @ShownOrNull(
    'The conversation at its agent server; null unless the sandbox is RUNNING, and yours.',
    'http://localhost:3000/api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/agent-server/api/conversations/5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f',
  )
  conversation_url: string | null;

  @ShownOrNull(
    'What the agent server wants in X-Session-API-Key; null unless the sandbox is RUNNING, and yours, and the key of the request has the scope `run`.',
    'sandbox-key-example',
  )
  session_api_key: string | null;

  @ShownOrNull('Always null here.', null) acp_server: string | null;

  @Shown('Always null here.', null, { type: LaunchedAgentProfileDto, nullable: true })
  launched_agent_profile: LaunchedAgentProfileDto | null;
}

export class AppConversationPageDto extends PageOf(AppConversationDto) {}
