import { ApiSchema } from '@nestjs/swagger';
import { addressProblem } from '../../common/http/address-problem.js';
import { Decimal } from '../../common/validation/decimal.decorator.js';
import { Flag } from '../../common/validation/flag.decorator.js';
import { Integer } from '../../common/validation/integer.decorator.js';
import { Nested } from '../../common/validation/nested.decorator.js';
import { Text } from '../../common/validation/text.decorator.js';
import { McpConfigField } from '../../mcp-config/dto/mcp-config-field.decorator.js';
import type { McpConfigDto } from '../../mcp-config/dto/mcp-config.dto.js';
import { SETTINGS_DEFAULTS } from '../settings-defaults.js';
import { SecretsStoreDto } from './secrets-store.dto.js';

const KEPT = 'null keeps the stored value, blank text clears it.';

/** Body of `POST /api/settings`. Members left out keep their values; members it does not list are ignored. */
@ApiSchema({ name: 'Settings' })
export class SettingsDto {
  @Text({ nullable: true, description: 'Language of the user interface.', example: 'en' })
  language?: string | null;

  @Text({ nullable: true, description: 'Agent that works in new conversations.', example: 'CodeActAgent' })
  agent?: string | null;

  @Integer({ nullable: true, minimum: 1, description: 'Most steps of one run of the agent.', example: 100 })
  max_iterations?: number | null;

  @Text({ nullable: true, description: 'Judge of the risk of actions.', example: 'llm' })
  security_analyzer?: string | null;

  @Flag({ nullable: true, description: 'Whether risky actions wait for the user.', example: false })
  confirmation_mode?: boolean | null;

  @Text({ nullable: true, description: `Model of new conversations. ${KEPT}`, example: 'provider/model-1' })
  llm_model?: string | null;

  @Text({
    nullable: true,
    secret: true,
    description: `Key for the model. ${KEPT}`,
    example: 'llm-key-example',
  })
  llm_api_key?: string | null;

  @Text({
    nullable: true,
    trim: true,
    description: `Absolute http or https address of the model's API, without credentials in it. ${KEPT}`,
    example: 'https://llm.example.com/v1',
    rule: (address) => (address === '' ? null : addressProblem(address, ['http', 'https'])),
  })
  llm_base_url?: string | null;

  @Integer({
    nullable: true,
    minimum: 1,
    maximum: 8,
    description: 'Size of sandboxes, as a multiple of the smallest.',
    example: 1,
  })
  remote_runtime_resource_factor?: number | null;

  @Nested({
    type: SecretsStoreDto,
    nullIsAbsent: true,
    notAnObject: 'value_error',
    description: 'Tokens and secrets to merge into the stored ones; stored elsewhere and never shown.',
  })
  secrets_store?: SecretsStoreDto;

  @Flag({
    default: SETTINGS_DEFAULTS.enable_default_condenser,
    description: 'Whether long histories are condensed.',
    example: true,
  })
  enable_default_condenser?: boolean;

  @Flag({
    default: SETTINGS_DEFAULTS.enable_sound_notifications,
    description: 'Whether the user interface plays sounds.',
    example: false,
  })
  enable_sound_notifications?: boolean;

  @Flag({
    default: SETTINGS_DEFAULTS.enable_proactive_conversation_starters,
    description: 'Whether conversations are offered unasked.',
    example: true,
  })
  enable_proactive_conversation_starters?: boolean;

  @Flag({
    default: SETTINGS_DEFAULTS.enable_solvability_analysis,
    description: 'Whether issues are judged for how solvable they are.',
    example: true,
  })
  enable_solvability_analysis?: boolean;

  @Flag({
    nullable: true,
    description: 'Whether the user agreed to analytics. null keeps the stored value.',
    example: false,
  })
  user_consents_to_analytics?: boolean | null;

  @Text({
    nullable: true,
    description: 'Image that sandboxes run where `sandbox_runtime_container_image` names none.',
    example: 'docker.io/library/debian:13',
  })
  sandbox_base_container_image?: string | null;

  @Text({
    nullable: true,
    description: 'Image that sandboxes run. One without an agent server gets that of the service.',
    example: 'registry.example.com/sandbox:1',
  })
  sandbox_runtime_container_image?: string | null;

  @McpConfigField()
  mcp_config?: McpConfigDto | null;

  @Text({
    nullable: true,
    secret: true,
    description: `Key for web search. ${KEPT}`,
    example: 'search-key-example',
  })
  search_api_key?: string | null;

  @Text({
    nullable: true,
    secret: true,
    description: `Key for a remote sandbox service; stored, but no sandbox of this service needs it. ${KEPT}`,
    example: 'sandbox-key-example',
  })
  sandbox_api_key?: string | null;

  @Decimal({
    nullable: true,
    minimum: 0,
    description: 'Most that one task may cost, in US dollars.',
    example: 2.5,
  })
  max_budget_per_task?: number | null;

  @Text({ nullable: true, description: 'Email address of the user.', example: 'ada@example.com' })
  email?: string | null;

  @Flag({ nullable: true, description: 'Whether the address is confirmed.', example: true })
  email_verified?: boolean | null;

  @Text({ nullable: true, description: 'Author name of commits.', example: 'Ada Lovelace' })
  git_user_name?: string | null;

  @Text({ nullable: true, description: 'Author address of commits.', example: 'ada@example.com' })
  git_user_email?: string | null;
}
