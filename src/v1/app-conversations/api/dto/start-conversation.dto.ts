import { ApiSchema } from '@nestjs/swagger';
import { FreeObject, Nested, NestedList } from '../../../../common/validation/nested-fields.js';
import { Flag, Integer, IntegerList } from '../../../../common/validation/number-fields.js';
import {
  Choice,
  Identifier,
  MAX_SECRET,
  Text,
  TextList,
  TextMap,
} from '../../../../common/validation/text-fields.js';
import { PROVIDER_TYPES, type ProviderType } from '../../../../git-providers/git-provider.js';
import {
  BRANCH_FORM,
  isBranchName,
  REPOSITORY_FORM,
  repositorySegments,
} from '../../../../git-providers/repository-name.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../../../../settings/secrets/secrets.dto.js';
import { TASK_TYPES, type TaskType } from '../../../../suggested-tasks/candidate.js';
import {
  CONVERSATION_TRIGGERS,
  type ConversationTrigger,
  titleLengthProblem,
} from '../../conversation.entity.js';
import type { SuggestedTask } from '../../suggested-task/suggested-task-prompt.js';
import { InitialMessageDto, MAX_MESSAGE_TEXT } from './conversation-actions.dto.js';
import { MAX_METADATA_LENGTH, Tags } from './labels.dto.js';

/** Characters of JSON. */
const MAX_SCHEMA_LENGTH = 32_768;

export function repositoryProblem(name: string): string | null {
  return repositorySegments(name)
    ? null
    : 'Expected the full name of a repository, such as octo/app, not its address.';
}

export function branchProblem(name: string): string | null {
  return isBranchName(name) ? null : 'Expected the name of a branch, such as main or feature/parser.';
}

@ApiSchema({ name: 'EventCallbackProcessor' })
class ProcessorDto {
  @Text({
    required: true,
    description:
      '`SetTitleCallbackProcessor` is what is done anyway; others have no effect, and `detail` says so.',
    example: 'SetTitleCallbackProcessor',
  })
  kind: string;
}

/** Accepted without an effect: the service has no plugins. */
@ApiSchema({ name: 'PluginSpec' })
class PluginDto {
  @Text({ required: true, description: 'Where it comes from.', example: 'github:octo/plugins' })
  source: string;

  @Text({ nullable: true, description: 'Branch, tag or commit.', example: 'main' }) ref?: string | null;

  @Text({ nullable: true, description: 'Folder in the repository.', example: 'plugins/lint' })
  repo_path?: string | null;
}

const MAX_TASK_TITLE_LENGTH = 1000;

/** As `GET /api/user/suggested-tasks` returned it. */
class SuggestedTaskInputDto implements SuggestedTask {
  @Choice({
    required: true,
    values: PROVIDER_TYPES,
    enumName: 'ProviderType',
    description: 'Where the repository is.',
    example: 'github',
  })
  git_provider: ProviderType;

  @Choice({
    required: true,
    values: TASK_TYPES,
    enumName: 'TaskType',
    description: 'What to do.',
    example: 'FAILING_CHECKS',
  })
  task_type: TaskType;

  @Text({
    required: true,
    description: 'Full name of the repository.',
    example: 'acme/checkout',
    form: REPOSITORY_FORM,
    rule: repositoryProblem,
  })
  repo: string;

  @Integer({
    required: true,
    minimum: 0,
    description: 'Number of the issue, pull or merge request; 0 for CREATE_MICROAGENT.',
    example: 128,
  })
  issue_number: number;

  @Text({
    required: true,
    description: 'Title as its author wrote it.',
    example: 'Retry card payments',
    maxLength: MAX_TASK_TITLE_LENGTH,
  })
  title: string;
}

const NO_EFFECT = 'Taken, but without effect here; `detail` of the start task says so.';

/** All members are optional; unknown members are ignored. */
@ApiSchema({ name: 'AppConversationStartRequest' })
export class StartConversationDto {
  @Text({
    nullable: true,
    description: 'Sandbox to work in; a new one by default.',
    example: '3kTMd9ZpQ2sVbX7cRfLw1A',
  })
  sandbox_id?: string | null;

  @Text({
    nullable: true,
    description: 'Specification of the new sandbox; the first of the list by default.',
    example: 'slipway',
  })
  sandbox_spec_id?: string | null;

  @Identifier({
    nullable: true,
    description: 'Id that the conversation shall have.',
    example: '5d2f8c1e-7a3b-4c9d-8e0f-1a2b3c4d5e6f',
  })
  conversation_id?: string | null;

  @Nested({ type: InitialMessageDto, nullable: true, description: 'What the agent shall do.' })
  initial_message?: InitialMessageDto | null;

  @Text({
    nullable: true,
    description: 'What the agent shall know besides; the last part of its instructions.',
    example: 'Answer briefly.',
    maxLength: MAX_MESSAGE_TEXT,
  })
  system_message_suffix?: string | null;

  @NestedList({ type: ProcessorDto, nullable: true, description: 'What shall happen on events.' })
  processors?: ProcessorDto[] | null;

  @Text({
    nullable: true,
    description: 'Model; that of the settings by default.',
    example: 'provider/model-1',
  })
  llm_model?: string | null;

  @Text({
    nullable: true,
    description: 'Stored profile that model, address and key come from; the settings by default.',
    example: 'fast',
    form: { maxLength: 64 },
  })
  llm_profile?: string | null;

