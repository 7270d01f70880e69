import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { Public } from '../../auth/auth.decorators.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { Always, OrNull, Shown, TEXT_MAP } from '@slipway/api/openapi/responses.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { ShownProvider } from '../../git-providers/repository-fields.js';

const PUBLIC: ProviderType[] = ['github', 'gitlab', 'bitbucket'];
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
class WebClientConfigDto {
  @Shown('Nobody signs in: requests carry a key.', 'oss', { enum: ['oss'] }) app_mode: 'oss';
  @OrNull(null, { description: 'Nothing is measured.' }) posthog_client_key: null;
  @ApiProperty({ type: WebClientFeatureFlagsDto }) feature_flags: typeof FEATURE_FLAGS;

  @ShownProvider({
    description: 'Providers that users can store a token for.',
    isArray: true,
    example: PUBLIC,
  })
  providers_configured: ProviderType[];

  @ApiProperty({ type: [String], example: [] }) faulty_models: string[];
  @Shown('Start of the replica.', '2026-11-21T09:30:00.000Z', { format: 'date-time' }) updated_at: string;
  @ApiProperty({ ...TEXT_MAP, example: {} }) provider_default_hosts: Record<string, string>;
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) acp_providers: [];
}

class AgentProfilesDto {
  @ApiProperty({ type: [Object], items: { type: 'object' }, example: [] }) profiles: [];
  @OrNull(null) active_agent_profile_id: null;
}

@ApiTags('Config')
@Controller('api')
export class WebClientController {
  private readonly startedAt = new Date();

  constructor(private readonly registry: GitProviderRegistry) {}

  @Get('v1/web-client/config')
  @Public()
  @ApiRoute('get_web_client_config_', 'What a web application shows and hides', {
    description: 'Open to everyone: web applications ask before they have a key.',
    answer: { type: WebClientConfigDto, description: 'The same for everybody' },
  })
  config(): WebClientConfigDto {
    return {
      ...CONSTANTS,
      app_mode: 'oss',
      posthog_client_key: null,
      feature_flags: FEATURE_FLAGS,
      providers_configured: [...this.registry.usable],
      faulty_models: [],
      updated_at: this.startedAt.toISOString(),
      provider_default_hosts: {},
      acp_providers: [],
    };
  }

  // Makes the web application hide the feature, which this service does not have.
  @Get('agent-profiles')
  @ApiRoute('list_agent_profiles', 'List agent profiles', {
    description: 'There are none: agents work with the settings of their user.',
    answer: { type: AgentProfilesDto, description: 'None' },
  })
  agentProfiles(): AgentProfilesDto {
    return { profiles: [], active_agent_profile_id: null };
  }
}
