import { ApiProperty } from '@nestjs/swagger';
import { PROVIDER_TYPES, type ProviderType } from '../../git-providers/git-provider.js';

export class WebClientFeatureFlagsDto {
  @ApiProperty({ example: false }) enable_billing: boolean;
  @ApiProperty({ example: false }) hide_llm_settings: boolean;
  @ApiProperty({ example: false }) enable_jira: boolean;
  @ApiProperty({ example: false }) enable_jira_dc: boolean;
  @ApiProperty({ example: false }) enable_linear: boolean;
  @ApiProperty({ example: true }) hide_users_page: boolean;
  @ApiProperty({ example: true }) hide_billing_page: boolean;
  @ApiProperty({ example: false }) hide_integrations_page: boolean;
  @ApiProperty({ example: false }) hide_personal_workspaces: boolean;
  @ApiProperty({ example: true }) allow_user_llm_configuration: boolean;
  @ApiProperty({ example: true }) enable_acp: boolean;
  @ApiProperty({ enum: ['self_hosted'], example: 'self_hosted' }) deployment_mode: 'self_hosted';
  @ApiProperty({ example: false }) enable_onboarding: boolean;
  @ApiProperty({ example: false }) enable_automations: boolean;
}

export class WebClientConfigDto {
  @ApiProperty({ enum: ['oss'], description: 'Nobody signs in: requests carry a key.', example: 'oss' })
  app_mode: 'oss';

  @ApiProperty({ type: 'null', description: 'Nothing is measured.', example: null }) posthog_client_key: null;
  @ApiProperty({ type: WebClientFeatureFlagsDto }) feature_flags: WebClientFeatureFlagsDto;

  @ApiProperty({
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    isArray: true,
    description: 'Providers that users can store a token for.',
    example: ['github', 'gitlab', 'bitbucket'],
  })
  providers_configured: ProviderType[];

  @ApiProperty({ type: 'null', example: null }) maintenance_start_time: null;
  @ApiProperty({ type: 'null', example: null }) auth_url: null;
  @ApiProperty({ type: 'null', example: null }) recaptcha_site_key: null;
  @ApiProperty({ type: [String], example: [] }) faulty_models: string[];
  @ApiProperty({ type: 'null', example: null }) error_message: null;

  @ApiProperty({
    format: 'date-time',
    description: 'Start of the replica.',
    example: '2026-11-21T09:30:00.000Z',
  })
  updated_at: string;

  @ApiProperty({ type: 'null', example: null }) github_app_slug: null;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: {} })
  provider_default_hosts: Record<string, string>;

  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) acp_providers: [];
  @ApiProperty({ enum: ['WebClientConfig'], example: 'WebClientConfig' }) kind: 'WebClientConfig';
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
    app_mode: 'oss',
    posthog_client_key: null,
    feature_flags: {
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
      enable_automations: false,
    },
    providers_configured: [...providers],
    maintenance_start_time: null,
    auth_url: null,
    recaptcha_site_key: null,
    faulty_models: [],
    error_message: null,
    updated_at: startedAt.toISOString(),
    github_app_slug: null,
    provider_default_hosts: {},
    acp_providers: [],
    kind: 'WebClientConfig',
  };
}
