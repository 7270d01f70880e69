import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiOpenProblems, ApiProblems } from '../../common/openapi/problems.js';
import {
  AgentProfilesDto,
  AutomationHealthDto,
  AutomationSdkVersionDto,
  WebClientConfigDto,
} from './web-client.dto.js';

/** Documents `GET /api/v1/web-client/config`. */
export function WebClientConfigOperation(): MethodDecorator & ClassDecorator {
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
export function AgentProfilesOperation(): MethodDecorator & ClassDecorator {
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
export function AutomationHealthOperation(): MethodDecorator & ClassDecorator {
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
export function AutomationSdkVersionOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_automation_sdk_version',
      summary: 'Version of the SDK that automations run with',
    }),
    ApiOkResponse({ type: AutomationSdkVersionDto, description: 'There are no automations' }),
    ApiProblems(),
  );
}
