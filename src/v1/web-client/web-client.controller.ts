import { Controller, Get } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { Public } from '../../auth/auth.decorators.js';
import { PROVIDER_TYPES } from '../../git-providers/git-provider.js';
import { GitProviderRegistry } from '../../git-providers/git-provider.registry.js';
import {
  type AgentProfilesDto,
  type AutomationHealthDto,
  type AutomationSdkVersionDto,
  toWebClientConfigDto,
  type WebClientConfigDto,
} from './web-client.dto.js';
import {
  AgentProfilesOperation,
  AutomationHealthOperation,
  AutomationSdkVersionOperation,
  WebClientConfigOperation,
} from './web-client.openapi.js';

/** What the web application asks first. It says nothing about users or about the machine. */
@ApiTags('Config')
@Public()
@Controller('api/v1/web-client')
export class WebClientConfigController {
  private readonly startedAt = new Date();

  constructor(private readonly registry: GitProviderRegistry) {}

  @Get('config')
  @WebClientConfigOperation()
  config(): WebClientConfigDto {
    const { enterpriseSsoConfigured } = this.registry;
    return toWebClientConfigDto(
      PROVIDER_TYPES.filter((type) => type !== 'enterprise_sso' || enterpriseSsoConfigured),
      this.startedAt,
    );
  }
}

/** Parts of the web application that have nothing behind them here; told so, it leaves them out. */
@ApiTags('Config')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class AbsentFeaturesController {
  @Get('agent-profiles')
  @AgentProfilesOperation()
  agentProfiles(): AgentProfilesDto {
    return { profiles: [], active_agent_profile_id: null };
  }

  @Get('automation/health')
  @AutomationHealthOperation()
  automationHealth(): AutomationHealthDto {
    return { status: 'unavailable' };
  }

  @Get('automation/sdk-version')
  @AutomationSdkVersionOperation()
  automationSdkVersion(): AutomationSdkVersionDto {
    return { sdk_version: null };
  }
}
