import { Controller, Get } from '@nestjs/common';
import { ApiProperty, type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import { Public } from '../auth/auth.decorators.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { Always, Shown } from '@slipway/api/openapi/responses.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { ShownProvider } from '../git-providers/repository-fields.js';
import { AcpAgents } from '../v1/app-conversations/agent-request/acp-agents.js';
import { OWN_AGENT, SECURITY_ANALYZERS } from '@slipway/settings/agent-settings.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';

const PUBLIC: ProviderType[] = ['github', 'gitlab', 'bitbucket'];
const FEATURE_FLAGS = {
  ENABLE_BILLING: false,
  HIDE_LLM_SETTINGS: false,
  ENABLE_JIRA: false,
  ENABLE_JIRA_DC: false,
  ENABLE_LINEAR: false,
};

@Always(FEATURE_FLAGS)
class ServerFeatureFlagsDto {}

class ServerConfigDto {
  @Shown('Nobody signs in: requests carry a key.', 'oss', { enum: ['oss'] }) APP_MODE: 'oss';
  @Shown('Empty: there is no sign-in with GitHub.', '') GITHUB_CLIENT_ID: string;
  @ApiProperty({ description: 'Empty: nothing is measured.', example: '' }) POSTHOG_CLIENT_KEY: string;
  @ShownProvider({ isArray: true, example: PUBLIC }) PROVIDERS_CONFIGURED: ProviderType[];
  @ApiProperty({ type: ServerFeatureFlagsDto }) FEATURE_FLAGS: typeof FEATURE_FLAGS;
}

@ApiTags('Config')
@Controller('api/options')
export class OptionsController {
  constructor(
    private readonly registry: GitProviderRegistry,
    private readonly models: ModelCatalogue,
    private readonly agents: AcpAgents,
  ) {}

  // The older web application overwrites the user's settings with its defaults unless it gets this response.
  @Get('config')
  @Public()
  @ApiRoute('get_config_', 'What the older web application shows and hides', {
    description: 'Open to everyone: it asks before it has a key.',
    answer: { type: ServerConfigDto, description: 'The same for everybody' },
  })
  config(): ServerConfigDto {
    return {
      APP_MODE: 'oss',
      GITHUB_CLIENT_ID: '',
      POSTHOG_CLIENT_KEY: '',
      PROVIDERS_CONFIGURED: [...this.registry.usable],
      FEATURE_FLAGS,
    };
  }

  @Get('models')
  @ApiRoute('get_litellm_models_', 'Models to choose from', {
    answer: namesSuchAs('openai/gpt-5.4'),
  })
  async listModels(): Promise<string[]> {
    // The page shows no field for an address until a user asks for one.
    return this.models.verifiedNames();
  }

  @Get('agents')
  @ApiRoute('get_agents_', 'Agents to choose from', { answer: namesSuchAs(OWN_AGENT) })
  listAgents(): string[] {
    return [OWN_AGENT, ...this.agents.names];
  }

  @Get('security-analyzers')
  @ApiRoute('get_security_analyzers_', 'Security analyzers to choose from', { answer: namesSuchAs('llm') })
  listSecurityAnalyzers(): string[] {
    return Object.keys(SECURITY_ANALYZERS);
  }
}

function namesSuchAs(example: string): ApiResponseNoStatusOptions {
  return { type: [String], description: 'Names, as the settings take them', example: [example] };
}
