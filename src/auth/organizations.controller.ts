import { Controller, Get, Param, UseGuards } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented } from '../common/openapi/api-route.js';
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

const UNKNOWN = documented(404, 'There is no organization with this id.', 'Unknown, or not yours');

/** For organizations' web applications each user is the owner of a space of their own. */
@ApiTags('API keys')
@Controller('api')
export class OrganizationsController {
  @Get('keys/current')
  @ApiRoute('get_current_api_key', 'Show whose key this is', {
    description: 'Web applications ask for it to find out whether they are connected.',
    answer: { type: CurrentApiKeyDto, description: 'The key of the request' },
  })
  currentKey(@CurrentUser() user: AuthUser): CurrentApiKeyDto {
    return toCurrentApiKeyDto(user);
  }

  @Get('keys/llm/byor')
  @ApiRoute('get_own_model_key', 'Show the key for models that the service provides', {
    description: 'None: it provides no models. The command line asks for it when it logs in.',
    answer: { type: OwnModelKeyDto, description: 'No key' },
  })
  ownModelKey(): OwnModelKeyDto {
    return { key: null };
  }

  @Get('organizations')
  @ApiRoute('list_organizations', "List the user's organizations", {
    description: "There is one: the user's own space.",
    answer: { type: OrganizationPageDto, description: 'The one organization' },
  })
  list(@CurrentUser() user: AuthUser): OrganizationPageDto {
    return toOrganizationPageDto(user);
  }

  @Get('organizations/:organization_id/me')
  @UseGuards(OwnOrganizationGuard)
  @ApiRoute('get_organization_member', 'What the user may do in the organization', {
    description: 'All that its owner may do.',
    answer: { type: OrganizationMemberDto, description: 'Its owner' },
    problems: [UNKNOWN],
  })
  member(@CurrentUser() user: AuthUser, @Param() _path: OrganizationIdDto): OrganizationMemberDto {
    return toOrganizationMemberDto(user);
  }

  @Get('organizations/:organization_id/provider-connections')
  @UseGuards(OwnOrganizationGuard)
  @ApiRoute('list_provider_connections', 'List connections to providers that the organization shares', {
    description: 'None: keys and tokens are in the settings of each user.',
    answer: { type: ProviderConnectionsDto, description: 'None' },
    problems: [UNKNOWN],
  })
  connections(@Param() _path: OrganizationIdDto): ProviderConnectionsDto {
    return { connections: [] };
  }
}
