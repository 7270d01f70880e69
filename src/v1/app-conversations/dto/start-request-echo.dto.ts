import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { toHexId } from '../../../common/hex-id.js';
import type { StartRequest } from '../start/start-request.js';

const MASK = '**********';
const ANY_OBJECT = { type: 'object' as const, additionalProperties: true };

/** The request of a start task, each member of it. */
@ApiSchema({ name: 'AppConversationStartRequestEcho' })
export class StartRequestEchoDto {
  @ApiProperty({ type: String, nullable: true, example: null })
  sandbox_id: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  sandbox_spec_id: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  conversation_id: string | null;

  @ApiProperty({
    ...ANY_OBJECT,
    nullable: true,
    example: { role: 'user', content: [{ type: 'text', text: 'Add a test for the parser.' }], run: true },
  })
  initial_message: object | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  system_message_suffix: string | null;

  @ApiProperty({ type: 'array', items: ANY_OBJECT, nullable: true, example: null })
  processors: unknown;

  @ApiProperty({ type: String, nullable: true, example: null })
  llm_model: string | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  agent_profile_id: unknown;

  @ApiProperty({ type: String, nullable: true, example: 'octo/app' })
  selected_repository: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'main' })
  selected_branch: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'github' })
  git_provider: string | null;

  @ApiProperty({ ...ANY_OBJECT, nullable: true, example: null })
  suggested_task: object | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  title: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'gui' })
  trigger: string | null;

  @ApiProperty({ type: 'array', items: { type: 'integer' }, example: [] })
  pr_number: number[];

  @ApiProperty({ type: String, nullable: true, example: null })
  parent_conversation_id: string | null;

  @ApiProperty({ example: 'default' })
  agent_type: string;

  @ApiProperty({ type: Boolean, nullable: true, example: null })
  public: boolean | null;

  @ApiProperty({ ...ANY_OBJECT, nullable: true, example: null })
  observability_metadata: unknown;

  @ApiProperty({ type: 'array', items: { type: 'string' }, nullable: true, example: null })
  observability_tags: unknown;

  @ApiProperty({ type: String, nullable: true, example: null })
  observability_span_name: unknown;

  @ApiProperty({ type: 'array', items: ANY_OBJECT, nullable: true, example: null })
  plugins: unknown;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    nullable: true,
    description: 'Names only; the values are masked.',
    example: { DEPLOY_TOKEN: MASK },
  })
  secrets: Record<string, string> | null;
}

/** The kept request as it is shown: in the order of the wire, never with the value of a secret. */
export function toStartRequestEchoDto(request: StartRequest): StartRequestEchoDto {
  const { conversation_id: conversationId, parent_conversation_id: parentId, secrets } = request;
  return {
    sandbox_id: request.sandbox_id,
    sandbox_spec_id: request.sandbox_spec_id,
    conversation_id: conversationId === null ? null : toHexId(conversationId),
    initial_message: request.initial_message,
    system_message_suffix: request.system_message_suffix,
    processors: request['processors'] ?? null,
    llm_model: request.llm_model,
    agent_profile_id: request['agent_profile_id'] ?? null,
    selected_repository: request.selected_repository,
    selected_branch: request.selected_branch,
    git_provider: request.git_provider,
    suggested_task: request.suggested_task,
    title: request.title,
    trigger: request.trigger,
    pr_number: request.pr_number,
    parent_conversation_id: parentId === null ? null : toHexId(parentId),
    agent_type: request.agent_type,
    public: request.public,
    observability_metadata: request['observability_metadata'] ?? null,
    observability_tags: request['observability_tags'] ?? null,
    observability_span_name: request['observability_span_name'] ?? null,
    plugins: request['plugins'] ?? null,
    secrets: secrets && Object.fromEntries(Object.keys(secrets).map((name) => [name, MASK])),
  };
}
