import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { OrNull, Shown } from '../../common/openapi/responses.js';
import { StoredMcpConfigDto } from '../mcp/mcp-config.dto.js';
import { type SettingsRow, type ShownSettings, shownSettings } from '../settings-table.js';

const NOTHING = { type: 'object' as const, additionalProperties: false, example: {} };

@ApiSchema({ name: 'StoredUserSecrets' })
class ShownSecretsStoreDto {
  @ApiProperty(NOTHING) provider_tokens: Record<string, never>;
  @ApiProperty(NOTHING) custom_secrets: Record<string, never>;
}

/** Response of `GET /api/settings`: every member of the settings; secrets only as "is set". */
export class StoredSettingsDto implements ShownSettings {
  @OrNull('en') language: string | null;
  @OrNull('CodeActAgent') agent: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 100 }) max_iterations: number | null;
  @OrNull('llm') security_analyzer: string | null;
  @ApiProperty({ type: Boolean, nullable: true, example: false }) confirmation_mode: boolean | null;
  @OrNull('provider/model-1') llm_model: string | null;
  @OrNull(null, { description: 'Always null; see llm_api_key_set.' }) llm_api_key: null;
  @OrNull('https://llm.example.com/v1') llm_base_url: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 1 }) remote_runtime_resource_factor: number | null;

  @ApiProperty({ type: ShownSecretsStoreDto, description: 'Always empty; see provider_tokens_set.' })
  secrets_store: ShownSecretsStoreDto;

  @ApiProperty({ example: true }) enable_default_condenser: boolean;
  @ApiProperty({ example: false }) enable_sound_notifications: boolean;
  @ApiProperty({ example: true }) enable_proactive_conversation_starters: boolean;
  @ApiProperty({ example: true }) enable_solvability_analysis: boolean;
  @ApiProperty({ type: Boolean, nullable: true, example: false }) user_consents_to_analytics: boolean | null;
  @OrNull('docker.io/library/debian:13') sandbox_base_container_image: string | null;
  @OrNull('registry.example.com/sandbox:1') sandbox_runtime_container_image: string | null;
  @ApiProperty({ type: StoredMcpConfigDto, nullable: true }) mcp_config: StoredMcpConfigDto | null;
  @OrNull(null, { description: 'Always null; see search_api_key_set.' }) search_api_key: null;
  @OrNull(null, { description: 'Always null; see sandbox_api_key_set.' }) sandbox_api_key: null;
  @ApiProperty({ type: Number, nullable: true, example: 2.5 }) max_budget_per_task: number | null;
  @OrNull('ada@example.com') email: string | null;
  @ApiProperty({ type: Boolean, nullable: true, example: true }) email_verified: boolean | null;
  @OrNull('Ada Lovelace') git_user_name: string | null;
  @OrNull('ada@example.com') git_user_email: string | null;
  @ApiProperty({ example: true }) llm_api_key_set: boolean;
  @ApiProperty({ example: false }) search_api_key_set: boolean;
  @ApiProperty({ example: false }) sandbox_api_key_set: boolean;

  @Shown(
    'Providers with a stored token, and the host it is for (null: the public service).',
    { github: null, gitlab: 'git.example.com' },
    { type: 'object', additionalProperties: { type: 'string', nullable: true } },
  )
  provider_tokens_set: Record<string, string | null>;
}

export function toStoredSettingsDto(row: SettingsRow): StoredSettingsDto {
  return shownSettings(row);
}
