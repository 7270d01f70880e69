import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { ConversationStatus } from '../../../agent-protocol/conversation-info.js';
import { CONVERSATION_STATUSES } from '../../../agent-protocol/conversation-statuses.js';
import { PROVIDER_TYPES, type ProviderType } from '../../../git-providers/git-provider.types.js';
import { SANDBOX_STATUSES, type SandboxStatus } from '../../sandboxes/sandbox-status.js';
import { CONVERSATION_TRIGGERS } from '../conversation-trigger.js';
import { LaunchedAgentProfileDto } from './launched-agent-profile.dto.js';
import { MetricsDto } from './metrics.dto.js';

/** A conversation as clients see it. */
@ApiSchema({ name: 'AppConversation' })
export class AppConversationDto {
  @ApiProperty({ description: '32 hexadecimal digits.', example: '5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f' })
  id: string;

  @ApiProperty({ type: String, nullable: true, example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' })
  created_by_user_id: string | null;

  @ApiProperty({ description: 'It stays when the sandbox is gone.', example: '3kTMd9ZpQ2sVbX7cRfLw1A' })
  sandbox_id: string;

  @ApiProperty({ type: String, nullable: true, example: 'octo/app' })
  selected_repository: string | null;

  @ApiProperty({ type: String, nullable: true, example: 'main' })
  selected_branch: string | null;

  @ApiProperty({ enum: PROVIDER_TYPES, enumName: 'ProviderType', nullable: true, example: 'github' })
  git_provider: ProviderType | null;

  @ApiProperty({ type: String, nullable: true, example: 'Parser tests' })
  title: string | null;

  @ApiProperty({
    enum: CONVERSATION_TRIGGERS,
    enumName: 'ConversationTrigger',
    nullable: true,
    example: 'gui',
  })
  trigger: string | null;

  @ApiProperty({
    type: 'array',
    items: { type: 'integer' },
    description: 'Pull requests it is about or has opened.',
    example: [7],
  })
  pr_number: number[];

  @ApiProperty({ type: String, nullable: true, example: 'provider/model-1' })
  llm_model: string | null;

  @ApiProperty({ example: 'openhands' })
  agent_kind: string;

  @ApiProperty({ type: MetricsDto, nullable: true })
  metrics: MetricsDto | null;

  @ApiProperty({ type: String, nullable: true, example: null })
  parent_conversation_id: string | null;

  @ApiProperty({ type: [String], description: 'Only where conversations are asked for by id.', example: [] })
  sub_conversation_ids: string[];

  @ApiProperty({ type: Boolean, nullable: true, example: null })
  public: boolean | null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: {} })
  tags: Record<string, string>;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:42:10.512Z' })
  updated_at: string;

  @ApiProperty({
    enum: SANDBOX_STATUSES,
    enumName: 'SandboxStatus',
    description: 'MISSING: the sandbox or its files are gone; the conversation can be read only.',
    example: 'RUNNING',
  })
  sandbox_status: SandboxStatus;

  @ApiProperty({
    enum: CONVERSATION_STATUSES,
    enumName: 'ConversationExecutionStatus',
    nullable: true,
    description: 'What the agent does; null unless the sandbox is RUNNING.',
    example: 'running',
  })
  execution_status: ConversationStatus | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'The conversation at its agent server; null unless the sandbox is RUNNING.',
    example:
      'http://localhost:3000/api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/agent-server/api/conversations/5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f',
  })
  conversation_url: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'What the agent server wants in X-Session-API-Key; null unless the sandbox is RUNNING.',
    example: 'sandbox-key-example',
  })
  session_api_key: string | null;

  @ApiProperty({ type: String, nullable: true, description: 'Always null here.', example: null })
  acp_server: string | null;

  @ApiProperty({
    type: LaunchedAgentProfileDto,
    nullable: true,
    description: 'Always null here.',
    example: null,
  })
  launched_agent_profile: LaunchedAgentProfileDto | null;
}