  @Text({
    nullable: true,
    description:
      'Agent: `CodeActAgent`, or `acp:` and a name of the list of the operator; that of the settings by default.',
    example: 'CodeActAgent',
    form: { maxLength: 100 },
  })
  agent?: string | null;

  @Text({ nullable: true, description: NO_EFFECT, example: '8a1c2d3e-4f50-4a61-9b72-8c93ad04be15' })
  agent_profile_id?: string | null;

  @Text({
    nullable: true,
    description: 'Full name of the repository to clone.',
    example: 'octo/app',
    form: REPOSITORY_FORM,
    rule: repositoryProblem,
  })
  selected_repository?: string | null;

  @Text({
    nullable: true,
    description: 'Branch to check out; by default a new one from the main branch.',
    example: 'main',
    form: BRANCH_FORM,
    rule: branchProblem,
  })
  selected_branch?: string | null;

  @Flag({
    description:
      "Fetch the repository's submodules too, those of submodules included: at most 50, and from the repository's own server only. The start waits for each of them, up to ten minutes in all, and they take their space in the sandbox.",
    default: false,
    example: false,
  })
  clone_submodules?: boolean;

  @Flag({
    description:
      'Fetch files of Git LFS in place of their pointers, where the sandbox has git-lfs. The start waits for all of them, they take their space in the sandbox twice, and git hosts charge for the traffic.',
    default: false,
    example: false,
  })
  fetch_lfs?: boolean;

  @Choice({
    nullable: true,
    values: PROVIDER_TYPES,
    enumName: 'ProviderType',
    description: 'Where the repository is; by default the first provider with a token.',
    example: 'github',
  })
  git_provider?: ProviderType | null;

  @Nested({
    type: SuggestedTaskInputDto,
    nullable: true,
    description: 'Work to do: makes the first message, so that `initial_message` must be left out.',
  })
  suggested_task?: SuggestedTaskInputDto | null;

  @Text({
    nullable: true,
    trim: true,
    description: 'Title; by default made from what is said first.',
    example: 'Parser tests',
    form: { maxLength: 200 },
    rule: titleLengthProblem,
  })
  title?: string | null;

  @Choice({
    nullable: true,
    values: CONVERSATION_TRIGGERS,
    enumName: 'ConversationTrigger',
    description: 'What made you start it.',
    example: 'gui',
  })
  trigger?: ConversationTrigger | null;

  @IntegerList({ minimum: 0, description: 'Pull requests that it is about.', example: [7] })
  pr_number?: number[];

  @Identifier({
    nullable: true,
    description: 'Conversation that this one is part of: it has its sandbox, repository and model.',
    example: '1c9e6a70-2b3d-4f81-9a05-6d7e8f901a2b',
  })
  parent_conversation_id?: string | null;

  @Choice({
    values: ['default', 'plan'],
    description: '`plan`: the agent writes a plan into PLAN.md and changes nothing else.',
    default: 'default',
    example: 'default',
  })
  agent_type?: 'default' | 'plan';

  @Flag({ nullable: true, description: 'Kept and shown; nobody else sees the conversation.', example: false })
  public?: boolean | null;

  @FreeObject({ nullable: true, description: NO_EFFECT, example: {}, maxLength: MAX_METADATA_LENGTH })
  observability_metadata?: Record<string, unknown> | null;

  @TextList({ nullable: true, description: NO_EFFECT, example: [] }) observability_tags?: string[] | null;

  @Text({ nullable: true, description: NO_EFFECT, example: 'nightly' })
  observability_span_name?: string | null;

  @NestedList({ type: PluginDto, nullable: true, description: NO_EFFECT }) plugins?: PluginDto[] | null;

  @TextMap({
    nullable: true,
    description: 'Further secrets for this conversation alone, by name; they win over stored ones.',
    example: { DEPLOY_TOKEN: 'secret-example' },
    valueLength: MAX_SECRET,
    keySchema: CUSTOM_SECRET_FORM,
    keyRule: customSecretNameProblem,
  })
  secrets?: ReadonlyMap<string, string> | null;

  @TextList({
    nullable: true,
    description:
      'Names of the stored secrets that tools of this conversation get, variables of git tokens such as GITHUB_TOKEN included; null: all. Git itself keeps its access.',
    example: ['DEPLOY_TOKEN'],
  })
  secret_names?: string[] | null;

  @Tags({
    nullable: true,
    description: 'Short texts by name, to find the conversation by.',
    example: { team: 'checkout' },
  })
  tags?: ReadonlyMap<string, string> | null;

  @FreeObject({
    nullable: true,
    description: 'Anything that you want to keep with the conversation; at most 16 KiB as JSON.',
    example: { ticket: { id: 4711 } },
    maxLength: MAX_METADATA_LENGTH,
  })
  metadata?: Record<string, unknown> | null;

  @FreeObject({
    nullable: true,
    description:
      'JSON Schema (draft 2020-12) of the result. The agent must finish with one that matches; it is `result` of the conversation then. At most 32 KiB as JSON.',
    example: { type: 'object', properties: { passed: { type: 'boolean' } }, required: ['passed'] },
    maxLength: MAX_SCHEMA_LENGTH,
  })
  result_schema?: Record<string, unknown> | null;
}
