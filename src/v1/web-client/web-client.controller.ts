import { applyDecorators, Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { Public } from '../../auth/auth.decorators.js';
import { ApiOpenProblems, ApiProblems } from '../../common/openapi/problems.js';
import { GitProviderRegistry } from '../../git-providers/git-provider.registry.js';
import {
  AgentProfilesDto,
  AutomationHealthDto,
  AutomationSdkVersionDto,
  toWebClientConfigDto,
  WebClientConfigDto,
} from './web-client.dto.js';

/** Documents `GET /api/v1/web-client/config`. */
function WebClientConfigOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_web_client_config_api_v1_web_client_config_get',
      summary: 'What a web application shows and hides',
      description: 'Open to everyone: web applications ask before they have a key.',
    }),
    ApiOkResponse({ type: WebClientConfigDto, description: 'The same for everybody' }),
    ApiOpenProblems(),
  );
}

/** Documents `GET /api/agent-profiles`. */
function AgentProfilesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'list_agent_profiles',
      summary: 'List agent profiles',
      description: 'There are none: agents work with the settings of their user.',
    }),
    ApiOkResponse({ type: AgentProfilesDto, description: 'None' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/automation/health`. */
function AutomationHealthOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_automation_health',
      summary: 'Whether there are automations',
      description: 'There are none, so that web applications leave them out.',
    }),
    ApiOkResponse({ type: AutomationHealthDto, description: 'There are none' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/automation/sdk-version`. */
function AutomationSdkVersionOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_automation_sdk_version',
      summary: 'Version of the SDK that automations run with',
    }),
    ApiOkResponse({ type: AutomationSdkVersionDto, description: 'There are no automations' }),
    ApiProblems(),
  );
}

/** The first request of a web application. The response says nothing about users or about the machine. */
@ApiTags('Config')
@Public()
@Controller('api/v1/web-client')
export class WebClientConfigController {
  private readonly startedAt = new Date();

  constructor(private readonly registry: GitProviderRegistry) {}

  @Get('config')
  @WebClientConfigOperation()
  config(): WebClientConfigDto {
    return toWebClientConfigDto(this.registry.usable, this.startedAt);
  }
}

/** Features of the web application that this service does not have. The responses make the application hide them. */
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
