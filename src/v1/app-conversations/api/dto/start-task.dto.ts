import { ApiProperty, ApiSchema, IntersectionType } from '@nestjs/swagger';
import { MASK } from '@slipway/common/secret-mask.js';
import { VISIBILITIES, type Visibility } from '../../../../auth/access.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { ANY_OBJECT, OrNull, Shown, ShownOrNull, TEXT_MAP, Time } from '@slipway/api/openapi/responses.js';
import { LookupIds, PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { Choice, Identifier, Instant } from '@slipway/api/validation/field-decorators.js';
import { START_TASK_STATUSES, type StartTaskStatus } from '../../start-task.entity.js';
import { START_TASK_ORDERS, type StartTaskFilter, type StartTaskOrder } from '../../start-task.queries.js';

/** The statuses of OpenHands: its clients expect a step for skills, which are set up with the conversation here. */
const TOLD_STATUSES = START_TASK_STATUSES.flatMap((status) =>
  status === 'STARTING_CONVERSATION' ? ['SETTING_UP_SKILLS', status] : [status],
);

@ApiSchema({ name: 'AppConversationStartRequestEcho' })
class StartRequestEchoDto {
  @OrNull(null) sandbox_id: string | null;
  @OrNull(null) sandbox_spec_id: string | null;
  @OrNull(null) conversation_id: string | null;

  @ApiProperty({
    ...ANY_OBJECT,
    nullable: true,
    example: { role: 'user', content: [{ type: 'text', text: 'Add a test for the parser.' }], run: true },
  })
  initial_message: object | null;

  @OrNull(null) system_message_suffix: string | null;
  @OrNull(null, { type: 'array', items: ANY_OBJECT }) processors: unknown;
  @OrNull(null) llm_model: string | null;
  @OrNull(null) llm_profile: string | null;
  @OrNull(null) agent: string | null;
  @OrNull(null) agent_profile_id: unknown;
  @OrNull('octo/app') selected_repository: string | null;
  @OrNull('main') selected_branch: string | null;
  @ApiProperty({ example: false }) clone_submodules: boolean;
  @ApiProperty({ example: false }) fetch_lfs: boolean;
  @OrNull('github') git_provider: string | null;
  @OrNull(null, ANY_OBJECT) suggested_task: object | null;
  @OrNull(null) title: string | null;
  @OrNull('gui') trigger: string | null;
  @ApiProperty({ type: 'array', items: { type: 'integer' }, example: [] }) pr_number: number[];
  @OrNull(null) parent_conversation_id: string | null;
  @ApiProperty({ example: 'default' }) agent_type: string;
  @ApiProperty({ type: Boolean, nullable: true, example: null }) public: boolean | null;
  @ApiProperty({ enum: VISIBILITIES, enumName: 'Visibility', example: 'private' }) visibility: Visibility;
  @OrNull(null, ANY_OBJECT) observability_metadata: unknown;
  @OrNull(null, { type: [String] }) observability_tags: unknown;
  @OrNull(null) observability_span_name: unknown;
  @OrNull(null, { type: 'array', items: ANY_OBJECT }) plugins: unknown;

  @Shown('Names only; the values are masked.', { DEPLOY_TOKEN: MASK }, { ...TEXT_MAP, nullable: true })
  secrets: Record<string, string> | null;

  @OrNull(null, { type: [String] }) secret_names: string[] | null;
  @ApiProperty({ example: 'write' }) git: string;
  @OrNull('never') fork: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 50 }) clone_depth: number | null;
  @OrNull('blob:none') clone_filter: string | null;
  @OrNull(null, ANY_OBJECT) egress: object | null;
  @OrNull(null, { type: [String] }) repositories_read: string[] | null;
  @ApiProperty({ ...TEXT_MAP, example: {} }) tags: Record<string, string>;
  @ApiProperty({ ...ANY_OBJECT, example: {} }) metadata: Record<string, unknown>;
  @OrNull(null, ANY_OBJECT) result_schema: Record<string, unknown> | null;
  @OrNull(null, ANY_OBJECT) follow: object | null;
}

@ApiSchema({ name: 'AppConversationStartTask' })
export class StartTaskDto {
  @Shown('32 hexadecimal digits.', 'c4b1f0e29d3a4857b6c5d4e3f2a1b0c9') id: string;
  @OrNull('0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f') created_by_user_id: string | null;

  @Shown('In this order; ERROR can follow each but READY.', 'WORKING', {
    enum: TOLD_STATUSES,
    enumName: 'AppConversationStartTaskStatus',
  })
  status: StartTaskStatus;

  @ShownOrNull(
    'What it waits for, why it failed, which sandboxes were paused to make room, and what of the request has no effect.',
    null,
  )
  detail: string | null;

  @ShownOrNull('The conversation, from READY on.', null) app_conversation_id: string | null;
  @ShownOrNull('The sandbox, from WAITING_FOR_SANDBOX on.', null) sandbox_id: string | null;

  @ShownOrNull('Its agent server, from STARTING_CONVERSATION on, while it runs.', null)
  agent_server_url: string | null;

  @ApiProperty({ type: StartRequestEchoDto }) request: StartRequestEchoDto;

  @Shown(
    'Page of the suggested task on its host; absent without one.',
    'https://github.com/octo/app/pull/15',
    {
      required: false,
    },
  )
  task_url?: string;

  @Time() created_at: string;
  @Time() updated_at: string;
}

@ApiSchema({ name: 'AppConversationStartTaskPage' })
export class StartTaskPageDto extends PageOf(StartTaskDto) {}

export class StartTaskFilterQueryDto {
  @Identifier('Only the task of this conversation.', { example: '5d2f8c1e-7a3b-4c9d-8e0f-1a2b3c4d5e6f' })
  conversation_id__eq?: string;

  @Instant('Created at this moment or later.', { example: '2026-11-01T00:00:00Z' }) created_at__gte?: Date;
}

export class SearchStartTasksQueryDto extends IntersectionType(
  StartTaskFilterQueryDto,
  PageQuery('Tasks on a page; one of 4 MiB ends earlier.'),
) {
  @Choice('Order of the list.', { values: START_TASK_ORDERS, default: 'CREATED_AT_DESC' })
  sort_order?: StartTaskOrder;
}

export class StartTaskIdsQueryDto {
  @LookupIds('Id of a start task', 'c4b1f0e29d3a4857b6c5d4e3f2a1b0c9') ids: string[];
}

export function toStartTaskFilter(query: StartTaskFilterQueryDto): StartTaskFilter {
  const { conversation_id__eq: id, created_at__gte: createdFrom } = query;
  return { conversationId: id === undefined ? undefined : (parseHexId(id) ?? undefined), createdFrom };
}
