import { ApiSchema } from '@nestjs/swagger';
import { GIT_MODES, type GitMode } from '@slipway/agent-protocol/git.js';
import type { CloneFilter } from '@slipway/common/clone-part.js';
import type { Visibility } from '../../../../auth/access.js';
import { MAX_READABLE, MAX_READABLE_LENGTH } from '@slipway/egress-rules/readable-repositories.js';
import { MAX_WRITTEN_RULES } from '@slipway/egress-rules/egress-rules.js';
import { field, listOf } from '@slipway/api/validation/field.js';
import {
  Choice,
  Flag,
  FreeObject,
  Identifier,
  Integer,
  integer,
  MAX_SECRET,
  Nested,
  NestedList,
  sentenceRule,
  Text,
  TextList,
  TextMap,
} from '@slipway/api/validation/field-decorators.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { BranchName, ProviderName, RepositoryName } from '../../../../git-providers/repository-fields.js';
import { SettingMember } from '../../../../settings/flat/settings.dto.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../../../../settings/secrets/secrets.dto.js';
import { TASK_TYPES, type TaskType } from '../../../../suggested-tasks/collect-candidates.js';
import {
  CONVERSATION_TRIGGERS,
  type ConversationTrigger,
  titleLengthProblem,
} from '../../conversation.entity.js';
import { type FollowDto, FollowField } from '../../followed/follow.dto.js';
import { FORK_POLICIES, type ForkPolicy } from '../../work-places/work-place.js';
import type { SuggestedTaskDto } from '../../../../suggested-tasks/suggested-tasks.dto.js';
import { InitialMessageDto, MAX_MESSAGE_TEXT } from './conversation-actions.dto.js';
import { MAX_METADATA_LENGTH, Metadata, Tags, VisibilityField } from './conversation.dto.js';

/** Characters of JSON. */
const MAX_SCHEMA_LENGTH = 32_768;

@ApiSchema({ name: 'EventCallbackProcessor' })
class ProcessorDto {
  @Text('`SetTitleCallbackProcessor` is what is done anyway; others have no effect, and `detail` says so.', {
    required: true,
    example: 'SetTitleCallbackProcessor',
  })
  kind: string;
}

/** Accepted without an effect: the service has no plugins. */
@ApiSchema({ name: 'PluginSpec' })
class PluginDto {
  @Text('Where it comes from.', { required: true, example: 'github:octo/plugins' }) source: string;
  @Text('Branch, tag or commit.', { nullable: true, example: 'main' }) ref?: string | null;
  @Text('Folder in the repository.', { nullable: true, example: 'plugins/lint' }) repo_path?: string | null;
}

const MAX_TASK_TITLE_LENGTH = 1000;

/** A task as `GET /api/user/suggested-tasks` returned it. */
class SuggestedTaskInputDto implements SuggestedTaskDto {
  @ProviderName('Where the repository is.', { required: true }) git_provider: ProviderType;

  @Choice('What to do.', {
    required: true,
    values: TASK_TYPES,
    enumName: 'TaskType',
    example: 'FAILING_CHECKS',
  })
  task_type: TaskType;

  @RepositoryName('Full name of the repository.', { required: true, example: 'acme/checkout' }) repo: string;

  @Integer('Number of the issue, pull or merge request; 0 for CREATE_MICROAGENT.', {
    required: true,
    minimum: 0,
    example: 128,
  })
  issue_number: number;

  @Text('Title as its author wrote it.', {
    required: true,
    example: 'Retry card payments',
    maxLength: MAX_TASK_TITLE_LENGTH,
  })
  title: string;
}

const NO_EFFECT = 'Taken, but without effect here; `detail` of the start task says so.';

function TextOrNull(description: string, example: string, maxLength?: number): PropertyDecorator {
  return Text(description, { nullable: true, example, ...(maxLength && { maxLength }) });
}

function IdOrNull(description: string, example: string): PropertyDecorator {
  return Identifier(description, { nullable: true, example });
}

/** All members are optional; unknown members are ignored. */
@ApiSchema({ name: 'AppConversationStartRequest' })
export class StartConversationDto {
  @TextOrNull('Sandbox to work in; a new one by default.', '3kTMd9ZpQ2sVbX7cRfLw1A')
  sandbox_id?: string | null;

  @TextOrNull(
    'Specification of the new sandbox, so not together with `sandbox_id`; the first of the list by default.',
    'slipway',
  )
  sandbox_spec_id?: string | null;

  @IdOrNull('Id that the conversation shall have.', '5d2f8c1e-7a3b-4c9d-8e0f-1a2b3c4d5e6f')
  conversation_id?: string | null;

  @Nested('What the agent shall do.', { type: InitialMessageDto, nullable: true })
  initial_message?: InitialMessageDto | null;

  @Text('What the agent shall know besides; the last part of its instructions.', {
    nullable: true,
    example: 'Answer briefly.',
    maxLength: MAX_MESSAGE_TEXT,
  })
  system_message_suffix?: string | null;

  @NestedList('What shall happen on events.', { type: ProcessorDto, nullable: true })
  processors?: ProcessorDto[] | null;

  @TextOrNull('Model; that of the settings by default.', 'provider/model-1')
  llm_model?: string | null;

  @TextOrNull('Stored profile that model, address and key come from; the settings by default.', 'fast', 64)
  llm_profile?: string | null;

  @TextOrNull(
    "Agent: `CodeActAgent`, or `acp:` and a name of the operator's list; that of the settings by default.",
    'CodeActAgent',
    100,
  )
  agent?: string | null;

  @TextOrNull(NO_EFFECT, '8a1c2d3e-4f50-4a61-9b72-8c93ad04be15')
  agent_profile_id?: string | null;

