import { applyDecorators, Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../common/openapi/problems.js';
import { type AuthUser, CurrentUser } from './auth.decorators.js';
import { OwnOrganizationGuard } from './auth.guard.js';
import {
  CurrentApiKeyDto,
  OrganizationIdDto,
  OrganizationMemberDto,
  OrganizationPageDto,
  OwnModelKeyDto,
  ProviderConnectionsDto,
  toCurrentApiKeyDto,
  toOrganizationMemberDto,
  toOrganizationPageDto,
} from './organizations.dto.js';

const UNKNOWN: DocumentedProblem = {
  status: 404,
  detail: 'There is no organization with this id.',
  description: 'Unknown, or not yours',
};
const BAD_ID = invalidInput(
  ['path', 'organization_id'],
  'string_unicode',
  'Expected text without NUL characters.',
);

/** Documents `GET /api/keys/current`. */
export function CurrentApiKeyOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_current_api_key',
      summary: 'Show whose key this is',
      description: 'Web applications ask for it to find out whether they are connected.',
    }),
    ApiOkResponse({ type: CurrentApiKeyDto, description: 'The key of the request' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/keys/llm/byor`. */
export function OwnModelKeyOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_own_model_key',
      summary: 'Show the key for models that the service provides',
      description: 'None: it provides no models. The command line asks for it when it logs in.',
    }),
    ApiOkResponse({ type: OwnModelKeyDto, description: 'No key' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/organizations`. */
export function ListOrganizationsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'list_organizations',
      summary: "List the user's organizations",
      description: "There is one: the user's own space.",
    }),
    ApiOkResponse({ type: OrganizationPageDto, description: 'The one organization' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/organizations/{organization_id}/me`. */
export function OrganizationMemberOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_organization_member',
      summary: 'What the user may do in the organization',
    }),
    ApiOkResponse({ type: OrganizationMemberDto, description: 'Its owner' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `GET /api/organizations/{organization_id}/provider-connections`. */
export function ProviderConnectionsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'list_provider_connections',
      summary: 'List connections to providers that the organization shares',
      description: 'None: keys and tokens are in the settings of each user.',
    }),
    ApiOkResponse({ type: ProviderConnectionsDto, description: 'None' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Users as web applications for organizations see them: each is the owner of a space of their own. */
@ApiTags('API keys')
@ApiSecurity('APIKeyHeader')
@Controller('api')
export class OrganizationsController {
  @Get('keys/current')
  @CurrentApiKeyOperation()
  currentKey(@CurrentUser() user: AuthUser): CurrentApiKeyDto {
    return toCurrentApiKeyDto(user);
  }

  @Get('keys/llm/byor')
  @OwnModelKeyOperation()
  ownModelKey(): OwnModelKeyDto {
    return { key: null };
  }

  @Get('organizations')
  @ListOrganizationsOperation()
  list(@CurrentUser() user: AuthUser): OrganizationPageDto {
    return toOrganizationPageDto(user);
  }

  @Get('organizations/:organization_id/me')
  @UseGuards(OwnOrganizationGuard)
  @OrganizationMemberOperation()
  member(@CurrentUser() user: AuthUser, @Param() _path: OrganizationIdDto): OrganizationMemberDto {
    return toOrganizationMemberDto(user);
  }

  @Get('organizations/:organization_id/provider-connections')
  @UseGuards(OwnOrganizationGuard)
  @ProviderConnectionsOperation()
  connections(@Param() _path: OrganizationIdDto): ProviderConnectionsDto {
    return { connections: [] };
  }
}
