import { Controller, Get } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Public } from '../../auth/auth.decorators.js';
import { ApiRoute } from '../../common/openapi/api-route.js';
import { GitProviderRegistry } from '../../git-providers/git-provider.registry.js';
import { AgentProfilesDto, toWebClientConfigDto, WebClientConfigDto } from './web-client.dto.js';

/** The response says nothing about users or about the machine. */
@ApiTags('Config')
@Public()
@Controller('api/v1/web-client')
export class WebClientConfigController {
  private readonly startedAt = new Date();

  constructor(private readonly registry: GitProviderRegistry) {}

  @Get('config')
  @ApiRoute('get_web_client_config_api_v1_web_client_config_get', 'What a web application shows and hides', {
    description: 'Open to everyone: web applications ask before they have a key.',
    answer: { type: WebClientConfigDto, description: 'The same for everybody' },
  })
  config(): WebClientConfigDto {
    return toWebClientConfigDto(this.registry.usable, this.startedAt);
  }
}

/** Features that this service does not have. The responses make the web application hide them. */
@ApiTags('Config')
@Controller('api')
export class AbsentFeaturesController {
  @Get('agent-profiles')
  @ApiRoute('list_agent_profiles', 'List agent profiles', {
    description: 'There are none: agents work with the settings of their user.',
    answer: { type: AgentProfilesDto, description: 'None' },
  })
  agentProfiles(): AgentProfilesDto {
    return { profiles: [], active_agent_profile_id: null };
  }
}