  @RepositoryName('Full name of the repository to clone.', { nullable: true })
  selected_repository?: string | null;

  @BranchName('Branch to check out; by default a new one from the main branch.', { nullable: true })
  selected_branch?: string | null;

  @Flag(
    "Fetch the repository's submodules too, those of submodules included: at most 50, and from the repository's own server only. The start waits for each of them, up to ten minutes in all, and they take their space in the sandbox.",
    { default: false, example: false },
  )
  clone_submodules?: boolean;

  @Flag(
    'Fetch files of Git LFS in place of their pointers, where the sandbox has git-lfs. The start waits for all of them, they take their space in the sandbox twice, and git hosts charge for the traffic.',
    { default: false, example: false },
  )
  fetch_lfs?: boolean;

  @ProviderName('Where the repository is; by default the first provider with a token.', { nullable: true })
  git_provider?: ProviderType | null;

  @Nested('Work to do: makes the first message, so that `initial_message` must be left out.', {
    type: SuggestedTaskInputDto,
    nullable: true,
  })
  suggested_task?: SuggestedTaskInputDto | null;

  @Text('Title; by default made from what is said first.', {
    nullable: true,
    trim: true,
    example: 'Parser tests',
    form: { maxLength: 200 },
    rule: titleLengthProblem,
  })
  title?: string | null;

  @Choice('What made you start it.', {
    nullable: true,
    values: CONVERSATION_TRIGGERS,
    enumName: 'ConversationTrigger',
    example: 'gui',
  })
  trigger?: ConversationTrigger | null;

  @field(
    'Pull requests that it is about.',
    { example: [7] },
    listOf(integer({ minimum: 0 }), ' of whole numbers'),
  )
  pr_number?: number[];

  @IdOrNull(
    'Conversation that this one is part of: it has its sandbox, repository, model and limits.',
    '1c9e6a70-2b3d-4f81-9a05-6d7e8f901a2b',
  )
  parent_conversation_id?: string | null;

  @Choice('`plan`: the agent writes a plan into PLAN.md and changes nothing else.', {
    values: ['default', 'plan'],
    default: 'default',
    example: 'default',
  })
  agent_type?: 'default' | 'plan';

  @Flag('Kept and shown; it shares nothing.', { nullable: true, example: false }) public?: boolean | null;
  @VisibilityField() visibility?: Visibility;

  @FreeObject(NO_EFFECT, { nullable: true, example: {}, maxLength: MAX_METADATA_LENGTH })
  observability_metadata?: Record<string, unknown> | null;

  @TextList(NO_EFFECT, { nullable: true, example: [] }) observability_tags?: string[] | null;
  @TextOrNull(NO_EFFECT, 'nightly') observability_span_name?: string | null;
  @NestedList(NO_EFFECT, { type: PluginDto, nullable: true }) plugins?: PluginDto[] | null;

  @TextMap('Further secrets for this conversation alone, by name; they win over stored ones.', {
    nullable: true,
    example: { DEPLOY_TOKEN: 'secret-example' },
    valueLength: MAX_SECRET,
    keySchema: CUSTOM_SECRET_FORM,
    keyRule: sentenceRule(customSecretNameProblem),
  })
  secrets?: ReadonlyMap<string, string> | null;

  @TextList(
    'Names of the stored secrets that tools get, those of git tokens (GITHUB_TOKEN) included; null: all.',
    { nullable: true, example: ['DEPLOY_TOKEN'] },
  )
  secret_names?: string[] | null;

  @Choice('`read` does not push, `none` has the clone alone.', {
    values: GIT_MODES,
    default: 'write',
  })
  git?: GitMode;

  @Choice(
    'Whether a fork of yours is made and pushed to where you may not push; by default as in the settings.',
    { values: FORK_POLICIES, nullable: true, example: 'auto' },
  )
  fork?: ForkPolicy | null;

  @SettingMember('clone_depth') clone_depth?: number | null;
  @SettingMember('clone_filter') clone_filter?: CloneFilter | null;

  @FreeObject(
    'What the new sandbox may reach, in the form of `sandbox_egress` of the settings; the rules of settings and operator hold besides. Not where there is a sandbox: with `sandbox_id` or `parent_conversation_id`.',
    { nullable: true, example: { allow: ['npm'] }, maxLength: MAX_WRITTEN_RULES },
  )
  egress?: Record<string, unknown> | null;

  @TextList(
    'Other repositories that its sandbox may read (clone, archives, files, packages) and never push to, where credentials stay outside: `github:owner/name`, `github:owner/*`, `gitlab:group/*`; null: as the settings say.',
    {
      nullable: true,
      example: ['github:octo/*'],
      form: { maxItems: MAX_READABLE },
      itemLength: MAX_READABLE_LENGTH,
    },
  )
  repositories_read?: string[] | null;

  @Tags('Short texts by name, to find the conversation by.', { team: 'checkout' })
  tags?: ReadonlyMap<string, string> | null;

  @Metadata('Anything that you want to keep with the conversation; at most 16 KiB as JSON.')
  metadata?: Record<string, unknown> | null;

  @FreeObject(
    'JSON Schema (draft 2020-12) of the result. The agent must finish with one that matches; it is `result` of the conversation then. At most 32 KiB as JSON.',
    {
      nullable: true,
      example: { type: 'object', properties: { passed: { type: 'boolean' } }, required: ['passed'] },
      maxLength: MAX_SCHEMA_LENGTH,
    },
  )
  result_schema?: Record<string, unknown> | null;

  @FollowField() follow?: FollowDto | null;
}
