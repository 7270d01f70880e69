import { ApiProperty } from '@nestjs/swagger';
import { Always, Shown, TEXT_MAP } from '../../common/openapi/responses.js';
import { PROVIDER_TYPES, type ProviderType } from '../../git-providers/git-provider.js';

const FEATURE_FLAGS = {
  enable_billing: false,
  hide_llm_settings: false,
  enable_jira: false,
  enable_jira_dc: false,
  enable_linear: false,
  hide_users_page: true,
  hide_billing_page: true,
  hide_integrations_page: false,
  hide_personal_workspaces: false,
  allow_user_llm_configuration: true,
  enable_acp: true,
  deployment_mode: 'self_hosted',
  enable_onboarding: false,
  enable_automations: true,
};

@Always(FEATURE_FLAGS)
class WebClientFeatureFlagsDto {}

const CONSTANTS = {
  maintenance_start_time: null,
  auth_url: null,
  recaptcha_site_key: null,
  error_message: null,
  github_app_slug: null,
  kind: 'WebClientConfig',
};

@Always(CONSTANTS)
export class WebClientConfigDto {
  @Shown('Nobody signs in: requests carry a key.', 'oss', { enum: ['oss'] }) app_mode: 'oss';
  @ApiProperty({ type: 'null', description: 'Nothing is measured.', example: null }) posthog_client_key: null;
  @ApiProperty({ type: WebClientFeatureFlagsDto }) feature_flags: typeof FEATURE_FLAGS;

  @Shown('Providers that users can store a token for.', ['github', 'gitlab', 'bitbucket'], {
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    isArray: true,
  })
  providers_configured: ProviderType[];

  @ApiProperty({ type: [String], example: [] }) faulty_models: string[];
  @Shown('Start of the replica.', '2026-11-21T09:30:00.000Z', { format: 'date-time' }) updated_at: string;
  @ApiProperty({ ...TEXT_MAP, example: {} }) provider_default_hosts: Record<string, string>;
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) acp_providers: [];
}

/** Always empty: agents work with the settings of their user. */
export class AgentProfilesDto {
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) profiles: [];
  @ApiProperty({ type: 'null', example: null }) active_agent_profile_id: null;
}

/** `providers` are those that users can store a token for. */
export function toWebClientConfigDto(
  providers: readonly ProviderType[],
  startedAt: Date,
): WebClientConfigDto {
  return {
    ...CONSTANTS,
    app_mode: 'oss',
    posthog_client_key: null,
    feature_flags: FEATURE_FLAGS,
    providers_configured: [...providers],
    faulty_models: [],
    updated_at: startedAt.toISOString(),
    provider_default_hosts: {},
    acp_providers: [],
  };
}
